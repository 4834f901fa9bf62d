package regex

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(Limits{})
	}
}

// BenchmarkDerive measures a derivative that is known, and the walk over a text whose derivatives are new, per byte.
func BenchmarkDerive(b *testing.B) {
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		s := New(Limits{})
		id := s.Quoted(s.Repeat(s.AnyRune(), 0, -1))
		id = s.Derive(id, '"')
		for b.Loop() {
			id = s.Derive(id, 'a')
		}
	})
	text := `"` + strings.Repeat(`some text, \n é and €`, 10) + `"`
	for name, body := range map[string]func(s *Store) ID{
		"text":    func(s *Store) ID { return s.Quoted(s.allText) },
		"counted": func(s *Store) ID { return s.Quoted(s.Repeat(s.AnyRune(), 10, 1000)) },
		"not": func(s *Store) ID {
			return s.Quoted(s.And(s.allText, s.Not(s.Concat(s.allText, s.Literal("end"), s.allText))))
		},
	} {
		b.Run("new/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := New(Limits{})
				id := body(s)
				for i := range len(text) {
					id = s.Derive(id, text[i])
				}
				if id != Epsilon {
					b.Fatal(s.Describe(id))
				}
			}
		})
	}
}

// BenchmarkBuild measures the making of common expressions.
func BenchmarkBuild(b *testing.B) {
	words := make([]string, 1000)
	for i := range words {
		words[i] = fmt.Sprintf("a word with a number: %d", i*i)
	}
	for name, build := range map[string]func(s *Store){
		"words": func(s *Store) {
			var ids []ID
			for _, w := range words {
				ids = append(ids, s.Literal(w))
			}
			s.Quoted(s.Or(ids...))
		},
		"letters": func(s *Store) {
			s.Repeat(s.Runes(Range{'a', 'z'}, Range{'A', 'Z'}, Range{0xC0, 0x2AF}, Range{0x370, 0x52F}, Range{0x4E00, 0x9FFF}), 1, -1)
		},
		"number": func(s *Store) {
			digit := s.Bytes(set("0123456789"))
			s.Concat(s.Repeat(s.Literal("-"), 0, 1), s.Or(s.Literal("0"), s.Concat(s.Bytes(set("123456789")), s.Repeat(digit, 0, -1))),
				s.Repeat(s.Concat(s.Literal("."), s.Repeat(digit, 1, -1)), 0, 1))
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				build(New(Limits{}))
			}
		})
	}
}
