package regex

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// AnyRune returns the UTF-8 of every code point.
func (s *Store) AnyRune() ID { return s.anyRune }

// Runes returns the UTF-8 of the code points in ranges. Surrogates and what lies beyond U+10FFFF are left out.
func (s *Store) Runes(ranges ...Range) ID {
	if s.err != nil || !s.spend(len(ranges)) {
		return Nothing
	}
	var seqs [][]byteRange
	ranges = merge(ranges)
	for _, r := range ranges {
		seqs = encode(seqs, r.Lo, r.Hi)
	}
	base := len(s.tmp)
	for _, seq := range seqs {
		id := Epsilon
		for i := len(seq) - 1; i >= 0; i-- {
			var set Set
			set.Add(seq[i].lo, seq[i].hi)
			id = s.concat(s.Bytes(set), id)
		}
		s.tmp = append(s.tmp, id)
	}
	id := s.or(s.tmp[base:])
	s.tmp = s.tmp[:base]
	if s.err != nil {
		return Nothing
	}
	s.nodes[id].flags |= isText
	if n := len(ranges); n > 0 && ranges[n-1].Hi >= 0x80 && s.anyRune != Nothing && s.grow(n/8) {
		if s.ranges == nil {
			s.ranges = map[ID][]Range{}
		}
		s.ranges[id] = ranges
	}
	return id
}

// merge sorts ranges and joins those that touch.
func merge(ranges []Range) (out []Range) {
	for _, r := range slices.SortedFunc(slices.Values(ranges), func(x, y Range) int { return cmp.Compare(x.Lo, y.Lo) }) {
		switch r.Lo, r.Hi = max(r.Lo, 0), min(r.Hi, utf8.MaxRune); {
		case r.Lo > r.Hi:
		case len(out) > 0 && r.Lo <= out[len(out)-1].Hi+1:
			out[len(out)-1].Hi = max(out[len(out)-1].Hi, r.Hi)
		default:
			out = append(out, r)
		}
	}
	return out
}

// byteRange is a range of bytes, both ends included.
type byteRange struct{ lo, hi byte }

// encode appends sequences of ranges of bytes that together are the UTF-8 of the code points from lo to hi without surrogates.
func encode(dst [][]byteRange, lo, hi rune) [][]byteRange {
	// Within each of these ranges all code points have as many bytes.
	for _, r := range []Range{{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, utf8.MaxRune}} {
		if from, to := max(lo, r.Lo), min(hi, r.Hi); from <= to {
			dst = encodeSame(dst, from, to)
		}
	}
	return dst
}

// encodeSame is encode for a range of code points that have as many bytes. It cuts the range until the low 6*i bits of its
// ends are all zeros and all ones where the bits above differ.
func encodeSame(dst [][]byteRange, lo, hi rune) [][]byteRange {
	for i := 1; i < utf8.RuneLen(lo); i++ {
		low := rune(1)<<(6*i) - 1
		if lo&^low == hi&^low {
			continue
		}
		if lo&low != 0 {
			return encodeSame(encodeSame(dst, lo, lo|low), lo|low+1, hi)
		}
		if hi&low != low {
			return encodeSame(encodeSame(dst, lo, hi&^low-1), hi&^low, hi)
		}
	}
	var x, y [utf8.UTFMax]byte
	n := utf8.EncodeRune(x[:], lo)
	utf8.EncodeRune(y[:], hi)
	seq := make([]byteRange, n)
	for i := range seq {
		seq[i] = byteRange{x[i], y[i]}
	}
	return append(dst, seq)
}
