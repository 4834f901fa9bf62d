package schema

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/schema/document"
)

// members appends the edges of a place within an object.
func (s *source) members(dst []grammar.Edge, p place) []grammar.Edge {
	c, o := s.c, s.c.objects[p.of]
	used := s.used(o, p)
	left, cost := c.left(o, used), c.cost(o, p.unmet, used)
	n := int(p.n)
	if left.required == 0 && p.unmet == 0 && n >= o.min {
		shut := s.shut
		if p.kind == atFirst {
			shut = s.closeEmpty
		}
		dst = append(dst, grammar.Edge{Lexeme: shut, To: s.end()})
	}
	if n >= o.max {
		return dst
	}
	for i, name := range o.names {
		if used(i) || !c.sat(c.memberOf(o, i)) {
			continue
		}
		for met, marks := uint32(0), p.unmet&o.marks[i]; ; met = (met - marks) & marks {
			if to, ok := s.member(p, o, i, met, left, cost); ok {
				dst = append(dst, grammar.Edge{Lexeme: s.key(name, p.kind == atFirst), To: to})
			}
			if met == marks {
				break
			}
		}
		if c.o.Order == Declared {
			if o.need[i] {
				return dst
			}
			left.optional-- // what is passed over cannot come any more
		}
	}
	return s.extras(dst, p, o, left, cost)
}

// used tells which names an object cannot get any more.
func (s *source) used(o *object, p place) func(i int) bool {
	if s.c.o.Order == Declared {
		return func(i int) bool { return i < int(p.pos) }
	}
	seen := s.texts[p.seen]
	return func(i int) bool { return i>>3 < len(seen) && seen[i>>3]>>(i&7)&1 != 0 }
}

// behind returns the place behind one more member, where the object can be completed from there.
func (s *source) behind(p place, o *object, met uint32, left stock, cost int) (place, bool) {
	p.kind = atMember
	p.unmet &^= met
	n := int(p.n) + 1
	used := s.used(o, p)
	if met != 0 || p.unmet != 0 {
		cost = s.c.cost(o, p.unmet, used)
	}
	if !o.enough(n, left, cost) {
		return p, false
	}
	if o.max < document.Unlimited || int(p.n) < o.min {
		p.n++
	}
	return p, true
}

// member returns where the object goes on behind the name i, whose member meets obligations too; left is what could come before it.
func (s *source) member(p place, o *object, i int, met uint32, left stock, cost int) (grammar.Node, bool) {
	c := s.c
	f := c.owing(o, c.memberOf(o, i), met)
	if !c.sat(f) {
		return 0, false
	}
	if c.o.Order == Declared {
		p.pos = int32(i + 1)
	} else {
		p.seen = s.id(mark(s.texts[p.seen], i))
	}
	if o.need[i] {
		left.required--
	} else {
		left.optional--
	}
	next, ok := s.behind(p, o, met, left, cost)
	if !ok {
		return 0, false
	}
	return s.then(f, s.node(next)), true
}

// mark returns a set of bits with one more.
func mark(set string, i int) string {
	b := []byte(set)
	for len(b) <= i>>3 {
		b = append(b, 0)
	}
	b[i>>3] |= 1 << (i & 7)
	return string(b)
}

// key returns the lexeme of a name and its colon, with a comma before all but the first.
func (s *source) key(name string, first bool) regex.ID {
	ids, ok := s.keys[name]
	if !ok {
		r := s.c.r
		quoted := r.Quoted(r.Literal(name))
		ids = [2]regex.ID{r.Concat(s.comma, quoted, s.colon), r.Concat(quoted, s.colon)}
		r.Name(ids[0], fmt.Sprintf("',' and %.60q", name))
		r.Name(ids[1], fmt.Sprintf("%.60q", name))
		s.keys[name] = ids
	}
	if first {
		return ids[1]
	}
	return ids[0]
}

// extras appends the edges of the names that are not given one by one.
func (s *source) extras(dst []grammar.Edge, p place, o *object, left stock, cost int) []grammar.Edge {
	c := s.c
	if c.o.Order == Declared {
		left.optional = 0
		p.pos = int32(len(o.names))
	}
	for i := range o.classes {
		k := &o.classes[i]
		if !c.sat(k.f) {
			continue
		}
		lang := k.lang
		if p.counts > 0 {
			var seen []regex.ID
			s.each(p.counts, func(text string) { seen = append(seen, c.r.Literal(text)) })
			if lang = c.lang.Without(lang, c.r.Or(seen...)); c.r.IsEmpty(lang) {
				continue
			}
		}
		lexeme := c.r.Concat(c.r.Quoted(lang), s.colon)
		if p.kind != atFirst {
			lexeme = c.r.Concat(s.comma, lexeme)
		}
		for met, marks := uint32(0), p.unmet&k.marks; ; met = (met - marks) & marks {
			f := c.owing(o, k.f, met)
			if next, ok := s.behind(p, o, met, left, cost); ok && c.sat(f) {
				dst = append(dst, grammar.Edge{Lexeme: lexeme, Read: func(text []byte) (grammar.Node, error) {
					to := next
					name, err := nameIn(string(text))
					to.counts = s.with(next.counts, name)
					return s.then(f, s.node(to)), err
				}})
			}
			if met == marks {
				break
			}
		}
	}
	return dst
}

// nameIn returns the decoded name of the text of a key's lexeme.
func nameIn(text string) (string, error) {
	start, end := strings.IndexByte(text, '"'), strings.LastIndexByte(text, '"')
	if start < 0 || end <= start {
		return "", grammar.ErrRefused
	}
	name, err := jsontext.AppendUnquote(nil, text[start:end+1])
	return string(name), err
}
