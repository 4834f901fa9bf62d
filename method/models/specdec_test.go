package models

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// TestRule has the numbers of the paper's rule: with 0.9 for each draft, 1 - 0.9^4 is the first above 0.3, behind draft 5.
func TestRule(t *testing.T) {
	for _, c := range []struct {
		accepted float32
		h        float64
		want     int
	}{{0.9, 0.3, 5}, {0.9, 0.11, 3}, {0.9, 0.09, 2}, {0.9, 1, specdecMost}, {0, 1, specdecMost}, {1, -0.01, fewest}, {0, 0.5, fewest}, {1, 0, specdecMost}} {
		r := &rule{h: c.h, accepted: func([]float32) float32 { return c.accepted }}
		r.Begin()
		for range 2 { // the second chain begins anew
			k := 1
			for !r.Ends(grow.ChainDraft{Depth: k}) {
				k++
			}
			if k != c.want {
				t.Errorf("%v of each draft, h %v: %d drafts, want %d", c.accepted, c.h, k, c.want)
			}
		}
	}
}

// constant is a head that gives every draft the probability 0.9.
func constant() *method.AcceptanceHead {
	w := make([]float32, 2)
	return &method.AcceptanceHead{Width: 2, Weight: [2][]float32{w, w}, Bias: [2]float32{0, 2.1972246}}
}

// TestChain drafts with a head: h ends the chain, and so does the state, which it reads behind the draft before the last.
func TestChain(t *testing.T) {
	wary := &method.AcceptanceHead{Width: 2, Weight: [2][]float32{{0, 0}, {-9, 0}}, Bias: [2]float32{0, 40}} // token 5 and those above are rejected: so 6 is drafted, and no other
	for _, c := range []struct {
		name  string
		head  *method.AcceptanceHead
		depth int
		want  int
	}{
		{"draft-specdec:h=0.3", constant(), 64, 5}, {"draft-specdec:h=1", constant(), 64, specdecMost}, {"draft-specdec:h=-1", constant(), 64, fewest},
		{"draft-specdec:h=0.3", constant(), 3, 3}, {"draft-specdec", wary, 64, 6}, {"draft-specdec:h=0.3", wary, 64, 6},
	} {
		m := growtest.Cycle(30, 3)
		m.State = func(path []token.ID) []float32 { return []float32{float32(path[len(path)-1]), 1} }
		d := growtest.Drafter(t, c.name, method.Env{Vocabulary: 30, Draft: m, AcceptHead: c.head})
		x := &growtest.Text{Drafter: d}
		x.Noise.Sampling = sample.Params{}
		x.Begin(t, 9, 0)
		if got := growtest.IDs(x.Draft(t, c.depth)); len(got) != c.want || got[0] != 1 {
			t.Errorf("%s, %d deep: %v, want %d drafts", c.name, c.depth, got, c.want)
		}
	}
}

func TestSpecdecNeeds(t *testing.T) {
	info, err := method.Find("draft-specdec")
	if err != nil {
		t.Fatal(err)
	}
	m := growtest.Cycle(9, 1)
	for want, e := range map[string]method.Env{"none is given": {Vocabulary: 9}, "the acceptance head is missing": {Vocabulary: 9, Draft: m}} {
		if err := info.CheckNeeds(e); !errors.Is(err, method.ErrNeeds) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, option := range []string{"", "h", "h=", "h=2", "h=0.301", "h=NaN", "h=-1.01", "x=0.3", "h=1e400"} {
		if _, err := method.Find("draft-specdec:" + option); err == nil || !strings.Contains(err.Error(), "use h=X") {
			t.Errorf("option %q: %v", option, err)
		}
	}
	for option, want := range map[string]string{"h=0.30": "h=0.3", "h=-0": "h=0", "h=1": "h=1", "h=0.29": "h=0.29", "h=-1": "h=-1"} {
		if i, err := method.Find("draft-specdec:" + option); err != nil || i.Name != "draft-specdec:"+want {
			t.Errorf("option %q: %s, %v", option, i.Name, fmt.Sprint(err))
		}
	}
}
