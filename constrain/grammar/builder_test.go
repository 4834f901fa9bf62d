package grammar_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/constrain/grammar"
	"grove/constrain/regex"
)

// texts returns the texts of at most n lexemes of a grammar whose lexemes are literals, by following its edges.
func texts(t *testing.T, src grammar.Source, n int) []string {
	t.Helper()
	var all []string
	var walk func(at grammar.Node, stack []grammar.Node, text string, n, calls int)
	walk = func(at grammar.Node, stack []grammar.Node, text string, n, calls int) {
		if src.Final(at) {
			if len(stack) == 0 {
				all = append(all, text)
			} else {
				walk(stack[len(stack)-1], stack[:len(stack)-1], text, n, calls)
			}
		}
		edges, err := src.Edges(nil, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range edges {
			switch {
			case e.Lexeme == regex.Nothing && calls < 6:
				walk(e.Call, append(slices.Clone(stack), e.To), text, n, calls+1)
			case e.Lexeme != regex.Nothing && n > 0:
				words, finite := src.Store().Strings(e.Lexeme, 100)
				if !finite {
					words = nil
					for i := 1; i <= 4; i++ {
						if w := strings.Repeat("a", i); src.Store().Matches(e.Lexeme, w) {
							words = append(words, w)
						}
					}
				}
				for _, w := range words {
					walk(e.To, stack, text+w, n-1, 0)
				}
			}
		}
	}
	walk(src.Start(), nil, "", n, 0)
	slices.Sort(all)
	return slices.Compact(all)
}

func TestBuilder(t *testing.T) {
	type exprs = func(b *grammar.Builder, lit func(string) grammar.Expr)
	cases := []struct {
		name  string
		build exprs
		want  string // texts of up to 4 lexemes, - is the empty one
	}{
		{"literal", func(b *grammar.Builder, lit func(string) grammar.Expr) { b.Define("s", lit("a")) }, "a"},
		{"empty", func(b *grammar.Builder, lit func(string) grammar.Expr) { b.Define("s", b.Empty()) }, "-"},
		{"sequence", func(b *grammar.Builder, lit func(string) grammar.Expr) {
			b.Define("s", b.Seq(lit("a"), b.Alt(lit("b"), lit("c"), b.Empty()), lit("d")))
		}, "abd acd ad"},
		{"repeat", func(b *grammar.Builder, lit func(string) grammar.Expr) { b.Define("s", b.Repeat(lit("a"), 1, 3)) }, "a aa aaa"},
		{"star of nullable", func(b *grammar.Builder, lit func(string) grammar.Expr) {
			b.Define("s", b.Repeat(b.Alt(lit("a"), b.Empty()), 2, -1))
		}, "- a aa aaa aaaa"},
		{"nested repeat", func(b *grammar.Builder, lit func(string) grammar.Expr) {
			b.Define("s", b.Repeat(b.Repeat(lit("a"), 2, 2), 0, 1))
		}, "- aa"},
		{"recursive", func(b *grammar.Builder, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(b.Seq(lit("("), b.Rule("s"), lit(")")), lit("x")))
		}, "(x) x"},
		{"unproductive left out", func(b *grammar.Builder, lit func(string) grammar.Expr) {
			b.Define("loop", b.Seq(lit("a"), b.Rule("loop")))
			b.Define("s", b.Alt(b.Rule("loop"), b.Seq(lit("b"), b.Repeat(b.Rule("loop"), 0, -1))))
		}, "b"},
		{"nullable lexeme", func(b *grammar.Builder, lit func(string) grammar.Expr) {
			b.Define("s", b.Seq(lit("a"), lit("")))
		}, "a"},
		{"empty range", func(b *grammar.Builder, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(lit("a"), b.Repeat(lit("b"), 3, 2)))
		}, "a"},
	}
	for _, c := range cases {
		for _, greedy := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				s := regex.New(regex.Limits{})
				b := grammar.NewBuilder(s)
				c.build(b, func(text string) grammar.Expr { return b.Lexeme(s.Literal(text)) })
				src, err := b.Source("s", grammar.Options{Greedy: greedy})
				if err != nil {
					t.Fatal(err)
				}
				n := 4
				got := texts(t, src, n)
				got = slices.DeleteFunc(got, func(text string) bool { return len(text) > 4 })
				for i := range got {
					got[i] = strings.ReplaceAll("-"+got[i], "-", "")
					if got[i] == "" {
						got[i] = "-"
					}
				}
				if want := strings.Fields(c.want); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// TestInline checks that a regular grammar becomes one lexeme, and that a greedy one does not.
func TestInline(t *testing.T) {
	for _, greedy := range []bool{false, true} {
		s := regex.New(regex.Limits{})
		b := grammar.NewBuilder(s)
		b.Define("s", b.Seq(b.Rule("a"), b.Repeat(b.Rule("a"), 0, -1)))
		b.Define("a", b.Alt(b.Lexeme(s.Literal("x")), b.Lexeme(s.Literal("yz"))))
		src, err := b.Source("s", grammar.Options{Greedy: greedy})
		if err != nil {
			t.Fatal(err)
		}
		edges, _ := src.Edges(nil, src.Start())
		if one := len(edges) == 1 && edges[0].Lexeme != regex.Nothing; one == greedy {
			t.Errorf("greedy %v: edges %v", greedy, edges)
		}
		if !greedy && !s.Matches(edges[0].Lexeme, "xyzx") {
			t.Error("the lexeme does not match")
		}
	}
}

func TestBuilderErrors(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *grammar.Builder)
		want  error
		text  string
	}{
		"unknown":   {func(b *grammar.Builder) { b.Define("s", b.Rule("missing")) }, grammar.ErrUnknown, "missing"},
		"start":     {func(b *grammar.Builder) {}, grammar.ErrUnknown, `"s"`},
		"twice":     {func(b *grammar.Builder) { b.Define("s", b.Empty()); b.Define("s", b.Empty()) }, grammar.ErrTwice, `"s"`},
		"recursive": {func(b *grammar.Builder) { b.Define("s", b.Rule("s")) }, grammar.ErrNoText, `"s"`},
		"nothing":   {func(b *grammar.Builder) { b.Define("s", b.Lexeme(regex.Nothing)) }, grammar.ErrNoText, `"s"`},
		"size": {func(b *grammar.Builder) {
			for range grammar.MaxExprs {
				b.Lexeme(regex.Nothing)
			}
			b.Define("s", b.Empty())
		}, grammar.ErrSize, "expressions"},
	} {
		t.Run(name, func(t *testing.T) {
			b := grammar.NewBuilder(regex.New(regex.Limits{}))
			c.build(b)
			_, err := b.Source("s", grammar.Options{})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

// TestLongChain checks that rules that call each other in a long chain, the last one first, cost no more than their number.
func TestLongChain(t *testing.T) {
	s := regex.New(regex.Limits{})
	b := grammar.NewBuilder(s)
	const n = 50_000
	for i := range n {
		b.Define(rule(i), b.Seq(b.Rule(rule(i+1)), b.Rule(rule(i+1))))
	}
	b.Define(rule(n), b.Lexeme(s.Literal("a")))
	if _, err := b.Source(rule(0), grammar.Options{Greedy: true}); err != nil {
		t.Fatal(err)
	}
}

func rule(i int) string {
	var digits [6]byte
	for j := range digits {
		digits[len(digits)-1-j] = byte('0' + i%10)
		i /= 10
	}
	return string(digits[:])
}
