package learned

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"grove/compute"
	"grove/method"
	"grove/text/token"
)

// primer is a method that can be primed.
type primer struct{ *method.Successors }

func (primer) NewDrafter(method.Trunk) (method.Drafter, error) { return nil, nil }

// rows are of tokens, each with one successor.
func rows(successors map[token.ID]token.ID) (all []method.RowResult) {
	for id := range token.ID(20) {
		if next, ok := successors[id]; ok {
			all = append(all, method.RowResult{ID: id, Parent: -1, Result: compute.Result{Top: []compute.TopEntry{{ID: next, Logit: 1}}}})
		}
	}
	return all
}

// state is the state of a table with rows.
func state(t *testing.T, successors map[token.ID]token.ID) []byte {
	t.Helper()
	known := method.NewSuccessors(20, 0)
	known.Learn(rows(successors), token.None)
	b, err := known.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPrime: texts of every salt begin with what was computed before any text; what texts without a salt taught counts more and is kept beside it.
func TestPrime(t *testing.T) {
	open := func(e method.Env) (method.Method, error) { return primer{method.NewSuccessors(e.Vocabulary, 0)}, nil }
	infos := []method.Info{
		{Name: "primer", Lasting: true, Open: open}, {Name: "short", Open: open},
		{Name: "other", Lasting: true, Open: func(method.Env) (method.Method, error) { return nil, nil }},
	}
	method.Register(infos[0])
	env, path := method.Env{Vocabulary: 20}, filepath.Join(t.TempDir(), "learned.json")
	if err := Prime(path, infos, env, state(t, map[token.ID]token.ID{3: 4, 5: 6})); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reopen := func() *Store {
		s, err := New(infos, env, path)
		if err != nil {
			t.Fatal(err)
		}
		s.Load()
		return s
	}
	expect := func(s *Store, salt string, private bool, id, want token.ID) {
		t.Helper()
		texts, err := s.Of(salt, private)
		if err != nil {
			t.Fatal(err)
		}
		var row method.SuccessorRow
		if !texts.Methods[0].(primer).Of(&row, token.None, id) || row[0].ID != want {
			t.Errorf("salt %q: behind %d: %v, want %d", salt, id, row[0], want)
		}
		if texts.Methods[1].(primer).Of(&row, token.None, id) {
			t.Error("a method that does not last begins with something")
		}
	}
	s := reopen()
	for _, salt := range []string{"", "a"} {
		expect(s, salt, salt == "a", 3, 4)
		expect(s, salt, false, 5, 6)
	}
	texts, err := s.Of("", false)
	if err != nil {
		t.Fatal(err)
	}
	texts.Methods[0].(primer).Learn(rows(map[token.ID]token.ID{3: 9}), token.None)
	if err := texts.Methods[0].(primer).Prime(state(t, map[token.ID]token.ID{3: 8})); err != nil {
		t.Fatal(err)
	}
	if !texts.Methods[0].(primer).Primed(5) || texts.Methods[0].(primer).Primed(3) {
		t.Error("3 alone was taught")
	}
	rates := method.NewRates(len(infos) + 1)
	turns, credits := texts.Begin(rates)
	texts.End(rates, turns, credits, true)
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	s = reopen()
	expect(s, "", false, 3, 9)
	expect(s, "b", false, 3, 4)
	if err := Prime(path, infos, env, state(t, map[token.ID]token.ID{3: 4, 5: 7})); err != nil {
		t.Fatal(err)
	}
	s = reopen()
	expect(s, "", false, 3, 9)
	expect(s, "", false, 5, 7)
	expect(s, "b", false, 5, 7)

	damaged := bytes.Replace(before, []byte(`"primed":"`), []byte(`"primed":"AAAA`), 1)
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if texts, err = reopen().Of("c", false); err != nil {
		t.Fatal(err)
	}
	var row method.SuccessorRow
	if texts.Methods[0].(primer).Of(&row, token.None, 3) {
		t.Error("a damaged file is read")
	}
}
