package constrain

import (
	"bytes"

	"grove/constrain/vocab"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

const (
	maxForced = 96  // bytes that are looked ahead
	maxChop   = 4   // tokens at the end in which a longer one may begin
	maxLonger = 256 // longer tokens that are looked at
)

// force appends the tokens of the bytes that must follow a cursor, as the tokenizer writes them behind its last token. It leaves out
// tokens at the end where a longer one could begin and go on.
func (c *Constraint) force(dst []token.ID, cur *cursor) []token.ID {
	if cur.mode != active || c.v.strips(cur.prev) {
		return dst
	}
	text := c.rec.forced(cur.at, maxForced)
	if len(text) == 0 {
		return dst
	}
	from := len(dst)
	dst = c.v.encodeBehind(dst, cur.prev, text)
	return dst[:from+c.certain(cur.at, dst[from:], text)]
}

// encodeBehind appends the tokens of a text behind a token, as the tokenizer writes both where it keeps the token.
func (v *Vocabulary) encodeBehind(dst []token.ID, prev token.ID, text []byte) []token.ID {
	from := len(dst)
	if v.valid(prev) && v.trie.Kind(prev) == vocab.Ordinary {
		both := append(bytes.Clone(v.trie.Bytes(prev)), text...)
		if ids, err := v.text.Encode(dst, string(both), tokenizer.Options{Plain: true, Inside: true}); err == nil && len(ids) > from && ids[from] == prev {
			return append(dst, v.spelled(ids[from+1:], text)...)
		}
	}
	ids, err := v.text.Encode(dst, string(text), tokenizer.Options{Plain: true, Inside: true})
	if err != nil {
		return dst
	}
	return append(dst, v.spelled(ids[from:], text)...)
}

// spelled returns the tokens at the beginning of ids whose bytes are those of a text.
func (v *Vocabulary) spelled(ids []token.ID, text []byte) []token.ID {
	for i, id := range ids {
		if !v.valid(id) || v.trie.Kind(id) != vocab.Ordinary || !bytes.HasPrefix(text, v.trie.Bytes(id)) {
			return ids[:i]
		}
		text = text[len(v.trie.Bytes(id)):]
	}
	return ids
}

// certain returns how many of the tokens of forced bytes no longer token can replace.
func (c *Constraint) certain(at state, ids []token.ID, text []byte) int {
	for i, id := range ids {
		if i >= len(ids)-maxChop && c.longer(at, text) {
			return i
		}
		piece := c.v.trie.Bytes(id)
		to, n, err := c.rec.push(at, piece)
		if err != nil || n < len(piece) {
			return i
		}
		at, text = to, text[len(piece):]
	}
	return len(ids)
}

// longer reports whether a legal token begins with a text and goes on, or there are too many to tell.
func (c *Constraint) longer(at state, text []byte) bool {
	seen := 0
	for _, id := range c.v.beginning(text) {
		if len(c.v.trie.Bytes(id)) == len(text) {
			continue
		}
		if seen++; seen > maxLonger {
			return true
		}
		if ok, err := c.rec.allows(at, id); ok || err != nil {
			return true
		}
	}
	return false
}
