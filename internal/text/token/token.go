// Package token has the type of token ids, which packages at every level share.
package token

// ID is the index of a token in a vocabulary, from 0 to the size less one, or None.
type ID int32

// None marks the absence of a token: a missing end-of-text token, an input that is not an id.
const None ID = -1
