// Package vocab holds the bytes of a vocabulary as a trie, flat and in depth-first order, so that a walk over the tokens
// that a recogniser of bytes allows skips what it refuses.
//
// Tokens of clean text, which most recognisers of strings treat alike, are also held apart, by their number of code points:
// as bitsets, and as tries of the other tokens.
package vocab
