package bytewise

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"grove/constrain/vocab"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// ErrNone reports a tokenizer whose tokens do not spell every text, so that there is no view of bytes.
var ErrNone = errors.New("bytewise: the tokenizer changes texts before it encodes them (WordPiece, and vocabularies that fold case or white space), " +
	"so that bytes have no exact probabilities; use a model with another tokenizer")

// Vocabulary is the tokens of a model as strings of bytes. The byte 0xff, which is in no UTF-8 text, is in none. It does not change and is safe for concurrent use.
type Vocabulary struct {
	text  *tokenizer.Tokenizer
	words *vocab.Vocabulary
	trie  vocab.Trie
	ends  []token.ID
	size  int

	crossed bool // a token crosses a place at which other tokenizers cut
}

// New returns the vocabulary of a tokenizer, for logits of size tokens. Of several tokens with the same bytes it has the one that texts are encoded
// in. Errors: [ErrNone], those of [vocab.New].
func New(t *tokenizer.Tokenizer, size int) (*Vocabulary, error) {
	v := &Vocabulary{text: t, ends: t.EOG(), size: max(size, t.Size())}
	tokens, err := v.ordinary()
	if err != nil {
		return nil, err
	}
	if v.words, err = vocab.New(tokens, v.size); err != nil {
		return nil, fmt.Errorf("bytewise: %w", err)
	}
	v.trie = v.words.Trie()
	for _, t := range tokens {
		for at := range t.Bytes {
			v.crossed = v.crossed || v.boundary(t.Bytes, at)
		}
	}
	return v, v.spells(tokens)
}

// ordinary returns the tokens that stand for text.
func (v *Vocabulary) ordinary() (tokens []vocab.Token, err error) {
	first := map[string]int{}
	for id := range token.ID(v.text.Size()) {
		switch v.text.Type(id) {
		case tokenizer.Control, tokenizer.Unknown, tokenizer.Unused:
			continue
		}
		piece, err := v.text.AppendPiece(nil, id, false)
		if err != nil {
			return nil, err
		}
		if len(piece) == 0 || v.text.IsEOG(id) {
			continue
		}
		if at, taken := first[string(piece)]; !taken {
			first[string(piece)] = len(tokens)
			tokens = append(tokens, vocab.Token{ID: id, Bytes: piece, Kind: vocab.Ordinary})
		} else if ids, err := v.encode(nil, piece); err == nil && len(ids) == 1 && ids[0] == id {
			tokens[at].ID = id
		}
	}
	return tokens, nil
}

// spells returns [ErrNone] where encoding loses bytes: of some tokens, or of white space between them.
func (v *Vocabulary) spells(tokens []vocab.Token) error {
	const tried = 64
	for i := 0; i < len(tokens); i += 1 + len(tokens)/tried {
		if v.text.Type(tokens[i].ID) == tokenizer.UserDefined {
			continue // some swallow the white space beside them
		}
		for _, text := range []string{string(tokens[i].Bytes), string(tokens[i].Bytes) + "  " + string(tokens[i].Bytes)} {
			ids, err := v.encode(nil, []byte(text))
			if err != nil || slices.ContainsFunc(ids, func(id token.ID) bool { return !v.Ordinary(id) }) {
				continue // it has no tokens for a part of the text, which says nothing of the others
			}
			if v.Text(ids) != text {
				return ErrNone
			}
		}
	}
	return nil
}

// encode appends the tokens of a text that goes on with another, as the tokenizer writes it.
func (v *Vocabulary) encode(dst []token.ID, text []byte) ([]token.ID, error) {
	return v.text.Encode(dst, string(text), tokenizer.Options{Inside: true, Plain: true})
}

// Text returns the bytes of tokens.
func (v *Vocabulary) Text(ids []token.ID) string {
	var b []byte
	for _, id := range ids {
		b = append(b, v.words.Bytes(id)...)
	}
	return string(b)
}

// Ordinary reports whether a token stands for bytes.
func (v *Vocabulary) Ordinary(id token.ID) bool { return v.words.Kind(id) == vocab.Ordinary }

// window is the end of a sequence of tokens, from a boundary on that no text behind it moves, and its bytes.
type window struct {
	ids  []token.ID
	text []byte
}

