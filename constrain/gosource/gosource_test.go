package gosource

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const declarations = `package store

import "strings"

type Item struct {
	Name  string
	Price int
}

func (i *Item) Total(n int) int { return i.Price * n }

type Base struct{ id int }

func (b Base) ID() int { return b.id }

type Store struct {
	Base
	items map[string]*Item
	next  *Store
}

type Closer interface{ Close() error }

type List[T any] struct{ all []T }

func (l *List[T]) Len() int { return len(l.all) }

var _ = strings.ToUpper

`

// TestGo asks for the members behind beginnings of functions.
func TestGo(t *testing.T) {
	item, store := "Name Price Total", "Base F ID id items next"
	for _, tt := range []struct{ name, text, want string }{
		{"a receiver", "func (s *Store) F() int {\n\treturn s.", store},
		{"a value of a map", "func (s *Store) F() int {\n\treturn s.items[\"a\"].", item},
		{"the head of an if", "func (s *Store) F() {\n\tif s.next.", store},
		{"an initialisation", "func (s *Store) F() {\n\tif x := s.", store},
		{"the head of a for", "func (s *Store) F() {\n\tfor k := range s.", store},
		{"a call within calls", "func (s *Store) F() {\n\tg(1, h(s.", store},
		{"a case", "func (s *Store) F() {\n\tswitch {\n\tcase s.", store},
		{"an operand", "func (s *Store) F() int {\n\treturn 1 + s.", store},
		{"a left side", "func (s *Store) F() int {\n\ts.", store},
		{"a literal", "func (s *Store) F() *Item {\n\treturn &Item{Name: s.", store},
		{"an item of a literal", "func F(i Item) {\n\tx := []int{1, i.", item},
		{"a local variable", "func (s *Store) F() {\n\tfor _, i := range s.items {\n\t\tx := i.", item},
		{"a closure", "func (s *Store) F() {\n\tdefer func() { s.", store},
		{"a generic type", "func F(l *List[int]) {\n\tl.", "Len all"},
		{"an interface", "func F(c Closer) {\n\tc.", "( Close"},
		{"a method of a type", "var f = Base.", "ID"},
		{"blanks behind the period", "func F(l *Item) {\n\tl.\n\t\t", item},
		{"a chain of calls", "func F() *Item { return nil }\nfunc G() int {\n\treturn F().", item},
		{"an unknown type", "func F(x Unknown) {\n\tx.", ""},
		{"no members", "func F(x int) {\n\tx.", ""},
		{"a number", "var x = 1.", ""},
		{"a string", "var x = \"s.", ""},
		{"a comment", "// s.", ""},
		{"three periods", "func F(x ...", ""},
		{"a package that is not read", "func F() {\n\tstrings.", ""},
		{"text with faults", "func G() { return none(3) }\nfunc F(i *Item) int {\n\tx := 3\n\ti.", item},
	} {
		got := New(false).Complete([]byte(declarations + tt.text))
		got = slices.DeleteFunc(got, func(s string) bool { return strings.TrimSpace(s) == "" })
		slices.Sort(got)
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %q:\n%s", tt.name, tt.text, diff)
		}
	}
}

// TestGoPlain has text without a package clause, as a model writes it.
func TestGoPlain(t *testing.T) {
	text := "// A File is open.\ntype File struct{ name string }\n\nfunc (f *File) Name() string {\n\treturn f."
	if got := New(false).Complete([]byte(text)); !slices.Contains(got, "name") || !slices.Contains(got, "Name") || len(got) != 6 {
		t.Errorf("%q, want Name, name and blanks", got)
	}
	if got := New(false).Complete([]byte(strings.Repeat("a", MaxSource) + ".")); got != nil {
		t.Errorf("a text beyond the bound gives %q", got)
	}
}

// TestGoImports reads packages of the standard library, where it is installed.
func TestGoImports(t *testing.T) {
	g := New(true)
	if g.imports == nil {
		t.Skip("there are no sources of the standard library")
	}
	text := "package p\n\nimport \"errors\"\n\nfunc F() error {\n\treturn errors."
	got := g.Complete([]byte(text))
	if !slices.Contains(got, "New") || !slices.Contains(got, "Is") || slices.Contains(got, "errorString") || slices.Contains(got, "Newf") {
		t.Errorf("members of errors: %q", got)
	}
	text = "package p\n\nimport \"example.com/none\"\n\nfunc F() {\n\tnone."
	if got := g.Complete([]byte(text)); got != nil {
		t.Errorf("members of a package that is not there: %q", got)
	}
}

// FuzzGo reads hostile sources.
func FuzzGo(f *testing.F) {
	for _, text := range []string{declarations + "func (s *Store) F() { s.", "x.", ".", "((((((((.", "type T struct{T}\nvar t T\nvar u = t.", "type T interface{T; M()}\nvar t T\nvar u = t.", "type T[P *T[P]] struct{ f P }\nvar t T[int]\nvar u = t.", "/*.", "`.", "package", "type A = B\ntype B = A\nvar a A\nvar b = a."} {
		f.Add([]byte(text))
	}
	g := New(false)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, s := range g.Complete(text) {
			if s == "" || strings.HasPrefix(s, member) {
				t.Errorf("%q is a member", s)
			}
		}
	})
}
