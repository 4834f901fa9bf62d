package earley

import (
	"slices"
	"strconv"
	"strings"

	"grove/constrain/regex"
)

// Bounds of the words of errors.
const (
	maxWords = 12
	maxWord  = 60 // bytes
)

// Forced returns the bytes that must follow, at most limit: as long as one byte only may follow, and the text may not end. Errors
// of budgets end it.
func (e *Engine) Forced(s State, limit int) []byte {
	p := e.begin(s)
	defer e.mu.Unlock()
	var all []byte
	for len(all) < limit && p != nil && !p.done && !e.ends(p) {
		next, b, n := e.single(p)
		if n != 1 || e.failed() {
			break
		}
		p, all = next, append(all, b)
	}
	return all
}

// single returns the state behind the one byte that may follow, and whether there are 0, 1 or more such bytes.
func (e *Engine) single(p *state) (next *state, only byte, n int) {
	for b := range 256 {
		if !e.may(p, byte(b)) {
			continue
		}
		if n++; n > 1 {
			return nil, 0, n
		}
		only = byte(b)
	}
	if n == 1 {
		next, _ = e.push(p, []byte{only})
	}
	return next, only, n
}

// may reports whether a byte may follow.
func (e *Engine) may(p *state, b byte) bool {
	if !e.greedy {
		return e.stepAll(p, b) != nil
	}
	_, ok := e.step(p.configs[0], b)
	return ok
}

// Expected says in words what may follow, for errors: the names of the lexemes, or the bytes within one. It is bounded in length.
func (e *Engine) Expected(s State) string {
	p := e.begin(s)
	defer e.mu.Unlock()
	if p == nil || p.done {
		return "nothing"
	}
	var words []string
	for _, c := range p.configs {
		if c.lex != nil {
			words = append(words, e.words(c)...)
		}
	}
	if e.ends(p) {
		words = append(words, "the end of the text")
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) > maxWords {
		words = append(words[:maxWords], "others")
	}
	switch n := len(words); n {
	case 0:
		return "nothing"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}

// words says what may follow a config.
func (e *Engine) words(c config) (words []string) {
	if c.lex == c.row.start {
		for _, p := range c.lex.pairs {
			if p.lexeme != e.ignored && len(words) <= maxWords {
				words = append(words, short(e.store.Describe(p.lexeme)))
			}
		}
		return words
	}
	var set regex.Set
	for b := range 256 {
		if e.take(c.lex, byte(b)) != nil {
			set.Add(byte(b), byte(b))
		}
	}
	words = classes(set)
	if e.greedy && c.lex.accept != nil {
		if r := e.after(ending{c.row, c.lex.accept, c.text}); r != nil && r.start != nil {
			words = append(words, e.words(config{row: r, lex: r.start})...)
		}
	}
	return words
}

// short cuts what is too long.
func short(text string) string {
	if len(text) > maxWord {
		return strings.ToValidUTF8(text[:maxWord], "") + "..."
	}
	return text
}

// classes names the bytes of a set.
func classes(set regex.Set) (words []string) {
	for _, group := range []struct {
		name   string
		ranges []string
	}{
		{"a letter", []string{"az", "AZ"}},
		{"a digit", []string{"09"}},
		{"a character beyond ASCII", []string{"\x80\xbf"}},
		{"a character beyond ASCII", []string{"\xc2\xf4"}},
	} {
		var all regex.Set
		for _, r := range group.ranges {
			all.Add(r[0], r[1])
		}
		if set.And(all) == all {
			words = append(words, group.name)
			for i := range set {
				set[i] &^= all[i]
			}
		}
	}
	for b := 0; b < 256 && len(words) <= maxWords; b++ {
		switch {
		case !set.Has(byte(b)):
		case b == ' ':
			words = append(words, "a space")
		case b < 0x20 || b >= 0x7f:
			words = append(words, "byte 0x"+strconv.FormatInt(int64(b), 16))
		default:
			words = append(words, "'"+string(rune(b))+"'")
		}
	}
	return words
}
