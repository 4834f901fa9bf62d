package diffuse

import (
	"math"
	"slices"
	"testing"

	"grove/internal/text/token"
)

// TestExplore follows branches on the toy: an unsure place is tried with both of its tokens while others are fixed.
func TestExplore(t *testing.T) {
	for _, c := range []struct {
		policy, want string
		s            Settings
		rows         int
		wrong        bool
	}{
		{policy: "ete", want: "0,3,6/2,4/1,5/7", rows: 64},
		{policy: "ete:branches=1,least=9", want: "0,3,6/2,4/1,5/7", rows: 64},
		{policy: "ete:least=3,near=1", want: "0,3,6/2,4/1,5,7", rows: 64},
		{policy: "ete:least=3", want: "0,3,6/2,4/1,5,7", rows: 64, wrong: true}, // 5 is tried while 4 was a mask
		{policy: "ete", s: Settings{Block: 4}, want: "0,3,6/2,4/1,5//7", rows: 64},
		{policy: "ete:least=3,near=1", s: Settings{Block: 4, Cache: "prefix"}, want: "0,3,6/2,4/1,5,7", rows: 16 + 8 + 16},
	} {
		m := &toy{}
		c.s.Policy = c.policy
		got, g := trace(t, m, c.s)
		if rows := g.rows; got != c.want || right(g) == c.wrong || rows != c.rows {
			t.Errorf("%s %+v: %s, place 5 right: %v, %v rows; want %s, %d", c.policy, c.s, got, right(g), m.runs, c.want, c.rows)
		}
	}
}

// TestExploreRoom: where a pass has no room for two branches there is none.
func TestExploreRoom(t *testing.T) {
	g, err := New(slices.Repeat([]token.ID{15}, 8), Settings{Length: 8, Mask: toyMask, Policy: "ete:least=3,near=1"}, &narrow{toy{t: t, prompt: 8}}, greedy{})
	if err != nil {
		t.Fatal(err)
	}
	for !g.Done() {
		if err := g.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if passes, rows := g.pass, g.rows; passes != 4 || rows != 64 {
		t.Errorf("%d passes of %d rows", passes, rows)
	}
}

// narrow has room for one canvas of the toy.
type narrow struct{ toy }

func (*narrow) Rows() int { return 31 }

// TestBound: the information of each pass and of the canvas, and the passes that it takes at least.
func TestBound(t *testing.T) {
	_, g := trace(t, &toy{}, Settings{Policy: "static"})
	if math.Abs(g.Stats().Information-1.372) > 5e-4 || g.Stats().Bound != 0 {
		t.Errorf("static: %.4f nats, %d passes at least", g.Stats().Information, g.Stats().Bound)
	}
	for _, policy := range []string{"factor", "ete"} {
		_, g := trace(t, &toy{}, Settings{Policy: policy})
		rounds := make([]float64, 4)
		for _, p := range g.canvas {
			rounds[p.Pass] -= math.Log(p.P)
		}
		for i, want := range []float64{.218, .450, .361, .342} {
			if math.Abs(rounds[i]-want) > 5e-4 {
				t.Errorf("%s: pass %d has %.4f nats, want %.3f", policy, i, rounds[i], want)
			}
		}
		if math.Abs(g.Stats().Information-1.372) > 1e-3 || g.Stats().Bound != 2 {
			t.Errorf("%s: %.4f nats, %d passes at least", policy, g.Stats().Information, g.Stats().Bound)
		}
	}
	if _, g := trace(t, &toy{}, Settings{Policy: "factor:f=0.5"}); g.Stats().Bound != int(math.Ceil(2*g.Stats().Information)) {
		t.Errorf("factor of 0.5: %.4f nats, %d passes at least", g.Stats().Information, g.Stats().Bound)
	}
	if _, g := trace(t, &toy{}, Settings{Policy: "factor:f=2"}); g.Stats().Bound != 0 {
		t.Errorf("a factor above 1 has a bound of %d", g.Stats().Bound)
	}
}
