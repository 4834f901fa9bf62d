// Package tokenizer turns text into token ids and back, as a model's file defines it: byte-level
// byte-pair encoding, SentencePiece byte-pair and unigram encoding, and WordPiece; from GGUF metadata or
// from a tokenizer.json of Hugging Face. Ids are equal to those of llama.cpp for the former and of Hugging
// Face's tokenizers for the latter; departures are stated at the name that makes them.
package tokenizer

import (
	"fmt"
	"sync"

	"grove/text/token"
	"grove/text/tokenizer/pretoken"
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
	Model string // "gpt2" is byte-level, "llama" is SentencePiece, "t5" unigram, "bert" WordPiece
	Pre   string // how byte-level text is cut before merging; used by "gpt2" only
	Name  string // general.name: special tokens of Phi-3 swallow the white space that follows them

	Tokens []string
	Scores []float32 // one a token; the merge order of "llama", the log-probabilities of "t5"
	Types  []int     // one a token; absent means Normal
	Merges []string  // the merge order of "gpt2", and of "llama" instead of scores: two pieces and a space between

	BOS, EOS, EOT, EOM, UNK token.ID
	SEP                     token.ID // ends a text of "bert"
	FIM                     FIM

	AddBOS, AddEOS bool // whether [Options.Special] adds them; EOS is SEP for "bert"
	AddSpacePrefix bool // a space goes before text at the start and after a special token

	MergeSpaces  bool   // "t5": white space becomes one space before each word
	Charsmap     []byte // "t5": SentencePiece's precompiled map of characters, if any
	Lowercase    bool   // "bert"
	StripAccents bool   // "bert"
}

// FIM holds the tokens that go before the parts of a text whose middle is to be filled in, and before the name of a
// repository and those of its files.
type FIM struct{ Prefix, Suffix, Middle, Repository, File token.ID }

// NoFIM is the value for a vocabulary that names none.
var NoFIM = FIM{token.None, token.None, token.None, token.None, token.None}

// Options says how [Tokenizer.Encode] treats text. The zero value parses special tokens that are
// written in the text and adds none.
type Options struct {
	Special bool // add the begin and the end token where the file asks for them
	Plain   bool // treat control and unknown tokens written in the text as plain text

	// Literal are the stretches of the text, in order and none empty, in which Plain holds: a token that reaches
	// into one is plain text. The text must then be UTF-8, or lack some byte from 0xf5 on.
	Literal []Span
	Inside  bool // the text goes on with another: the space that the vocabulary puts before a text is left out
}

// Tokenizer turns text into ids and back. It does not change after [New] and is safe for concurrent
// use.
type Tokenizer struct {
	tokens []string // as the file writes them
	raw    []string // the bytes that each stands for
	types  []Type
	ids    map[string]token.ID // of tokens as the file writes them

	bos, eos, unk token.ID
	begin, end    []token.ID // what goes around a text with Options.Special
	eog           []token.ID
	fim           FIM
	strip         strip // the space that was put before text

	// Text is cut at special tokens; what is left is normalised and, in a tokenizer.json, cut at
	// others again; then it is cut into words, and each word is turned into ids.
	specials  specials
	normalize []normalizer
	inner     specials
	controls  specials   // those of the inner ones that Plain turns off, as they are written: for text with literal stretches
	spaced    normalizer // goes on where the inner special tokens were cut out; nil: nothing
	stages    []pretoken.Stage
	encode    func(dst []token.ID, word string, s *scratch) ([]token.ID, error)

	whole   bool             // a word that is a token needs no merging (ignore_merges)
	pieces  map[string]int32 // bytes to the piece they spell; pieces from len(tokens) on are no tokens
	longest int              // bytes of the longest piece
	extra   int              // pieces that are no tokens
	bytes   [256]int32       // the piece of one byte, none where there is none

	chars bool             // merging begins with characters, not bytes
	fuse  bool             // unknown tokens in a row are one
	pairs map[uint64]merge // two pieces to what they become; nil: by ranks
	ranks []uint32         // merge order of a token, low first

	lexicon       lexicon   // unigram and WordPiece: the texts of pieces
	lexiconPieces []int32   // the piece of each
	scores        []float64 // unigram: the score of each
	unknown       float64   // unigram: the score of an unknown character
	chop          int       // WordPiece: characters of a word beyond which it is unknown; 0: none

	scratch sync.Pool // of *scratch
}

// strip says after what decoding takes off the space that encoding put before text.
type strip uint8

const (
	stripNever strip = iota
	stripFirst       // at the start of a text
	stripEach        // and after special tokens
)

// normalizer changes text before it is cut into words. first tells whether it begins the whole text.
type normalizer func(text string, first bool) string

// Size returns the number of tokens; ids are below it.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// BOS returns the token that begins a text, or [token.None].
func (t *Tokenizer) BOS() token.ID { return t.bos }

// EOS returns the token that ends a text, or [token.None].
func (t *Tokenizer) EOS() token.ID { return t.eos }

// EOG returns the tokens that end an answer; see [Tokenizer.IsEOG]. They must not be changed.
func (t *Tokenizer) EOG() []token.ID { return t.eog[:len(t.eog):len(t.eog)] }

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
