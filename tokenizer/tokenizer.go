// Package tokenizer turns text into token ids and back, as a model's file defines it: byte-level
// byte-pair encoding and SentencePiece byte-pair encoding with byte fallback. Ids are equal to those
// of llama.cpp; where that conflates or drops bytes, the departures are stated at the name that makes them.
package tokenizer

import (
	"fmt"
	"sync"

	"grove/token"
)

// Type is what a token stands for, by its number in GGUF files.
type Type int32

// The types of tokens. Control, Unknown and UserDefined tokens are special: they are matched in text
// as they are written, before anything else is split.
const (
	Undefined   Type = 0
	Normal      Type = 1
	Unknown     Type = 2
	Control     Type = 3
	UserDefined Type = 4
	Unused      Type = 5
	Byte        Type = 6
)

func (t Type) special() bool { return t == Control || t == Unknown || t == UserDefined }

// hidden tells whether decoding leaves the token out unless it is asked for special tokens.
func (t Type) hidden() bool { return t == Control || t == Unknown }

// Vocab is what a model's file says about its tokens. Ids that the file does not name are
// [token.None].
type Vocab struct {
	Model string // "gpt2" is byte-level, "llama" is SentencePiece
	Pre   string // how byte-level text is cut before merging; not used by "llama"
	Name  string // general.name: special tokens of Phi-3 swallow the white space that follows them

	Tokens []string
	Scores []float32 // one a token; the merge order of "llama"
	Types  []int     // one a token; absent means Normal
	Merges []string  // the merge order of "gpt2": two pieces and a space between

	BOS, EOS, EOT, EOM, UNK token.ID

	AddBOS, AddEOS bool // whether [Options.Special] adds them
	AddSpacePrefix bool // "llama": a space goes before text at the start and after a special token
}

// Options says how [Tokenizer.Encode] treats text. The zero value parses special tokens that are
// written in the text and adds none.
type Options struct {
	Special bool // add the begin and the end token where the file asks for them
	Plain   bool // treat control and unknown tokens written in the text as plain text

	// Literal are the stretches of the text, in order and none empty, in which Plain holds: a token that reaches
	// into one is plain text. The text must then be UTF-8, or lack some byte from 0xf5 on.
	Literal []Span
}

// Tokenizer turns text into ids and back. It does not change after [New] and is safe for concurrent
// use.
type Tokenizer struct {
	tokens []string // as the file writes them
	raw    []string // the bytes that each stands for
	types  []Type
	ids    map[string]token.ID // of tokens as the file writes them

	bos, eos, unk  token.ID
	addBOS, addEOS bool
	spacePrefix    bool
	eog            []token.ID
	specials       specials

	cut     func(text string) int // bytes of the first word: no merge crosses its end
	whole   bool                  // a word that is a token needs no merging (ignore_merges)
	sp      bool                  // SentencePiece
	pieces  map[string]int32      // bytes to the piece they spell; pieces from len(tokens) on are no tokens
	longest int                   // bytes of the longest piece
	bytes   [256]int32            // the piece of one byte, none where there is none
	pairs   map[uint64]merge      // byte-level: two pieces to what they become
	ranks   []uint32              // SentencePiece: merge order of a token, low first

	extra int // pieces that are no tokens

	scratch sync.Pool // of *scratch
}

// Size returns the number of tokens; ids are below it.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// BOS returns the token that begins a text, or [token.None].
func (t *Tokenizer) BOS() token.ID { return t.bos }

// EOS returns the token that ends a text, or [token.None].
func (t *Tokenizer) EOS() token.ID { return t.eos }

// IsEOG tells whether a model that gives the token has ended its answer: the end-of-text, end-of-turn
// and end-of-message tokens that the file names, and the tokens known by their text to be such.
func (t *Tokenizer) IsEOG(id token.ID) bool {
	for _, e := range t.eog {
		if e == id {
			return true
		}
	}
	return false
}

// ID returns the token that the file writes as text, such as <|im_end|>.
func (t *Tokenizer) ID(text string) (token.ID, bool) {
	id, ok := t.ids[text]
	return id, ok
}

// Text returns the token as the file writes it, which is not the bytes it stands for: see
// [Tokenizer.AppendPiece]. It returns "" for an id that is out of range.
func (t *Tokenizer) Text(id token.ID) string {
	if t.check(id) != nil {
		return ""
	}
	return t.tokens[id]
}

// Type returns the type of the token, Undefined for an id that is out of range.
func (t *Tokenizer) Type(id token.ID) Type {
	if t.check(id) != nil {
		return Undefined
	}
	return t.types[id]
}

func (t *Tokenizer) check(id token.ID) error {
	if id < 0 || int(id) >= len(t.tokens) {
		return fmt.Errorf("tokenizer: token id %d is outside the vocabulary of %d", id, len(t.tokens))
	}
	return nil
}
