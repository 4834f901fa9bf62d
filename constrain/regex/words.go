package regex

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sort"
	"unicode/utf8"
)

// seed makes the keys of Store.long and Store.dicts; equal keys are compared, so nothing depends on it but the time it takes.
var seed = maphash.MakeSeed()

// Literal returns the set of one text, of any bytes.
func (s *Store) Literal(text string) ID {
	switch {
	case s.err != nil:
		return Nothing
	case text == "":
		return Epsilon
	case len(text) == 1:
		return s.byteID(text[0])
	}
	var key uint64
	if len(text) > shortText {
		key = maphash.String(seed, text)
		if id, ok := s.long[key]; ok && string(s.text[s.nodes[id].a:s.nodes[id].b]) == text {
			return id
		}
	}
	if !s.grow(len(text) / 64) {
		return Nothing
	}
	start, before := len(s.text), len(s.nodes)
	s.text = append(s.text, text...)
	id := s.add(node{kind: kindLiteral, a: uint32(start), b: uint32(len(s.text)), c: textBits(s.text[start:])})
	if int(id) < before {
		s.text = s.text[:start]
	} else if len(text) > shortText {
		if s.long == nil {
			s.long = map[uint64]ID{}
		}
		s.long[key] = id
	}
	return id
}

// textBits returns validBit and cleanBit of a text.
func textBits(text []byte) (c uint32) {
	if utf8.Valid(text) {
		c |= validBit
	}
	if bytes.IndexByte(text, 0xFF) < 0 {
		c |= cleanBit
	}
	return c
}

// literal returns the literal of a part of the store's text.
func (s *Store) literal(start, end, c uint32) ID {
	switch end - start {
	case 0:
		return Epsilon
	case 1:
		return s.byteID(s.text[start])
	case shortText:
		c = textBits(s.text[start:end])
	}
	return s.add(node{kind: kindLiteral, a: start, b: end, c: c})
}

// isWords reports whether an expression is a literal of at least two bytes or a dictionary.
func (s *Store) isWords(id ID) bool {
	k := s.nodes[id].kind
	return k == kindLiteral || k == kindWords
}

// spell appends the texts of a literal or dictionary.
func (s *Store) spell(dst []span, id ID) []span {
	n := &s.nodes[id]
	if n.kind == kindLiteral {
		return append(dst, span{n.a, n.b})
	}
	for _, w := range s.words[n.a:n.b] {
		dst = append(dst, span{w.start + n.c&depthBits, w.end})
	}
	return dst
}

// joinLiterals replaces neighbours of a concatenation that are literals by one literal.
func (s *Store) joinLiterals(list []ID) []ID {
	out := 0
	for i := 0; i < len(list); {
		var text []byte
		j := i
		for ; j < len(list); j++ {
			n := &s.nodes[list[j]]
			if n.kind == kindLiteral {
				text = append(text, s.text[n.a:n.b]...)
			} else if n.kind == kindSet && s.sets[n.a].Len() == 1 {
				text = append(text, s.sets[n.a].min())
			} else {
				break
			}
		}
		id := list[i]
		if j > i+1 {
			id = s.Literal(string(text))
		}
		list[out] = id
		out++
		i = max(j, i+1)
	}
	return list[:out]
}

// joinWords returns the dictionary of the literals and dictionaries in a list, or Nothing if there are fewer than two.
func (s *Store) joinWords(list []ID) ID {
	var all []span
	n, c := 0, uint32(validBit|cleanBit)
	for _, id := range list {
		if s.isWords(id) {
			n++
			all = s.spell(all, id)
			if !s.has(id, isText) {
				c &^= validBit
			}
			if !s.has(id, noFF) {
				c &^= cleanBit
			}
		}
	}
	if n < 2 {
		return Nothing
	}
	s.spend(len(all))
	return s.dictionary(all, c)
}

