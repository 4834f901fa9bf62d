package earley

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// counts returns grammars whose lexemes have counts that are large beside their tokens, read in both ways.
func counts(t *testing.T, greedy bool) map[string]grammar.Source {
	t.Helper()
	all := map[string]grammar.Source{}
	add := func(name string, make func(s *regex.Store) regex.ID) {
		s := regex.New(regex.Limits{})
		b := grammar.NewBuilder(s)
		b.Define("s", b.Seq(b.Lexeme(make(s)), b.Repeat(b.Seq(b.Lexeme(s.Literal(",")), b.Lexeme(make(s))), 0, -1)))
		src, err := b.Source("s", grammar.Options{Greedy: greedy})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = src
	}
	ab := func(s *regex.Store) regex.ID {
		return s.Runes(regex.Range{Lo: 'a', Hi: 'b'}, regex.Range{Lo: 'é', Hi: 'é'})
	}
	add("letters", func(s *regex.Store) regex.ID { return s.Repeat(ab(s), 2, 60) })
	add("at least", func(s *regex.Store) regex.ID { return s.Repeat(ab(s), 40, -1) })
	add("groups", func(s *regex.Store) regex.ID {
		return s.Repeat(s.Concat(s.Repeat(ab(s), 1, 30), s.Literal(" ")), 1, 40)
	})
	add("neither", func(s *regex.Store) regex.ID {
		return s.And(s.Repeat(s.AnyRune(), 3, 60), s.Repeat(ab(s), 0, -1), s.Not(s.Concat(s.Repeat(s.AnyRune(), 0, -1), s.Literal("ba"))))
	})
	add("quoted", func(s *regex.Store) regex.ID {
		return s.Quoted(s.And(s.Repeat(s.AnyRune(), 3, 50), s.Repeat(ab(s), 0, -1)))
	})
	return all
}

// TestNear compares masks that states of different counts share with those of a walk over all tokens, up to the ends of the counts.
func TestNear(t *testing.T) {
	var tokens []vocab.Token
	for i, text := range []string{"a", "b", "ab", "ba", "aab", "é", "\xc3", "\xa9", "a,", ",", ",a", " ", "a ", "\"", "\",\"", "a\"", "\\", "\\u", "\\u00", "61", "u", "0", "", "e9"} {
		k := vocab.Token{ID: token.ID(i), Bytes: []byte(text), Kind: vocab.Ordinary}
		if text == "" {
			k.Kind = vocab.End
		}
		tokens = append(tokens, k)
	}
	v, err := vocab.New(tokens, len(tokens))
	if err != nil {
		t.Fatal(err)
	}
	for _, greedy := range []bool{true, false} {
		for name, src := range counts(t, greedy) {
			slowSrc := counts(t, greedy)[name]
			e, err := New(src, v, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			slow, err := New(slowSrc, v, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			slow.noSlices = true
			rng := rand.New(rand.NewPCG(5, 6))
			states := map[*state]bool{}
			for range 6 {
				s, _ := e.Start()
				text := ""
				for range 120 {
					m, err := e.Mask(s)
					if err != nil {
						t.Fatal(err)
					}
					states[s.p] = true
					at, _ := slow.Start()
					if at, _, err = slow.Push(at, []byte(text)); err != nil {
						t.Fatal(err)
					}
					want, err := slow.Mask(at)
					if err != nil || !slices.Equal(m, want) {
						t.Fatalf("%s, greedy %v: behind %q: %b, want %b, %v", name, greedy, text, m, want, err)
					}
					var legal, on []vocab.Token // on: those that do not end a lexeme, so that counts come to their ends
					for _, k := range tokens {
						if m.Has(k.ID) && k.Kind == vocab.Ordinary {
							legal = append(legal, k)
							if !strings.ContainsAny(string(k.Bytes), ",\"\\ ") {
								on = append(on, k)
							}
						}
					}
					if len(on) > 0 && rng.IntN(40) > 0 {
						legal = on
					}
					if len(legal) == 0 {
						break
					}
					k := legal[rng.IntN(len(legal))]
					text += string(k.Bytes)
					if s, err = e.Next(s, k.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
			if 2*len(e.masked) > len(states) {
				t.Errorf("%s, greedy %v: %d masks of %d states", name, greedy, len(e.masked), len(states))
			}
		}
	}
}
