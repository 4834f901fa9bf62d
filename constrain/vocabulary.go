package constrain

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"sync"

	"grove/constrain/vocab"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Vocabulary is the tokens of a model as constraints see them. One is made for each model. It does not change and is safe for
// concurrent use.
type Vocabulary struct {
	trie    *vocab.Vocabulary
	text    *tokenizer.Tokenizer
	size    int
	ending  []token.ID
	white   mask       // tokens of white space alone
	noEnd   mask       // all but those that end the text
	blanks  []token.ID // tokens that lose a leading blank at the beginning of a text
	longest int        // bytes of the longest token

	thinking   sample.Thinking
	begin, end string     // the markers of thoughts, spelled
	final      []token.ID // of models that write in channels: what begins the answer

	sorting sync.Once
	sorted  []token.ID // tokens with bytes, ordered by them
}

// NewVocabulary makes the vocabulary of a tokenizer, for logits of size tokens. thinking has the model's markers of thoughts, if it
// has any.
func NewVocabulary(t *tokenizer.Tokenizer, size int, thinking sample.Thinking) (*Vocabulary, error) {
	trie, err := vocab.FromTokenizer(t, size)
	if err != nil {
		return nil, fmt.Errorf("constrain: %w", err)
	}
	v := &Vocabulary{trie: trie, text: t, size: trie.Size(), ending: trie.End(), thinking: thinking}
	v.white, v.noEnd = newMask(v.size), newMask(v.size)
	for id := range token.ID(v.size) {
		v.noEnd.set(id)
		p := trie.Bytes(id)
		if v.longest = max(v.longest, len(p)); len(p) == 0 || trie.Kind(id) != vocab.Ordinary {
			continue
		}
		if len(bytes.Trim(p, " \t\r\n")) == 0 {
			v.white.set(id)
		}
		if after, err := t.AppendPieceAfter(nil, token.None, id, false); err == nil && len(after) < len(p) {
			v.blanks = append(v.blanks, id)
		}
	}
	for _, id := range v.ending {
		v.noEnd.clear(id)
	}
	v.begin, v.end = v.spellIDs(thinking.Begin), v.spellIDs(thinking.End)
	if channel, ok := t.ID("<|channel|>"); ok && len(thinking.Begin) > 0 && thinking.Begin[0] == channel {
		if v.final, err = t.Encode(nil, finalChannel, tokenizer.Options{Inside: true}); err != nil {
			return nil, fmt.Errorf("constrain: %w", err)
		}
	}
	return v, nil
}

// finalChannel begins the answer of models that write in channels (gpt-oss): behind thoughts, or at once.
const finalChannel = "<|channel|>final<|message|>"

// Spell returns the bytes of a text, in which special tokens are spelled as grammars spell them.
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
		if v.trie.Kind(id) == vocab.End {
			b = append(b, vocab.Spelling(id)...)
		} else {
			b = append(b, v.piece(id, i > 0 && v.strips(ids[i-1]))...)
		}
	}
	return string(b)
}

// strips reports whether a token behind prev loses a leading blank, as it does at the beginning of a text.
func (v *Vocabulary) strips(prev token.ID) bool {
	if len(v.blanks) == 0 {
		return false
	}
	if _, _, middle, ok := v.text.FIM(); ok && prev == middle && prev != token.None {
		return false // the text goes on with the prefix
	}
	var room [64]byte
	piece, err := v.text.AppendPieceAfter(room[:0], prev, v.blanks[0], false)
	return err == nil && len(piece) < len(v.trie.Bytes(v.blanks[0]))
}

// piece returns the bytes of a token, without its leading blank where stripped is set and it loses that.
func (v *Vocabulary) piece(id token.ID, stripped bool) []byte {
	p := v.trie.Bytes(id)
	if stripped && len(p) > 0 && p[0] == ' ' && v.trie.Kind(id) == vocab.Ordinary && v.text.Type(id) != tokenizer.UserDefined {
		return p[1:]
	}
	return p
}

// valid reports whether an id is one of the vocabulary's.
func (v *Vocabulary) valid(id token.ID) bool { return id >= 0 && int(id) < v.size }

// order returns the tokens with bytes, ordered by these.
func (v *Vocabulary) order() []token.ID {
	v.sorting.Do(func() {
		for id := range token.ID(v.size) {
			if len(v.trie.Bytes(id)) > 0 {
				v.sorted = append(v.sorted, id)
			}
		}
		slices.SortFunc(v.sorted, func(a, b token.ID) int { return bytes.Compare(v.trie.Bytes(a), v.trie.Bytes(b)) })
	})
	return v.sorted
}

// beginning returns the tokens whose bytes begin with a text, in order.
func (v *Vocabulary) beginning(text []byte) []token.ID {
	all := v.order()
	from := sort.Search(len(all), func(i int) bool { return bytes.Compare(v.trie.Bytes(all[i]), text) >= 0 })
	n := sort.Search(len(all)-from, func(i int) bool { return !bytes.HasPrefix(v.trie.Bytes(all[from+i]), text) })
	return all[from : from+n]
}

// spelling calls f with each token that is a part of the way to a text: its beginning, or one that begins with all of it.
func (v *Vocabulary) spelling(text []byte, f func(id token.ID)) {
	for n := 1; n < min(len(text), v.longest+1); n++ {
		for _, id := range v.beginning(text[:n]) {
			if len(v.trie.Bytes(id)) > n {
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
