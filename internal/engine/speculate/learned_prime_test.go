package speculate

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"grove/internal/compute"
	"grove/internal/text/token"
	"grove/method"
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

// taught is what texts without a salt teach: the successors, and those that they are told to begin with.
type taught struct{ learned, primed map[token.ID]token.ID }

// teach lets texts without a salt learn, and saves it.
func (x taught) teach(t *testing.T, s *LearnedStore, methods int) {
	t.Helper()
	texts, err := s.Of("", false)
	if err != nil {
		t.Fatal(err)
	}
	m := texts.Methods[0].(primer)
	m.Learn(rows(x.learned), token.None)
	if err := m.Prime(state(t, x.primed)); err != nil {
		t.Fatal(err)
	}
	if !m.Primed(5) || m.Primed(3) {
		t.Error("3 alone was taught")
	}
	rates := method.NewRates(methods + 1)
	turns, credits := texts.Begin(rates)
	texts.End(rates, turns, credits, true)
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
}

// TestPrime: texts of every salt begin with what was computed before any text; what texts without a salt taught counts more and is kept beside it.
func TestPrime(t *testing.T) {
	const none = token.ID(-1)
	open := func(e method.Env) (method.Method, error) { return primer{method.NewSuccessors(e.Vocabulary, 0)}, nil }
	infos := []method.Info{
		{Name: "primer", Lasting: true, Open: open}, {Name: "short", Open: open},
		{Name: "other", Lasting: true, Open: func(method.Env) (method.Method, error) { return nil, nil }},
	}
	method.Register(infos[0])
	env, path := method.Env{Vocabulary: 20}, filepath.Join(t.TempDir(), "learned.json")
	type begin struct {
		salt     string
		private  bool
		id, want token.ID // none: no successor
	}
	phases := []struct {
		name    string
		primed  map[token.ID]token.ID // before, where there are any
		damaged bool                  // the file, before
		begins  []begin               // of the store that is opened then
		taught  taught                // at the end, where anything is
	}{
		{name: "primed", primed: map[token.ID]token.ID{3: 4, 5: 6}, begins: []begin{{"", false, 3, 4}, {"", false, 5, 6}, {"a", true, 3, 4}, {"a", false, 5, 6}},
			taught: taught{map[token.ID]token.ID{3: 9}, map[token.ID]token.ID{3: 8}}},
		{name: "taught", begins: []begin{{"", false, 3, 9}, {"b", false, 3, 4}}},
		{name: "primed again", primed: map[token.ID]token.ID{3: 4, 5: 7}, begins: []begin{{"", false, 3, 9}, {"", false, 5, 7}, {"b", false, 5, 7}}},
		{name: "damaged", damaged: true, begins: []begin{{"c", false, 3, none}}},
	}
	var first []byte
	for _, phase := range phases {
		if phase.primed != nil {
			if err := Prime(path, infos, env, state(t, phase.primed)); err != nil {
				t.Fatal(err)
			}
		}
		if phase.damaged {
			if err := os.WriteFile(path, bytes.Replace(first, []byte(`"primed":"`), []byte(`"primed":"AAAA`), 1), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if first == nil {
			var err error
			if first, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		s, err := NewLearned(infos, env, path)
		if err != nil {
			t.Fatal(err)
		}
		s.Load()
		for _, b := range phase.begins {
			texts, err := s.Of(b.salt, b.private)
			if err != nil {
				t.Fatal(err)
			}
			var row method.SuccessorRow
			if known := texts.Methods[0].(primer).Of(&row, token.None, b.id); known != (b.want != none) || known && row[0].ID != b.want {
				t.Errorf("%s, salt %q: behind %d: %v, known %v; want %d", phase.name, b.salt, b.id, row[0], known, b.want)
			}
			if phase.primed != nil && b.want != none && b.salt == "" { // a method with an option begins with the same
				with := slices.Clone(infos)
				with[0].Name += ":option=1"
				other, err := NewLearned(with, env, path)
				if err != nil {
					t.Fatal(err)
				}
				other.Load()
				if texts, err = other.Of("a", false); err != nil || !texts.Methods[0].(primer).Of(&row, token.None, 3) || row[0].ID != 4 {
					t.Errorf("%s: with an option 3 is followed by %v, %v", phase.name, row[0], err)
				}
			}
			if texts.Methods[1].(primer).Of(&row, token.None, b.id) {
				t.Errorf("%s: a method that does not last begins with something", phase.name)
			}
		}
		if phase.taught.learned != nil {
			phase.taught.teach(t, s, len(infos))
		}
	}
}
