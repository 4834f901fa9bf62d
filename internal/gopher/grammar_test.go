package gopher_test

import (
	"errors"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"grove"
	"grove/constrain/earley"
	"grove/constrain/grammar"
	"grove/constrain/lark"
	"grove/internal/gopher"
)

// heads are functions without their bodies.
var heads = strings.Split(`func (f *File) Close() error
func max(a, b int) int
func (s *Scanner) next() rune
func (r *Reader) Read(p []byte) (n int, err error)
func isSpace(c byte) bool
func (t *tree) insert(key string, value any)
func parse(text string) (*node, error)
func (b *Buffer) WriteString(s string) (int, error)
func init()
func TestSplit(t *testing.T)`, "\n")

// rest is the grammar of what may follow the head of a function in a file, or of the function's body alone.
func rest(rule string) (grammar.Source, error) {
	text, err := lark.Shipped("go")
	if err != nil {
		return nil, err
	}
	text = append(text, "rest: block (END declaration)* [END]\n"...)
	return lark.Parse(text, lark.Options{Start: rule})
}

// TestGrammar compares bodies of functions that the model writes by the grammar of Go and without it: SynCode's claim is that a
// grammar leaves no syntax errors. A body that ends must parse, and one that is cut must be the beginning of one that does.
func TestGrammar(t *testing.T) {
	m, err := grove.Open(gopher.Name, grove.Options{Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	source, err := rest("block")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := earley.New(source, vocabulary(t), earley.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	constraint := &grove.Constraint{Source: func() (grammar.Source, error) { return rest("rest") }}
	for _, temperature := range []float32{0.4, 1} {
		var ended, wrong [2]int
		for _, head := range heads {
			for seed := range uint64(3) {
				for with := range 2 {
					r := grove.Request{Prompt: head, MaxTokens: 120, Sampling: m.DefaultSampling(), Penalties: m.DefaultPenalties(), Seed: &seed}
					if r.Sampling.Temperature = temperature; with == 1 {
						r.Constraint = constraint
					}
					text, complete, fault := bodyOf(t, m, r, engine)
					if complete {
						ended[with]++
						_, fault = parser.ParseFile(token.NewFileSet(), "", "package p\n"+head+text, parser.SkipObjectResolution)
					}
					if fault == nil {
						continue
					}
					if wrong[with]++; with == 1 {
						t.Errorf("%s%s: %v", head, text, fault)
					}
				}
			}
		}
		t.Logf("temperature %v, of %d bodies without and with the grammar: %v end, %v have syntax errors", temperature, len(heads)*3, ended, wrong)
		if wrong[0] == 0 || ended[1] == 0 {
			t.Errorf("no syntax error without the grammar, or no end with it: the test shows nothing")
		}
	}
}

// bodyOf returns what the model writes up to the function's end, and whether it comes to that. An error is where the text cannot
// be the beginning of a body.
func bodyOf(t *testing.T, m *grove.Model, r grove.Request, engine *earley.Engine) (text string, complete bool, fault error) {
	g, err := m.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	start, err := engine.Start()
	if err != nil {
		t.Fatal(err)
	}
	for part, err := range g.Tokens() {
		if err != nil {
			t.Fatal(err)
		}
		text += part.Text
		state, n, err := engine.Push(start, []byte(text))
		switch {
		case errors.Is(err, earley.ErrIllegal):
			if before, _, err := engine.Push(start, []byte(text[:n])); err == nil && engine.Ends(before) {
				return text[:n], true, nil // what follows is no part of the body
			}
			return text, false, err
		case err != nil:
			t.Fatal(err)
		case engine.Ends(state):
			return text, true, nil
		}
	}
	return text, false, nil
}