// dictionary returns the set of texts, with their validBit and cleanBit.
func (s *Store) dictionary(all []span, c uint32) ID {
	order := func(x, y span) int { return bytes.Compare(s.text[x.start:x.end], s.text[y.start:y.end]) }
	if !slices.IsSortedFunc(all, order) {
		slices.SortFunc(all, order)
	}
	all = slices.CompactFunc(all, func(x, y span) bool { return order(x, y) == 0 })
	switch len(all) {
	case 0:
		return Nothing
	case 1:
		return s.Literal(string(s.text[all[0].start:all[0].end]))
	}
	h := uint64(len(all))
	for _, w := range all {
		h = mix(h, uint32(maphash.Bytes(seed, s.text[w.start:w.end])))
	}
	if id, ok := s.dicts[h]; ok {
		n := &s.nodes[id]
		if slices.EqualFunc(s.words[n.a:n.b], all, func(x, y span) bool { return order(x, y) == 0 }) {
			return id
		}
	}
	if !s.grow(len(all) / 8) {
		return Nothing
	}
	start := len(s.words)
	s.words = append(s.words, all...)
	id := s.add(node{kind: kindWords, a: uint32(start), b: uint32(len(s.words)), c: c})
	if s.dicts == nil {
		s.dicts = map[uint64]ID{}
	}
	s.dicts[h] = id
	return id
}

// filterWords returns the texts of a literal or dictionary that all members of a list have.
func (s *Store) filterWords(words ID, list []ID) ID {
	c := uint32(0)
	if s.has(words, isText) {
		c |= validBit
	}
	if s.has(words, noFF) {
		c |= cleanBit
	}
	kept := slices.DeleteFunc(s.spell(nil, words), func(w span) bool {
		for _, id := range list {
			if id != words && !s.Matches(id, string(s.text[w.start:w.end])) {
				return true
			}
		}
		return false
	})
	if s.err != nil {
		return Nothing
	}
	return s.dictionary(kept, c)
}

// measureWords sets the flags and lengths of a dictionary; the lengths of large ones are loose.
func (s *Store) measureWords(n *node) {
	words, depth := s.words[n.a:n.b], n.c&depthBits
	n.flags, n.min, n.max = isSure, 1, inf
	if words[0].end-words[0].start == depth {
		n.flags |= isNullable
		n.min = 0
	}
	last := words[len(words)-1] // longer than depth, as the words differ
	n.flag(isText, n.c&validBit != 0 && utf8.RuneStart(s.text[last.start+depth]))
	n.flag(noFF, n.c&cleanBit != 0)
	if len(words) > 64 {
		return
	}
	n.min, n.max = inf, 0
	for _, w := range words {
		n.min, n.max = min(n.min, w.end-w.start-depth), max(n.max, w.end-w.start-depth)
	}
}

// branch returns the part of a dictionary's words that go on with a byte.
func (s *Store) branch(n *node, b byte) []span {
	words, depth := s.words[n.a:n.b], n.c&depthBits
	at := func(i int) int {
		if w := words[i]; w.start+depth < w.end {
			return int(s.text[w.start+depth])
		}
		return -1
	}
	lo := sort.Search(len(words), func(i int) bool { return at(i) >= int(b) })
	hi := lo + sort.Search(len(words)-lo, func(i int) bool { return at(lo+i) > int(b) })
	return words[lo:hi]
}

// deriveWords is the derivative of a dictionary.
func (s *Store) deriveWords(id ID, b byte) ID {
	n := s.nodes[id]
	depth, bits := n.c&depthBits, n.c&^depthBits
	words := s.branch(&n, b)
	switch len(words) {
	case 0:
		return Nothing
	case 1:
		return s.literal(words[0].start+depth+1, words[0].end, bits)
	}
	lo := n.a + uint32(cap(s.words[n.a:])-cap(words))
	return s.add(node{kind: kindWords, a: lo, b: lo + uint32(len(words)), c: bits | (depth + 1)})
}
