package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
)

// maxTokens bounds a vocabulary, so that pieces fit 32 bits whatever the merges add. The largest
// vocabularies in use have some 2^18 tokens.
const maxTokens = 1 << 24

// none marks the absence of a piece.
const none int32 = -1

// space is the space of SentencePiece.
const space = pretoken.Space

// New builds the tokenizer of a vocabulary. It keeps the strings of v. Errors: arrays of different lengths, an id outside the
// vocabulary, two tokens with the same text, a merge that is not two pieces, a score that is not a number, an unknown kind of
// tokenizer.
func New(v Vocab) (*Tokenizer, error) { return build(v, nil) }

// build builds the tokenizer of a vocabulary. p is the pipeline of a tokenizer.json, nil for a GGUF file.
func build(v Vocab, p *pipeline) (*Tokenizer, error) {
	if err := checkArrays(v); err != nil {
		return nil, err
	}
	if err := checkIDs(v); err != nil {
		return nil, err
	}
	t := &Tokenizer{tokens: v.Tokens, types: types(v), bos: v.BOS, eos: v.EOS, unk: v.UNK}
	t.scratch.New = func() any { return &scratch{words: map[string][2]int32{}, most: maxQueue} }
	t.surround(v)
	if err := t.index(); err != nil {
		return nil, err
	}
	t.findEOG(v)
	t.findFIM(v)
	t.findModes(v)
	if err := t.spell(v.Model); err != nil {
		return nil, err
	}
	if p == nil {
		t.specials = newSpecials(t.tokens, t.types, v.Name)
	}
	var err error
	switch v.Model {
	case "gpt2":
		err = t.byteLevel(v, p)
	case "llama":
		err = t.sentencePiece(v)
	case "t5":
		err = t.unigram(v)
	case "bert":
		t.wordPiece(v)
	}
	if err != nil {
		return nil, err
	}
	if p != nil {
		p.apply(t)
	}
	return t, nil
}

// surround sets the tokens around a text.
func (t *Tokenizer) surround(v Vocab) {
	if v.AddBOS {
		t.begin = []token.ID{v.BOS}
	}
	if v.AddEOS && v.Model == "bert" {
		t.end = []token.ID{v.SEP}
	} else if v.AddEOS {
		t.end = []token.ID{v.EOS}
	}
	if v.AddSEP && v.Model != "bert" {
		t.between = []token.ID{v.SEP}
	}
}

// models are the kinds of tokenizers, as tokenizer.ggml.model names them.
var models = []string{"gpt2", "llama", "t5", "bert"}

func checkArrays(v Vocab) error {
	n := len(v.Tokens)
	switch {
	case !slices.Contains(models, v.Model):
		return fmt.Errorf("tokenizer: model %.40q is not supported; known: %s", v.Model, strings.Join(models, ", "))
	case n == 0:
		return fmt.Errorf("tokenizer: the vocabulary is empty")
	case n > maxTokens:
		return fmt.Errorf("tokenizer: a vocabulary of %d tokens is more than %d", n, maxTokens)
	case v.Types != nil && len(v.Types) != n:
		return fmt.Errorf("tokenizer: %d token types for %d tokens", len(v.Types), n)
	case v.Scores != nil && len(v.Scores) != n:
		return fmt.Errorf("tokenizer: %d scores for %d tokens", len(v.Scores), n)
	case v.Scores == nil && (v.Model == "t5" || v.Model == "llama" && v.Merges == nil):
		return fmt.Errorf("tokenizer: a SentencePiece vocabulary needs scores")
	}
	for i, s := range v.Scores {
		if s != s {
			return fmt.Errorf("tokenizer: the score of token %d is not a number", i)
		}
	}
	for i, ty := range v.Types {
		if ty < int(Undefined) || ty > int(Byte) {
			return fmt.Errorf("tokenizer: token %d has type %d, which is not one of 0 to 6", i, ty)
		}
	}
	return nil
}