// mostBehind is how many tokens a window may have; it is then cut in half, at a character.
const mostBehind = 32

// add returns the window with a token behind it, from its last boundary on.
func (v *Vocabulary) add(w window, id token.ID) window {
	w = window{append(slices.Clip(w.ids), id), append(slices.Clip(w.text), v.words.Bytes(id)...)}
	cut, at := 0, 0
	for k, end := 1, 0; k < len(w.ids); k++ {
		end += len(v.words.Bytes(w.ids[k-1]))
		if v.boundary(w.text, end) || len(w.ids) > mostBehind && k <= mostBehind/2 && utf8.RuneStart(w.text[end]) {
			cut, at = k, end
		}
	}
	return window{w.ids[cut:], w.text[at:]}
}

// boundary reports whether a place between two tokens is one that no text behind it moves, and before which nothing matters to what is behind: the
// end of a word, and the blank before the next one. Tokenizers cut there before they merge; where a token crosses such places, there are none.
func (v *Vocabulary) boundary(text []byte, at int) bool {
	if v.crossed || at <= 0 || at >= len(text) {
		return false
	}
	before, behind := text[at-1], text[at]
	if behind == ' ' && at+1 < len(text) && !white(before) && !white(text[at+1]) {
		return true
	}
	return letter(before) && !letter(behind) && behind < utf8.RuneSelf && behind != '\''
}

// parts reports whether a boundary lies between a text and a token behind it.
func (v *Vocabulary) parts(text []byte, id token.ID) bool {
	if len(text) == 0 {
		return false
	}
	piece := v.words.Bytes(id)
	return v.boundary([]byte{text[len(text)-1], piece[0], piece[min(1, len(piece)-1)]}, 1)
}

// letter reports whether a byte is an ASCII letter or digit.
func letter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

func white(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// whole reports whether the tokens of a window are the encoding of its text.
func (v *Vocabulary) whole(w window) bool {
	ids, err := v.encode(nil, w.text)
	return err == nil && slices.Equal(ids, w.ids)
}

// begins reports whether the tokens of a window begin the encoding of its text with some text behind it.
func (v *Vocabulary) begins(w window) bool {
	if v.whole(w) {
		return true
	}
	text := slices.Clip(w.text)
	for _, behind := range probes(text) {
		ids, err := v.encode(nil, append(text, behind...))
		if err == nil && len(ids) > len(w.ids) && slices.Equal(ids[:len(w.ids)], w.ids) {
			return true
		}
	}
	return false
}

// behindSpace are texts of the classes that tokenizers tell apart behind white space.
var behindSpace = []string{"1", ")", "z", "Ω", "\n", "\"x"}

// contractions are texts that some tokenizers keep together with an apostrophe before them.
var contractions = []string{"s", "t", "m", "d", "ll", "re", "ve"}

// probes returns texts that may change how the end of a text is cut: behind white space, an apostrophe, with or without a letter, and a part of a
// character.
func probes(text []byte) []string {
	n := len(text)
	if n == 0 {
		return nil
	}
	switch last := text[n-1]; {
	case white(last):
		return behindSpace
	case last == '\'':
		return contractions
	case n > 1 && text[n-2] == '\'' && (last == 'l' || last == 'r' || last == 'v'):
		return []string{"l", "e"}
	}
	at := n - 1
	for at > 0 && n-at < utf8.UTFMax && !utf8.RuneStart(text[at]) {
		at--
	}
	if utf8.FullRune(text[at:]) {
		return nil
	}
	return completions(text[at:])
}

// completions returns ends of a character whose first bytes are given, one for each value of the next byte.
func completions(begun []byte) (all []string) {
	for next := byte(0x80); next < 0xc0; next++ {
		char := append(slices.Clone(begun), next)
		for !utf8.FullRune(char) {
			char = append(char, 0x80)
		}
		if utf8.Valid(char) {
			all = append(all, string(char[len(begun):]))
		}
	}
	return all
}

// follows reports whether a token behind the tokens of a window makes a valid sequence: by encoding the text of both again.
func (v *Vocabulary) follows(w window, id token.ID) bool {
	if !v.Ordinary(id) {
		return false
	}
	return v.begins(window{append(slices.Clip(w.ids), id), append(slices.Clip(w.text), v.words.Bytes(id)...)})
}
