// Package tokenizer turns text into token ids and back, as a model's file defines it: byte-level byte-pair encoding, SentencePiece
// byte-pair and unigram encoding, and WordPiece. It reads GGUF metadata, with the ids of llama.cpp, and tokenizer.json files,
// with the ids of Hugging Face's tokenizers. The comment of a name states where it departs from them.
package tokenizer

import (
	"fmt"
	"slices"
	"sync"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
)

// Type is the type of a token, with its number in GGUF files.
type Type int32

// The types of tokens. Control, Unknown and UserDefined tokens are special: they are matched in the raw text, before it is cut
// into words.
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

// hidden reports whether decoding leaves the token out unless special tokens are asked for.
func (t Type) hidden() bool { return t == Control || t == Unknown }

// Vocab is the vocabulary of a model's file. Ids that the file does not name are [token.None].
type Vocab struct {
	Model string // "gpt2" is byte-level, "llama" is SentencePiece, "t5" unigram, "bert" WordPiece
	Pre   string // how byte-level text is cut before merging; used by "gpt2" only
	Name  string // general.name: special tokens of Phi-3 swallow the white space that follows them

	Tokens []string
	Scores []float32 // one a token; the merge order of "llama", the log-probabilities of "t5"
	Types  []int     // one a token; absent means Normal
	Merges []string  // the merge order of "gpt2", and of "llama" instead of scores: two pieces and a space between

	BOS, EOS, EOT, EOM, UNK token.ID
	SEP                     token.ID // ends a text of "bert", separates texts of others
	FIM                     FIM

	AddBOS, AddEOS bool // whether [Options.Special] adds them; EOS is SEP for "bert"
	AddSEP         bool // SEP separates two texts, behind the end of the first; not for "bert"
	AddSpacePrefix bool // a space goes before text at the start and after a special token

	MergeSpaces  bool   // "t5": white space becomes one space before each word
	Charsmap     []byte // "t5": SentencePiece's precompiled map of characters, if any
	Lowercase    bool   // "bert"
	StripAccents bool   // "bert"
}

// FIM holds the fill-in-the-middle tokens: those before the parts of a text, and before the names of a repository and its files.
type FIM struct{ Prefix, Suffix, Middle, Repository, File token.ID }

// NoFIM is the FIM of a vocabulary without such tokens.
var NoFIM = FIM{token.None, token.None, token.None, token.None, token.None}

// Mode is how a model reads a text, where its vocabulary has a token for each mode, which stands behind the begin token (UniXcoder, Guo et al. 2022).
// Other vocabularies have the same tokens around a text in all modes.
type Mode int

// The modes.
const (
	Continue  Mode = iota // what follows the text is generated
	Represent             // its tokens see each other, and their states are read
	Answer                // its tokens see each other, and an answer follows
)

// Options control [Tokenizer.Encode]. The zero value parses special tokens written in the text and adds none.
type Options struct {
	Special bool // add the begin and the end token where the file asks for them
	Mode    Mode // chooses these tokens, in vocabularies that have modes
	Plain   bool // treat control and unknown tokens written in the text as plain text

	// Literal are spans of the text, in order and not empty, in which Plain holds: a special token that touches one is plain
	// text. With spans the text must be UTF-8, or lack some byte from 0xf5 on.
	Literal []Span
	Inside  bool // the text goes on with another: the space that the vocabulary puts before a text is left out

	// Part, where it is not nil, takes the ids, those of dst among them, in parts: some thousand at a time, and none now and then.
	// It must not keep the slice. Its error ends the encoding. Encode then returns no ids.
	Part func(ids []token.ID) error
}

// Tokenizer turns text into ids and back. It does not change after [New] and is safe for concurrent
// use.
type Tokenizer struct {
	tokens []string // as the file writes them
	raw    []string // the bytes that each stands for
	types  []Type
	ids    map[string]token.ID // of tokens as the file writes them

	bos, eos, unk token.ID
	begin, end    []token.ID      // what goes around a text with Options.Special
	modes         [][2][]token.ID // begin and end of each mode; nil: begin and end are those of all
	between       []token.ID      // what separates two texts, besides the end of the first
	eog           []token.ID
	fim           FIM
	strip         strip // the space that was put before text

	// Text is cut at special tokens; the rest is normalised and, for a tokenizer.json, cut at other special tokens; then it is
	// cut into words, and each word is turned into ids.
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

	chars bool              // merging begins with characters, not bytes
	fuse  bool              // unknown tokens in a row are one
	pairs map[uint64]uint32 // the merge order of two pieces, low first; nil: by ranks
	ranks []uint32          // merge order of a token, low first

	lexicon       lexicon   // unigram and WordPiece: the texts of pieces
	lexiconPieces []int32   // the piece of each
	scores        []float64 // unigram: the score of each
	unknown       float64   // unigram: the score of an unknown character
	reach         int       // unigram: more than the bytes of any piece or character
	chop          int       // WordPiece: characters of a word beyond which it is unknown; 0: none

	scratch sync.Pool // of *scratch
}

// strip is the place at which decoding removes the space that encoding puts before text.
type strip uint8

const (
	stripNever strip = iota
	stripFirst       // at the start of a text
	stripEach        // and after special tokens
)

// normalizer changes text before it is cut into words. first is set at the start of the whole text.
type normalizer func(text string, first bool) string

// Size returns the number of tokens; ids are below it.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// BOS returns the token that begins a text, or [token.None].
func (t *Tokenizer) BOS() token.ID { return t.bos }

// EOS returns the token that ends a text, or [token.None].
func (t *Tokenizer) EOS() token.ID { return t.eos }

// EOG returns the tokens that end an answer; see [Tokenizer.IsEOG]. The caller must not change them.
func (t *Tokenizer) EOG() []token.ID { return t.eog[:len(t.eog):len(t.eog)] }

// IsEOG reports whether a token ends an answer: the end-of-text, end-of-turn and end-of-message tokens that the file names, and
// tokens with a text that ends answers in published vocabularies.
func (t *Tokenizer) IsEOG(id token.ID) bool { return slices.Contains(t.eog, id) }

// ID returns the token with a text in the file, such as <|im_end|>, and whether there is one.
func (t *Tokenizer) ID(text string) (token.ID, bool) {
	id, ok := t.ids[text]
	return id, ok
}

// Text returns the text of a token in the file, or "" for an id that is out of range. [Tokenizer.AppendPiece] gives its bytes,
// which may differ.
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