func checkIDs(v Vocab) error {
	for _, s := range []struct {
		name string
		id   token.ID
	}{
		{"begin", v.BOS}, {"end", v.EOS}, {"end-of-turn", v.EOT}, {"end-of-message", v.EOM}, {"unknown", v.UNK}, {"separator", v.SEP},
		{"prefix", v.FIM.Prefix}, {"suffix", v.FIM.Suffix}, {"middle", v.FIM.Middle},
		{"repository", v.FIM.Repository}, {"file", v.FIM.File},
	} {
		if s.id < token.None || int(s.id) >= len(v.Tokens) {
			return fmt.Errorf("tokenizer: the %s token is %d, outside the vocabulary of %d", s.name, s.id, len(v.Tokens))
		}
	}
	if v.AddBOS && v.BOS == token.None {
		return fmt.Errorf("tokenizer: a begin token is to be added, and the vocabulary names none")
	}
	if v.AddSEP && v.SEP == token.None {
		return fmt.Errorf("tokenizer: a separator is to be added, and the vocabulary names none")
	}
	if v.AddEOS && v.Model == "bert" {
		if v.SEP == token.None {
			return fmt.Errorf("tokenizer: a separator is to be added, and the vocabulary names none")
		}
	} else if v.AddEOS && v.EOS == token.None {
		return fmt.Errorf("tokenizer: an end token is to be added, and the vocabulary names none")
	}
	return nil
}

// types returns the type of every token. In a SentencePiece file without types, the text of byte tokens shows their type.
func types(v Vocab) []Type {
	ts := make([]Type, len(v.Tokens))
	for i, text := range v.Tokens {
		ts[i] = Normal
		if v.Types != nil {
			ts[i] = Type(v.Types[i])
		} else if _, ok := parseByte(text); ok && (v.Model == "llama" || v.Model == "t5") {
			ts[i] = Byte
		}
	}
	return ts
}

// index maps texts to ids. It skips empty tokens, which pad some vocabularies.
func (t *Tokenizer) index() error {
	t.ids = make(map[string]token.ID, len(t.tokens))
	for i, text := range t.tokens {
		if text == "" {
			continue
		}
		if j, ok := t.ids[text]; ok {
			return fmt.Errorf("tokenizer: tokens %d and %d are both %.40q", j, i, text)
		}
		t.ids[text] = token.ID(i)
	}
	return nil
}

// spell sets the bytes of every token. The bytes of special tokens are their text.
func (t *Tokenizer) spell(model string) error {
	t.raw = make([]string, len(t.tokens))
	for i, text := range t.tokens {
		switch {
		case t.types[i] == Byte:
			b, ok := parseByte(text)
			if !ok {
				return fmt.Errorf("tokenizer: byte token %d is %.40q, not of the form <0x0A>", i, text)
			}
			text = string([]byte{b})
		case t.types[i].special():
		case model == "gpt2":
			text, _ = fromAlphabet(text)
		default:
			text = strings.ReplaceAll(text, space, " ")
		}
		t.raw[i] = text
	}
	return nil
}

// parseByte reads the text of a byte token, such as <0x0A>.
func parseByte(text string) (byte, bool) {
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(text[3:5], 16, 8)
	return byte(b), err == nil
}

// byteLevel builds the tables of byte-level encoding.
func (t *Tokenizer) byteLevel(v Vocab, p *pipeline) error {
	if p == nil {
		pre, err := pretoken.Find(v.Pre)
		if err != nil {
			return err
		}
		t.stages, t.whole = pre.Stages(), pre.Whole
	}
	t.encode = t.mergeWord
	t.pieces = make(map[string]int32, len(t.tokens))
	for i, text := range t.tokens {
		if _, ok := fromAlphabet(text); ok && !t.types[i].hidden() && t.types[i] != Byte {
			t.addPiece(t.raw[i], int32(i))
		}
	}
	for b := range t.bytes {
		t.bytes[b] = t.intern(string([]byte{byte(b)}))
	}
	return t.merges(v.Merges, fromAlphabet)
}

