package verify

import (
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/text/token"
)

// rule returns a rule with its options.
func rule(t *testing.T, name string) Rule {
	t.Helper()
	r, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestThreshold expects drafts that the target does not draw to be accepted by their rank and their distance from the
// likeliest token.
func TestThreshold(t *testing.T) {
	p := []float64{0.6, 0.3, 0.1, 0} // logits 0.69 and 1.79 below the first, and one that is masked
	for _, c := range []struct {
		options string
		drafts  []token.ID
		want    []token.ID
	}{
		{"beta=1,tau=inf", []token.ID{0, 1}, []token.ID{0}},
		{"beta=1,tau=inf", []token.ID{1}, nil},
		{"beta=2,tau=0.7", []token.ID{1}, []token.ID{1}},
		{"beta=2,tau=0.69", []token.ID{1}, nil},
		{"beta=2,tau=9", []token.ID{2}, nil},
		{"beta=3,tau=1.8", []token.ID{2, 1}, []token.ID{1}}, // the likelier of two
		{"beta=3,tau=1.8", []token.ID{2}, []token.ID{2}},
		{"tau=1.7", []token.ID{2}, nil},
		{"beta=4,tau=inf", []token.ID{3}, nil}, // never drawn
	} {
		y := newToy(steady(p...), nil, nil)
		y.greedy = true
		for _, id := range c.drafts {
			y.drafts = append(y.drafts, draft{Root, id, 0})
		}
		r := y.run(t, rule(t, "threshold:"+c.options).New(), nil)
		if r.err != nil || !slices.Equal(r.accepted, c.want) || r.next != 0 {
			t.Errorf("%s, drafts %v: %+v, want %v accepted and token 0", c.options, c.drafts, r, c.want)
		}
	}
}

// TestThresholdBounds: within one token and no distance the rule is that of exact greedy decoding, with equal probabilities
// too; within all tokens and any distance it accepts every draft that may be drawn, whether or not it was run.
func TestThresholdBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 300 {
		p := make(table, 4)
		for j := range p {
			p[j] = []float64{float64(1 + r.IntN(3)), float64(1 + r.IntN(3)), float64(1 + r.IntN(3))} // ties
		}
		y := newToy(p, nil, nil)
		y.greedy = true
		for parent := Root; parent < 8; parent++ {
			for _, id := range r.Perm(3)[:r.IntN(3)] {
				if parent < len(y.drafts) {
					y.drafts = append(y.drafts, draft{parent, token.ID(id), 0})
				}
			}
		}
		got, want := y.run(t, rule(t, "threshold:beta=1,tau=0").New(), nil), y.run(t, Match.New(), nil)
		if !got.same(want) {
			t.Errorf("tree %d: %+v, greedy decoding %+v", i, got, want)
		}
		y.drafts = nil
		for depth := range 3 {
			y.drafts = append(y.drafts, draft{depth - 1, token.ID(r.IntN(3)), 0})
		}
		lost := r.IntN(4)
		y.lost = func(_ *toy, node int) bool { return node >= lost }
		all := y.run(t, rule(t, "threshold:beta=3,tau=inf").New(), nil)
		var ids []token.ID
		for _, d := range y.drafts[:min(lost, 3)] {
			ids = append(ids, d.id)
		}
		if !slices.Equal(all.accepted, ids) || lost < 3 && all.next != y.drafts[lost].id {
			t.Errorf("chain %d: %+v of %v, of which %d are run", i, all, y.drafts, lost)
		}
	}
}
