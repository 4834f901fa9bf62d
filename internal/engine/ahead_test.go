package engine_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
)

// counting is a stage that allows the tokens of one residue, by the number of tokens before, and fails behind fails of them. It
// knows what was prepared.
type counting struct {
	prepared map[sample.StageState]bool
	ready    *atomic.Int32 // draws that found their state prepared
	late     *atomic.Int32
	panics   bool
}

func (c *counting) Start([]token.ID) sample.StageState {
	c.prepared = map[sample.StageState]bool{}
	return 0
}

func (c *counting) Next(s sample.StageState, id token.ID) sample.StageState {
	return (s*31+sample.StageState(id))%997 + 1
}

func (c *counting) Allows(s sample.StageState, id token.ID) bool { return (int(id)+int(s))%3 != 0 }

func (c *counting) Forced(sample.StageState) []token.ID { return nil }

func (c *counting) Prepare(s sample.StageState) {
	if c.panics {
		panic("not prepared")
	}
	c.prepared[s] = true // the race detector sees it where another method runs beside
}

func (c *counting) Apply(s sample.StageState, logits []float32) {
	if c.prepared[s] {
		c.ready.Add(1)
	} else {
		c.late.Add(1)
	}
	for id := range logits {
		if !c.Allows(s, token.ID(id)) {
			logits[id] = float32(math.Inf(-1))
		}
	}
}

func (c *counting) Fork(s sample.StageState) (sample.Stage, sample.StageState) {
	f := *c
	f.prepared = map[sample.StageState]bool{}
	return &f, s
}

// TestPrepared expects a stage to have prepared for every draw while a step ran, with drafts and without, and the text to be the same
// whether it does or panics.
func TestPrepared(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var want []sample.Token
	for _, drafts := range []bool{false, true} {
		for _, panics := range []bool{false, true} {
			e := newEngine(t, engine.Config{})
			c := &counting{ready: &atomic.Int32{}, late: &atomic.Int32{}, panics: panics}
			s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 5}, Stages: []sample.Stage{c}})
			if err != nil {
				t.Fatal(err)
			}
			if drafts {
				d := drafting(t, e, &drafter{draft: func(d *drafter, tree *method.Tree) {
					for id := range token.ID(9) {
						tree.Add(tree.Add(method.Root, id, 0, 0.5), id+1, 0, 0.5)
					}
				}})
				cheapRows(e)
				if err := s.SetDrafting(d, nil); err != nil {
					t.Fatal(err)
				}
			}
			got := draw(t, s, 60, text(20))
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("drafts %v, panics %v: %v, want %v", drafts, panics, got, want)
			}
			if ready, late := c.ready.Load(), c.late.Load(); panics && ready > 0 || !panics && (late > 0 || ready < 60) {
				t.Errorf("drafts %v, panics %v: %d draws found their state prepared, %d did not", drafts, panics, ready, late)
			}
		}
	}
}