// merges builds the table of merges. It leaves out merges with a piece that no text spells.
func (t *Tokenizer) merges(merges []string, spell func(text string) (raw string, ok bool)) error {
	t.pairs = make(map[uint64]uint32, len(merges))
	for i, m := range merges {
		l, r, ok := strings.Cut(m, " ")
		if !ok || l == "" || r == "" || strings.Contains(r, " ") {
			return fmt.Errorf("tokenizer: merge %d is %.40q, not two pieces with a space between", i, m)
		}
		left, okL := spell(l)
		right, okR := spell(r)
		if !okL || !okR {
			continue
		}
		key := pairKey(t.intern(left), t.intern(right))
		if _, ok := t.pairs[key]; !ok {
			t.pairs[key] = uint32(i)
			t.intern(left + right)
		}
	}
	return nil
}

// intern returns the piece that bytes spell. If there is none, it adds one that is not a token.
func (t *Tokenizer) intern(s string) int32 {
	p, ok := t.pieces[s]
	if !ok {
		p = int32(len(t.tokens) + t.extra)
		t.extra++
		t.addPiece(s, p)
	}
	return p
}

func (t *Tokenizer) addPiece(s string, p int32) {
	t.pieces[s] = p
	t.longest = max(t.longest, len(s))
}

// sentencePiece builds the tables of SentencePiece encoding.
func (t *Tokenizer) sentencePiece(v Vocab) error {
	t.encode, t.chars = t.mergeWord, true
	t.spaces(v)
	if v.Merges != nil {
		err := t.merges(v.Merges, func(text string) (string, bool) { return strings.ReplaceAll(text, space, " "), true })
		if t.extra > 0 { // pieces that are no tokens may cross the borders of words
			t.stages = []pretoken.Stage{{Cut: pretoken.CutNothing}}
		}
		return err
	}
	t.ranks = make([]uint32, len(t.tokens))
	for i := range t.tokens {
		t.ranks[i] = scoreRank(v.Scores[i])
	}
	return nil
}

// spaces indexes the pieces of a SentencePiece vocabulary: all tokens but control, unknown and byte tokens. Words have a space for
// every U+2581 of the text, so a token that is written with a space can only be matched as a special token.
func (t *Tokenizer) spaces(v Vocab) {
	t.normalize = []normalizer{func(text string, _ bool) string {
		text = strings.ReplaceAll(text, space, " ")
		if v.AddSpacePrefix {
			text = " " + text
		}
		return text
	}}
	if v.AddSpacePrefix {
		t.strip = stripEach
	}
	t.pieces = make(map[string]int32, len(t.tokens))
	cut := pretoken.CutSpaces
	for i, text := range t.tokens {
		if text == "" || t.types[i] == Byte || t.types[i].hidden() || strings.Contains(text, " ") {
			continue
		}
		s := strings.ReplaceAll(text, space, " ")
		t.addPiece(s, int32(i))
		if pretoken.CutSpaces(s) < len(s) {
			cut = pretoken.CutNothing
		}
	}
	t.stages = []pretoken.Stage{{Cut: cut}}
	t.findBytes()
}

// findBytes finds the token of every byte: a byte token, else a token whose text is that byte.
func (t *Tokenizer) findBytes() {
	for b := range t.bytes {
		t.bytes[b] = none
		if p, ok := t.pieces[string([]byte{byte(b)})]; ok {
			t.bytes[b] = p
		}
	}
	for i, ty := range t.types {
		if ty == Byte {
			t.bytes[t.raw[i][0]] = int32(i)
		}
	}
}

// scoreRank turns scores into ranks of merges: the highest score has the lowest rank.
func scoreRank(score float32) uint32 {
	bits := math.Float32bits(score + 0) // minus zero ranks as zero
	if bits>>31 == 1 {
		return bits
	}
	return ^bits &^ (1 << 31)
}
