package sample

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// lost is a stage that is at a loss behind token 2, complete behind token 3, and prepares.
type lost struct{ prepared []StageState }

var errLost = errors.New("byte 7: nothing may follow")

func (l *lost) Start([]token.ID) StageState               { return 0 }
func (l *lost) Next(_ StageState, id token.ID) StageState { return StageState(id) }
func (l *lost) Prepare(s StageState)                      { l.prepared = append(l.prepared, s) }
func (l *lost) Ended(s StageState) bool                   { return s == 3 }

func (l *lost) Apply(s StageState, logits []float32) {
	if s == 2 {
		for i := range logits {
			logits[i] = -inf
		}
	}
}

func (l *lost) Err(s StageState) error {
	if s == 2 {
		return errLost
	}
	return nil
}

// TestFailingStage expects a stage's own error where it is at a loss, of a draw and of probabilities, and of no other state.
func TestFailingStage(t *testing.T) {
	stage := &lost{}
	c := newChain(t, Settings{Stages: []Stage{stage}}, 5)
	c.Begin([]token.ID{1})
	bad, end := c.Next(0, 2), c.Next(0, 3)
	_, err := c.Draw(bad, five, 1)
	if !errors.Is(err, errLost) || errors.Is(err, ErrAllMasked) || !strings.Contains(err.Error(), "lost: byte 7") {
		t.Errorf("a draw where the stage is at a loss: %v", err)
	}
	if err := c.Probs(make([]float64, 5), bad, five, 1); !errors.Is(err, errLost) {
		t.Errorf("probabilities where the stage is at a loss: %v", err)
	}
	if _, err := c.Draw(end, five, 1); err != nil {
		t.Errorf("a draw behind another token: %v", err)
	}
	if c.Ended(0) || c.Ended(bad) || !c.Ended(end) {
		t.Error("the text is complete behind token 3, and nowhere else")
	}
	c.Prepare(0, end)
	if c.Wait(); !c.Prepares() || !slices.Equal(stage.prepared, []StageState{0, 3}) {
		t.Errorf("prepared %v, want 0 and 3", stage.prepared)
	}
	if c := newChain(t, Settings{Params: Params{Temperature: 1}}, 5); c.Prepares() || c.Ended(0) {
		t.Error("a chain without stages prepares or is complete")
	}
}
