package constrain

import (
	"math"
	"slices"
	"testing"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// TestPathStage walks every text of a small set through a chain, and compares the three ways in which the stage says what is
// legal.
func TestPathStage(t *testing.T) {
	const vocab, ending = 8, token.ID(7)
	all := [][]token.ID{{0, 1, 2}, {0, 1, 3}, {2, 0, 1}, {4}, {5, 6}, {5}}
	set, err := PathNewTokens(vocab, all)
	if err != nil {
		t.Fatal(err)
	}
	stage := PathNewStage(set, []token.ID{ending})
	var walk func(seq []token.ID, s sample.StageState)
	found := 0
	walk = func(seq []token.ID, s sample.StageState) {
		logits := make([]float32, vocab)
		stage.Apply(s, logits)
		allowed := 0
		for id := range token.ID(vocab) {
			longer := append(slices.Clone(seq), id)
			begins := func(other []token.ID) bool {
				return len(other) >= len(longer) && slices.Equal(other[:len(longer)], longer)
			}
			want := slices.ContainsFunc(all, begins)
			if id == ending {
				want = slices.ContainsFunc(all, func(other []token.ID) bool { return slices.Equal(other, seq) })
			}
			if got := !math.IsInf(float64(logits[id]), -1); got != want || stage.Allows(s, id) != want {
				t.Fatalf("behind %v: token %d is in the mask: %v, allowed: %v, want %v", seq, id, got, stage.Allows(s, id), want)
			}
			if !want {
				continue
			}
			allowed++
			if id == ending {
				found++
			} else {
				walk(longer, stage.Next(s, id))
			}
		}
		forced := stage.Forced(s)
		if (len(forced) > 0) != (allowed == 1 && !stage.Allows(s, ending)) {
			t.Errorf("behind %v: %d tokens allowed, %v forced", seq, allowed, forced)
		}
		if len(forced) > 0 && len(seq) == 0 {
			t.Errorf("at the start %v is forced", forced)
		}
	}
	walk(nil, stage.Start(nil))
	if found != len(all) {
		t.Errorf("%d sequences end, want %d", found, len(all))
	}
	if s := stage.Next(0, 3); stage.Allows(s, ending) || stage.Allows(s, 0) {
		t.Error("something is allowed behind a token that was not")
	}
	chain, err := sample.NewChain(sample.Settings{Stages: []sample.Stage{stage}}, vocab)
	if err != nil {
		t.Fatal(err)
	}
	chain.Begin([]token.ID{1, 2})
	if ids := chain.Forced(nil, chain.Next(0, 2)); !slices.Equal(ids, []token.ID{0, 1}) {
		t.Errorf("forced behind 2: %v, want 0 and 1", ids)
	}
}
