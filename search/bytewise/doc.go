// Package bytewise reads a model of tokens as a model of bytes: which byte comes behind a text, whatever the tokens in which the text is written.
//
// A sequence of tokens is valid where it begins the encoding of some text, as the tokenizer writes it. The probability of bytes x is the sum over
// the valid sequences whose bytes begin with x and whose last token holds the last byte of x: the covers of x (Exact Byte-Level Probabilities from
// Tokenized Language Models, 2024). A [View] holds the covers as a tree (Sampling from Your Language Model One Byte at a Time, 2025), takes a byte at a
// time, and asks a [Model] for as few rows as it can. With a [Beam] it sums over all sequences, valid or not, and keeps the likeliest (genlm-bytes).
//
// Most texts have one valid sequence that ends with the text. Some have two: tokenizers cut white space by the character behind it, so that two
// tabs may be one token before the end, and two tokens before a bracket.
package bytewise
