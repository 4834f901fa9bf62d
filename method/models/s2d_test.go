package models

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

const s2dVocabulary = 40

// counting is a model of 4 layers that says the next number and keeps a record of its rows that give logits: the token, and the layers. Behind a
// token that 3 divides, the first layer is not sure, and behind one that 6 divides two layers are not. An exit that is not sure is wrong.
func counting(record *[]string) *growtest.Model {
	return &growtest.Model{
		Dims: method.Size{Vocabulary: s2dVocabulary, Layers: 4, Width: 8, Context: 200, Rows: 64},
		Next: func(path []token.ID, r forest.Row) []float32 {
			last := path[len(path)-1]
			*record = append(*record, fmt.Sprint(last, ":", r.From, "-", r.To))
			logits := make([]float32, s2dVocabulary)
			if last%3 == 0 && r.To == 1 || last%6 == 0 && r.To == 2 {
				logits[(last+2)%s2dVocabulary] = 2
			} else {
				logits[(last+1)%s2dVocabulary] = 12
			}
			return logits
		},
	}
}

func openS2d(t *testing.T, name string, m *growtest.Model, prompt ...token.ID) *growtest.Text {
	t.Helper()
	x := &growtest.Text{Drafter: growtest.Drafter(t, name, method.Env{Vocabulary: m.Dims.Vocabulary, Draft: m})}
	x.Noise.Sampling = sample.Params{}
	x.Begin(t, prompt...)
	return x
}

// sequence returns the sequence of the draft model.
func sequence(x *growtest.Text) *growtest.Sequence {
	return x.Drafter.(*grow.Drafter).Branch().Trunk.(*growtest.Sequence)
}

// TestLevels: a draft runs on where it is not sure, from where it stopped.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		name string
		want []token.ID // drafts behind 4
		rows []string
	}{
		{"s2d", []token.ID{5, 6, 7, 8}, []string{"4:0-1", "5:0-1", "6:0-1", "6:1-2", "6:2-4", "7:0-1"}},
		{"s2d:exits=1/2", []token.ID{5, 6, 7, 8}, []string{"4:0-1", "5:0-1", "6:0-1", "6:1-2", "6:2-4", "7:0-1"}},
		{"s2d:exits=2", []token.ID{5, 6, 7, 8}, []string{"4:0-2", "5:0-2", "6:0-2", "6:2-4", "7:0-2"}},
		{"s2d:exits=1", []token.ID{5, 6, 7, 8}, []string{"4:0-1", "5:0-1", "6:0-1", "6:1-4", "7:0-1"}},
		{"s2d:threshold=0", []token.ID{5, 6, 8, 9}, []string{"4:0-1", "5:0-1", "6:0-1", "8:0-1"}},
		{"s2d:exits=1/2+threshold=0.9/0", []token.ID{5, 6, 8, 9}, []string{"4:0-1", "5:0-1", "6:0-1", "6:1-2", "8:0-1"}},
		{"s2d:threshold=0.1", []token.ID{5, 6, 8, 9}, []string{"4:0-1", "5:0-1", "6:0-1", "8:0-1"}},
		{"s2d:exits=1/2+threshold=1/0.9", []token.ID{5, 6, 7, 8}, []string{"4:0-2", "5:0-2", "6:0-2", "6:2-4", "7:0-2"}},
		{"s2d:threshold=1", []token.ID{5, 6, 7, 8}, []string{"4:0-4", "5:0-4", "6:0-4", "7:0-4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rows []string
			x := openS2d(t, c.name, counting(&rows), 4)
			if got := growtest.IDs(x.Draft(t, 4)); !slices.Equal(got, c.want) {
				t.Errorf("drafts %v, want %v", got, c.want)
			}
			if diff := cmp.Diff(c.rows, rows); diff != "" {
				t.Errorf("rows with logits:\n%s", diff)
			}
		})
	}
}

// TestFollows: rows that the text follows are not run again, and what a draft lacks above its exit is run when a later one goes further or the
// trunk grows. The model refuses what a cache would: a row behind one that has stopped before, and a commit of one that has not run all layers.
func TestFollows(t *testing.T) {
	for _, c := range []struct {
		name     string
		rows     int // of a step, at most
		accepted int // drafts a round
	}{{"s2d", 64, 3}, {"s2d", 3, 3}, {"s2d", 64, 4}, {"s2d:threshold=0", 64, 2}, {"s2d:threshold=0", 2, 4}, {"s2d:threshold=1", 64, 0}, {"s2d", 64, 0}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			var rows []string
			m := counting(&rows)
			m.Dims.Rows = c.rows
			x := openS2d(t, c.name, m, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
			want, first, last := []token.ID{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, 0, token.ID(15)
			for range 24 {
				drafts := growtest.IDs(x.Draft(t, 4))
				if len(drafts) != 4 {
					t.Fatalf("drafts %v behind %d", drafts, last)
				}
				if last == 1 && drafts[0] != (last+1)%s2dVocabulary {
					t.Errorf("behind %d: %v", last, drafts)
				}
				added := append(slices.Clone(drafts[:c.accepted]), 1) // and another token
				want, last = append(append(want, last), added[:len(added)-1]...), 1
				x.Add(added...)
				first = max(first, sequence(x).Live())
			}
			s := sequence(x)
			if first > method.MaxLive {
				t.Errorf("%d rows live", first)
			}
			if n := len(s.Trunk); n < len(want)-40 || !slices.Equal(s.Trunk, want[:n]) {
				t.Errorf("the trunk is %v; the text is %v", s.Trunk, want)
			}
			// Behind the prompt each token of the text is run once, and each draft that was not accepted at most once.
			if most := len(want) + 24*(4-c.accepted); len(m.Ran) > most {
				t.Errorf("%d rows were added, more than %d", len(m.Ran), most)
			}
		})
	}
}

