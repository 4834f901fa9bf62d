package grow

import (
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// TestBeside: rows beside a pass run once, behind its own, and do not live on as drafts.
func TestBeside(t *testing.T) {
	m := growtest.Cycle(9, 1)
	r := &Rows{Trunk: m.Sequence(1, 2), Size: m.Size()}
	r.Vocabulary(9)
	r.Beside = []method.Row{{Row: forest.Row{ID: 5, Want: forest.Want{Logits: true}}}}
	for _, id := range []token.ID{3, 4} {
		if err := r.Run(t.Context(), []LiveRow{{ID: id, Parent: None}}); err != nil {
			t.Fatal(err)
		}
		if got := r.Logits(0); slices.Index(got, slices.Max(got)) != int(id)+1 {
			t.Errorf("behind %d: %v", id, got)
		}
		if got := len(r.got); id == 3 && (got != 2 || slices.Index(r.Logits(1), slices.Max(r.Logits(1))) != 6) {
			t.Errorf("%d results of a row and one beside it", got)
		}
	}
	if want := []token.ID{3, 5, 4}; !slices.Equal(m.Ran, want) || len(r.Live) != 2 {
		t.Errorf("%v ran, want %v; %d live", m.Ran, want, len(r.Live))
	}
}
