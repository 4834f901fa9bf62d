package constrain

import (
	"errors"
	"strconv"
	"strings"

	"grove/constrain/regex"
	"grove/internal/text/calls"
	"grove/internal/text/token"
)

// isRegular reports whether a tree has no schemas in it.
func isRegular(g *calls.Grammar) bool {
	if g.Kind == calls.JSON || g.Kind == calls.Held || g.Kind == calls.HeldString {
		return false
	}
	for i := range g.Of {
		if !isRegular(&g.Of[i]) {
			return false
		}
	}
	return true
}

// lexeme returns the regular expression of a tree without schemas.
func (s *nestSource) lexeme(g *calls.Grammar) (regex.ID, error) {
	r := s.o.Store
	switch g.Kind {
	case calls.Literal:
		return r.Literal(g.Text), nil
	case calls.Marker:
		return s.mark(g.Text)
	case calls.Space:
		return r.Repeat(chars(r, " \t\r\n", false), 0, g.Max), nil
	case calls.Chars:
		return r.Repeat(chars(r, g.Text, false), g.Min, g.Max), nil
	case calls.Free:
		return s.free(g), nil
	case calls.Raw:
		return s.raw(g)
	case calls.Repeat:
		one, err := s.lexeme(&g.Of[0])
		return r.Repeat(one, g.Min, g.Max), err
	}
	var all []regex.ID
	for i := range g.Of {
		id, err := s.lexeme(&g.Of[i])
		if err != nil {
			return 0, err
		}
		all = append(all, id)
	}
	if g.Kind == calls.Alt {
		return r.Or(all...), nil
	}
	return r.Concat(all...), nil
}

// mark returns the regular expression of a mark. What a token that ends texts follows is left out, as nothing can.
func (s *nestSource) mark(text string) (regex.ID, error) {
	spelled := text
	if s.o.Spell != nil {
		var err error
		if spelled, err = s.o.Spell(text); err != nil {
			return 0, err
		}
	}
	if at := s.end(spelled); at >= 0 {
		spelled = spelled[:at]
	}
	return s.o.Store.Literal(spelled), nil
}

// end returns the offset of the first token that ends texts; -1: there is none.
func (s *nestSource) end(spelled string) int {
	for at := 0; s.o.Ends != nil; {
		n := strings.Index(spelled[at:], "\xff[")
		if n < 0 {
			break
		}
		at += n
		digits, _, _ := strings.Cut(spelled[at+2:], "]")
		if id, err := strconv.Atoi(digits); err == nil && s.o.Ends(token.ID(id)) {
			return at
		}
		at += 2
	}
	return -1
}

// free returns the regular expression of free text.
func (s *nestSource) free(g *calls.Grammar) regex.ID {
	r := s.o.Store
	any := r.Repeat(r.AnyRune(), 0, -1)
	all := []regex.ID{any}
	if len(g.Without) > 0 {
		all = append(all, s.without(g.Without, false))
	}
	if g.NotFirst != "" {
		const blanks = " \t\r\n"
		behind := r.Concat(chars(r, blanks+g.NotFirst, true), any)
		all = append(all, r.Concat(r.Repeat(chars(r, blanks, false), 0, -1), r.Or(regex.Epsilon, behind)))
	}
	if g.NotLast != "" {
		all = append(all, r.Or(regex.Epsilon, r.Concat(any, chars(r, g.NotLast, true))))
	}
	return r.And(all...)
}

// raw returns the regular expression of the strings of a schema, as they are.
func (s *nestSource) raw(g *calls.Grammar) (regex.ID, error) {
	r := s.o.Store
	texts, err := s.o.Texts(g.Schema)
	if err != nil {
		return regex.Nothing, named(g.Name, err)
	}
	any, line := r.Repeat(r.AnyRune(), 0, -1), r.Literal("\n")
	all := r.And(texts, s.without(g.Without, false), r.Not(r.Concat(line, any, line)))
	if r.IsEmpty(all) {
		return regex.Nothing, named(g.Name, errors.New("nest: no text satisfies the schema"))
	}
	return all, nil
}

// without returns the regular expression of all texts that have none of some in them. Those that are parts of one text do not end with the
// beginning of such a text either, so that none comes about between two of them.
func (s *nestSource) without(texts []string, parts bool) regex.ID {
	r := s.o.Store
	var bytes regex.Set
	for i := range 0xff {
		bytes[i>>6] |= 1 << (i & 63)
	}
	any := r.Repeat(r.Bytes(bytes), 0, -1)
	var all []regex.ID
	for _, text := range texts {
		all = append(all, r.Concat(any, r.Literal(text), any))
		for n := 1; parts && n < len(text); n++ {
			all = append(all, r.Concat(any, r.Literal(text[:n])))
		}
	}
	return r.Not(r.Or(all...))
}

// chars returns the regular expression of one ASCII character of a text, or of one character that is none of them.
func chars(r *regex.Store, text string, not bool) regex.ID {
	var all []regex.ID
	for _, c := range text {
		all = append(all, r.Runes(regex.Range{Lo: c, Hi: c}))
	}
	if !not {
		return r.Or(all...)
	}
	return r.And(r.AnyRune(), r.Not(r.Or(all...)))
}
