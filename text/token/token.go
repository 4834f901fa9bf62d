// Package token holds the one type that every room above it shares: the id of a token.
package token

// ID is the number of a token in a vocabulary, 0 to its size less one; None marks its absence.
type ID int32

// None is no token: an absent end-of-text, an input that is not an id.
const None ID = -1