// TestDeeper: the rows before a draft that goes further go with it, in one pass.
func TestDeeper(t *testing.T) {
	var rows []string
	m := counting(&rows)
	x := openS2d(t, "s2d:exits=1", m, 4)
	x.Draft(t, 3) // 4 and 5 stop behind a layer, 6 does not
	if passes := m.Calls; passes != 4 {
		t.Errorf("%d passes, want 4", passes)
	}
	x.Add(5, 6, 7, 8) // 7 has not been run
	x.Draft(t, 1)     // 7 and 8 stop behind a layer
	if passes := m.Calls; passes != 5 {
		t.Errorf("%d passes, want 5", passes)
	}
	if s := sequence(x); len(s.Trunk) != 0 || s.Live() != 5 {
		t.Errorf("a trunk of %v and %d rows", s.Trunk, s.Live())
	}
}

func TestFullDepth(t *testing.T) {
	var rows, others []string
	m, other := counting(&rows), counting(&others)
	x, y := openS2d(t, "s2d:threshold=1", m, 4), openS2d(t, "s2d:exits=3+threshold=1", other, 4)
	if a, b := growtest.IDs(x.Draft(t, 9)), growtest.IDs(y.Draft(t, 9)); !slices.Equal(a, b) || len(a) != 9 || m.Calls != other.Calls {
		t.Errorf("%v in %d passes, %v in %d", a, m.Calls, b, other.Calls)
	}
}

func TestS2dFails(t *testing.T) {
	var rows []string
	m := counting(&rows)
	x := openS2d(t, "s2d", m, 4)
	x.Draft(t, 2)
	m.Fail = errors.New("broken")
	tree := method.NewTree(8, s2dVocabulary)
	tree.Reset(4, method.NewRates(1))
	if err := x.Drafter.Draft(t.Context(), tree); !errors.Is(err, m.Fail) {
		t.Errorf("error %v", err)
	}
	m.Fail = nil
	x.Add(5)
	if got := growtest.IDs(x.Draft(t, 3)); !slices.Equal(got, []token.ID{6, 7, 8}) {
		t.Errorf("after a failed step: %v", got)
	}
	if err := x.Drafter.(method.Closer).Close(); err != nil || !sequence(x).Shut {
		t.Errorf("closed: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for option, want := range map[string]string{
		"exits=1": "exits=1", "exits=01/2": "exits=1/2", "threshold=0.50": "threshold=0.5", "threshold=0.3+exits=1/3": "exits=1/3+threshold=0.3",
		"exits=1/2/3+threshold=0.5/0.5/0.4": "exits=1/2/3+threshold=0.5/0.5/0.4", "exits=1/2+threshold=1/1": "exits=1/2+threshold=1", "threshold=0": "threshold=0",
	} {
		if i, err := method.Find("s2d:" + option); err != nil || i.Name != "s2d:"+want {
			t.Errorf("%s: %s, %v", option, i.Name, err)
		}
	}
	for _, option := range []string{
		"", "exits", "exits=", "exits=0", "exits=-1", "exits=2/1", "exits=1/1", "exits=1/", "exits=1/2/3/4/5/6/7/8/9", "exits=1+exits=2", "exits=99999999999999999999",
		"threshold=", "threshold=1.01", "threshold=-0.1", "threshold=NaN", "threshold=0.505", "threshold=0.5/0.5", "exits=1+threshold=0.1/0.2", "exits=1/2/3+threshold=0.1/0.2", "layers=3",
	} {
		if _, err := method.Find("s2d:" + option); err == nil || !strings.Contains(err.Error(), "use exits=L/M") {
			t.Errorf("%q: %v", option, err)
		}
	}
	var rows []string
	m := counting(&rows)
	for name, fits := range map[string]bool{"s2d:exits=3": true, "s2d:exits=4": false, "s2d:exits=1/4+threshold=0": false} {
		info, err := method.Find(name)
		if err == nil {
			_, err = info.Open(method.Env{Vocabulary: s2dVocabulary, Draft: m})
		}
		if (err == nil) != fits {
			t.Errorf("%s: %v", name, err)
		}
	}
	for layers, fits := range map[int]bool{1: false, 2: true} {
		m.Dims.Layers = layers
		if err := s2dMeets(method.Env{Vocabulary: s2dVocabulary, Draft: m}); (err == nil) != fits || err != nil && !errors.Is(err, method.ErrNeeds) {
			t.Errorf("%d layers: %v", layers, err)
		}
	}
	if err := s2dMeets(method.Env{Vocabulary: s2dVocabulary}); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("without a draft model: %v", err)
	}
}
