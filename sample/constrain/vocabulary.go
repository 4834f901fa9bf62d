package constrain

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"sync"

	"grove/sample"
	"grove/text/token"
	"grove/text/tokenizer"
)

// kind says what a token is to a constraint.
type kind uint8

const (
	ordinary kind = iota
	special       // a control token: it is spelled "\xff[ID]", which no text holds
	end           // it ends the text
	unused        // it is never legal: it has no bytes, or is none of the tokenizer's
)

// Vocabulary is the tokens of a model as constraints see them, and the constraints that were compiled for it. One is made for each
// model. It is safe for concurrent use.
type Vocabulary struct {
	text    *tokenizer.Tokenizer
	kinds   []kind
	pieces  [][]byte // of each token; none of ends and unused ones
	ending  []token.ID
	white   mask       // tokens of white space alone
	noEnd   mask       // all but those that end the text
	blank   token.ID   // a token that may lose a leading blank; [token.None]: none does
	blanks  []token.ID // all of them
	sorting sync.Once
	sorted  []token.ID // ordinary and special tokens by their bytes; see order
	longest int        // bytes of the longest token

	thinking   sample.Thinking
	begin, end string // the markers of thoughts, spelled
}

// NewVocabulary makes the vocabulary of a tokenizer, for logits of size tokens: those that the tokenizer lacks are never legal. thinking
// has the model's markers of thoughts, if it has any.
func NewVocabulary(t *tokenizer.Tokenizer, size int, thinking sample.Thinking) (*Vocabulary, error) {
	v := &Vocabulary{
		text: t, kinds: make([]kind, size), pieces: make([][]byte, size), ending: t.EOG(), white: newMask(size), noEnd: newMask(size), blank: token.None,
		thinking: thinking,
	}
	var all []byte
	for id := range token.ID(size) {
		v.noEnd.set(id)
		if v.kinds[id] = kindOf(t, id); v.kinds[id] == unused || v.kinds[id] == end {
			continue
		}
		from := len(all)
		if v.kinds[id] == special {
			all = append(all, spell(id)...)
		} else {
			var err error
			if all, err = t.AppendPiece(all, id, false); err != nil {
				return nil, fmt.Errorf("constrain: %w", err)
			}
		}
		piece := all[from:len(all):len(all)]
		if len(piece) == 0 || v.kinds[id] == ordinary && bytes.IndexByte(piece, 0xff) >= 0 { // no text holds it
			v.kinds[id] = unused
			continue
		}
		v.pieces[id], v.longest = piece, max(v.longest, len(piece))
		if v.kinds[id] == ordinary && len(bytes.Trim(piece, " \t\r\n")) == 0 {
			v.white.set(id)
		}
		if v.kinds[id] == ordinary && piece[0] == ' ' {
			v.blanks = append(v.blanks, id)
		}
	}
	for _, id := range v.ending {
		v.noEnd.clear(id)
	}
	if len(v.blanks) > 0 {
		v.blank = v.blanks[0]
	}
	v.begin, v.end = v.spellIDs(thinking.Begin), v.spellIDs(thinking.End)
	return v, nil
}

// kindOf returns what a token is; one that its file defines for its user is ordinary, as its text is part of an answer's.
func kindOf(t *tokenizer.Tokenizer, id token.ID) kind {
	switch {
	case int(id) >= t.Size():
		return unused
	case t.IsEOG(id):
		return end
	}
	switch t.Type(id) {
	case tokenizer.Control, tokenizer.Unknown:
		return special
	case tokenizer.Unused:
		return unused
	}
	return ordinary
}

// spell returns the bytes that stand for a special token.
func spell(id token.ID) string { return "\xff[" + strconv.Itoa(int(id)) + "]" }

// Spell returns the bytes of a text, in which special tokens are spelled as grammars spell them: for [Spec]'s triggers and markers.
func (v *Vocabulary) Spell(text string) (string, error) {
	ids, err := v.text.Encode(nil, text, tokenizer.Options{Inside: true})
	if err != nil {
		return "", fmt.Errorf("constrain: %w", err)
	}
	return v.spellIDs(ids), nil
}

func (v *Vocabulary) spellIDs(ids []token.ID) string {
	var b []byte
	for i, id := range ids {
		switch {
		case !v.valid(id):
		case v.kinds[id] == end:
			b = append(b, spell(id)...)
		default:
			b = append(b, v.piece(id, i > 0 && v.strips(ids[i-1]))...)
		}
	}
	return string(b)
}

// strips reports whether a token behind prev loses a leading blank, as it does at the beginning of a text.
func (v *Vocabulary) strips(prev token.ID) bool {
	if v.blank == token.None {
		return false
	}
	if _, _, middle, ok := v.text.FIM(); ok && prev == middle && prev != token.None {
		return false // the text goes on with the prefix
	}
	var room [64]byte
	piece, err := v.text.AppendPieceAfter(room[:0], prev, v.blank, false)
	return err == nil && len(piece) < len(v.pieces[v.blank])
}

// piece returns the bytes of a token, without its leading blank where stripped is set.
func (v *Vocabulary) piece(id token.ID, stripped bool) []byte {
	p := v.pieces[id]
	if stripped && v.kinds[id] == ordinary && v.text.Type(id) != tokenizer.UserDefined && len(p) > 0 && p[0] == ' ' {
		return p[1:]
	}
	return p
}

// valid reports whether an id is one of the vocabulary's.
func (v *Vocabulary) valid(id token.ID) bool { return id >= 0 && int(id) < len(v.kinds) }

// order returns the tokens with bytes, ordered by these.
func (v *Vocabulary) order() []token.ID {
	v.sorting.Do(func() {
		for id := range token.ID(len(v.kinds)) {
			if len(v.pieces[id]) > 0 {
				v.sorted = append(v.sorted, id)
			}
		}
		slices.SortFunc(v.sorted, func(a, b token.ID) int { return bytes.Compare(v.pieces[a], v.pieces[b]) })
	})
	return v.sorted
}

// beginning returns the tokens whose bytes begin with a text, in order.
func (v *Vocabulary) beginning(text []byte) []token.ID {
	all := v.order()
	from := sort.Search(len(all), func(i int) bool { return bytes.Compare(v.pieces[all[i]], text) >= 0 })
	n := sort.Search(len(all)-from, func(i int) bool { return !bytes.HasPrefix(v.pieces[all[from+i]], text) })
	return all[from : from+n]
}

// spelling calls f with each token that is a part of the way to a text: its beginning, or one that begins with all of it.
func (v *Vocabulary) spelling(text []byte, f func(id token.ID)) {
	for n := 1; n < min(len(text), v.longest+1); n++ {
		for _, id := range v.beginning(text[:n]) {
			if len(v.pieces[id]) > n {
				break // the shortest come first
			}
			f(id)
		}
	}
	for _, id := range v.beginning(text) {
		f(id)
	}
}

// mask is a set of tokens.
type mask []uint64

func newMask(size int) mask { return make(mask, (size+63)/64) }

func (m mask) set(id token.ID)      { m[id>>6] |= 1 << (id & 63) }
func (m mask) clear(id token.ID)    { m[id>>6] &^= 1 << (id & 63) }
func (m mask) has(id token.ID) bool { return m[id>>6]>>(id&63)&1 == 1 }

func (m mask) empty() bool {
	return !slices.ContainsFunc(m, func(w uint64) bool { return w != 0 })
}
