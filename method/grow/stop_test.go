package grow

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// told is a rule that ends chains with draft number last, and keeps what it is told.
type told struct {
	last     int
	began    int
	drafts   []ChainDraft
	followed [][3]int
}

func (s *told) Begin() { s.began++ }

func (s *told) Ends(d ChainDraft) bool {
	d.State = append([]float32(nil), d.State...)
	s.drafts = append(s.drafts, d)
	return d.Depth == s.last
}

func (s *told) Followed(drafts, judged, accepted int) {
	s.followed = append(s.followed, [3]int{drafts, judged, accepted})
}

// TestStop: a rule is told of each draft with the state behind the token before it, ends the chain, and is told what followed.
func TestStop(t *testing.T) {
	for _, shape := range []Shape{{Ranks: []int{1}, Beam: 1, Depth: 6, State: true}, {Draw: WithoutReplacement, Ranks: []int{1}, Beam: 1, Depth: 6, State: true}} {
		m := growtest.Cycle(10, 9)
		m.State = func(path []token.ID) []float32 { return []float32{float32(path[len(path)-1])} }
		rule := &told{last: 3}
		shape.Stop = func() Stop { return rule }
		b := NewBranch(method.Env{Draft: m}, nil)
		d := NewDrafter(shape, b, method.Env{Vocabulary: 10})
		d.grower.passes.seconds = 1e9 // passes never pay
		x := &growtest.Text{Drafter: d}
		x.Noise.Sampling = sample.Params{Temperature: 0.01, Seed: 1}
		x.Begin(t, 4, 7)
		if got := growtest.IDs(x.Draft(t, 64)); !cmp.Equal(got, []token.ID{8, 9, 0}) {
			t.Errorf("drafts %v", got)
		}
		for i, state := range []float32{7, 8, 9} {
			if got := rule.drafts[i]; got.Depth != i+1 || got.State[0] != state || got.P < 0.99 {
				t.Errorf("draft %d: %+v", i, got)
			}
		}
		x.Add(8, 1, 0) // one of three, another token, and one that equals its draft by chance
		x.Add(5)       // behind no chain
		rule.last = 99
		x.Draft(t, 4) // as deep as the tree is
		x.Add(6, 7)   // two of four, and the others are not compared
		x.Draft(t, 64)
		x.Draft(t, 64) // of the first chain nothing is known
		x.Add(8, 9, 0, 1, 2, 3, 4)
		if want := [][3]int{{3, 2, 1}, {4, 2, 2}, {6, 6, 6}}; !cmp.Equal(rule.followed, want) {
			t.Errorf("what followed: %v, want %v", rule.followed, want)
		}
		if x.Begin(t, 1); rule.began != 2 {
			t.Errorf("%d texts began", rule.began)
		}
	}
}
