package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"grove/token"
)

// maxTokens bounds a vocabulary, so that pieces fit 32 bits whatever the merges add. The largest
// vocabularies in use have some 2^18 tokens.
const maxTokens = 1 << 24

// none is no piece.
const none int32 = -1

// space is how SentencePiece writes a space, U+2581.
const space = "\u2581"

// New builds the tokenizer of a vocabulary. It keeps the strings of v. A vocabulary that contradicts
// itself is refused: arrays of different lengths, an id outside it, two tokens of one text, a merge
// that is not two pieces, a score that is not a number, an unknown kind of tokenizer.
func New(v Vocab) (*Tokenizer, error) {
	if err := checkArrays(v); err != nil {
		return nil, err
	}
	if err := checkIDs(v); err != nil {
		return nil, err
	}
	t := &Tokenizer{
		tokens: v.Tokens, types: types(v),
		bos: v.BOS, eos: v.EOS, unk: v.UNK,
		addBOS: v.AddBOS, addEOS: v.AddEOS,
	}
	t.scratch.New = func() any { return &scratch{words: map[string][2]int32{}} }
	if err := t.index(); err != nil {
		return nil, err
	}
	t.findEOG(v)
	if err := t.spell(v.Model); err != nil {
		return nil, err
	}
	t.specials = newSpecials(t.tokens, t.types, v.Name)
	if v.Model == "gpt2" {
		if err := t.byteLevel(v); err != nil {
			return nil, err
		}
		return t, nil
	}
	t.sentencePiece(v)
	return t, nil
}

func checkArrays(v Vocab) error {
	n := len(v.Tokens)
	switch {
	case v.Model != "gpt2" && v.Model != "llama":
		return fmt.Errorf("tokenizer: model %.40q is not supported; known: gpt2, llama", v.Model)
	case n == 0:
		return fmt.Errorf("tokenizer: the vocabulary is empty")
	case n > maxTokens:
		return fmt.Errorf("tokenizer: a vocabulary of %d tokens is more than %d", n, maxTokens)
	case v.Types != nil && len(v.Types) != n:
		return fmt.Errorf("tokenizer: %d token types for %d tokens", len(v.Types), n)
	case v.Scores != nil && len(v.Scores) != n:
		return fmt.Errorf("tokenizer: %d scores for %d tokens", len(v.Scores), n)
	case v.Model == "llama" && v.Scores == nil:
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
	}{{"begin", v.BOS}, {"end", v.EOS}, {"end-of-turn", v.EOT}, {"end-of-message", v.EOM}, {"unknown", v.UNK}} {
		if s.id < token.None || int(s.id) >= len(v.Tokens) {
			return fmt.Errorf("tokenizer: the %s token is %d, outside the vocabulary of %d", s.name, s.id, len(v.Tokens))
		}
	}
	if v.AddBOS && v.BOS == token.None {
		return fmt.Errorf("tokenizer: a begin token is to be added, and the vocabulary names none")
	}
	if v.AddEOS && v.EOS == token.None {
		return fmt.Errorf("tokenizer: an end token is to be added, and the vocabulary names none")
	}
	return nil
}

// types returns the type of every token. A SentencePiece file without types means its bytes by their
// text.
func types(v Vocab) []Type {
	ts := make([]Type, len(v.Tokens))
	for i, text := range v.Tokens {
		ts[i] = Normal
		if v.Types != nil {
			ts[i] = Type(v.Types[i])
		} else if _, ok := parseByte(text); ok && v.Model == "llama" {
			ts[i] = Byte
		}
	}
	return ts
}

// index maps texts to ids. Empty tokens, which pad some vocabularies, have no text to be found by.
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

// eogTexts are the tokens that end an answer in every vocabulary that has them.
var eogTexts = []string{
	"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>",
	"<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>", "<end_of_utterance>", "<｜end▁of▁sentence｜>",
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<|file_sep|>",
}

// findEOG lists the tokens that end an answer. Those known by their text are control tokens whatever
// type the file gives them.
func (t *Tokenizer) findEOG(v Vocab) {
	for _, id := range []token.ID{v.EOS, v.EOT, v.EOM} {
		if id != token.None && !slices.Contains(t.eog, id) {
			t.eog = append(t.eog, id)
		}
	}
	for _, text := range eogTexts {
		id, ok := t.ids[text]
		if !ok {
			continue
		}
		t.types[id] = Control
		if !slices.Contains(t.eog, id) {
			t.eog = append(t.eog, id)
		}
	}
}

// spell finds the bytes that every token stands for. Special tokens stand for their own text.
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

// byteLevel builds what byte-level encoding looks up. A merge with a character outside the byte
// alphabet can apply to no text and is left out.
func (t *Tokenizer) byteLevel(v Vocab) error {
	p, err := findPre(v.Pre)
	if err != nil {
		return err
	}
	t.cut, t.whole = p.cut, p.whole
	t.pieces = make(map[string]int32, len(t.tokens))
	for i, text := range t.tokens {
		if _, ok := fromAlphabet(text); ok && !t.types[i].hidden() && t.types[i] != Byte {
			t.addPiece(t.raw[i], int32(i))
		}
	}
	for b := range t.bytes {
		t.bytes[b] = t.intern(string([]byte{byte(b)}))
	}
	t.pairs = make(map[uint64]merge, len(v.Merges))
	for i, m := range v.Merges {
		l, r, ok := strings.Cut(m, " ")
		if !ok || l == "" || r == "" || strings.Contains(r, " ") {
			return fmt.Errorf("tokenizer: merge %d is %.40q, not two pieces with a space between", i, m)
		}
		left, okL := fromAlphabet(l)
		right, okR := fromAlphabet(r)
		if !okL || !okR {
			continue
		}
		key := pairKey(t.intern(left), t.intern(right))
		if _, ok := t.pairs[key]; !ok {
			t.pairs[key] = merge{rank: uint32(i), piece: t.intern(left + right)}
		}
	}
	return nil
}

// intern returns the piece that bytes spell, a new one that is no token where there is none.
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

// sentencePiece builds what SentencePiece encoding looks up. Control, unknown and byte tokens are
// never the result of a merge. Text reaches the merges with every U+2581 turned into a space, so a
// token with a space of its own can only be matched whole, as a special token.
func (t *Tokenizer) sentencePiece(v Vocab) {
	t.sp, t.spacePrefix = true, v.AddSpacePrefix
	t.cut = cutSpaces
	t.pieces = make(map[string]int32, len(t.tokens))
	t.ranks = make([]uint32, len(t.tokens))
	for i, text := range t.tokens {
		t.ranks[i] = scoreRank(v.Scores[i])
		if text == "" || t.types[i] == Byte || t.types[i].hidden() || strings.Contains(text, " ") {
			continue
		}
		s := strings.ReplaceAll(text, space, " ")
		t.addPiece(s, int32(i))
		if cutSpaces(s) < len(s) {
			t.cut = cutNothing
		}
	}
	t.findBytes()
}

// findBytes finds the token of every byte: a byte token, or else one whose text is that byte.
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

// scoreRank orders scores as merges want them: the highest score has the lowest rank.
func scoreRank(score float32) uint32 {
	bits := math.Float32bits(score + 0) // minus zero ranks as zero
	if bits>>31 == 1 {
		return bits
	}
	return ^bits &^ (1 << 31)
}
