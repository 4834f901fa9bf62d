// tree.go gives package bytewise the probabilities of tokens behind the text of a sequence.

package bytewise

import (
	"context"
	"slices"

	"grove/internal/engine"
	"grove/internal/stat"
	"grove/internal/text/token"
)

// TreeRows is the [bytewise.Model] of a sequence: its paths begin behind the text that the sequence has when it is made. The probabilities are those of the model once
// penalties and stages have changed the logits, at temperature 1. It moves the end of the text, which shares its pages with what it was before, so that each row equals the
// same tokens run alone. It is for the sequence's goroutine, and nothing else moves the text meanwhile.
type TreeRows struct {
	Forwards int // steps that rows were asked of
	Tokens   int // rows that these had

	s    *engine.Sequence
	base int // tokens of the text before the paths
}

// NewTree returns the rows behind a sequence's text.
func NewTree(s *engine.Sequence) *TreeRows { return &TreeRows{s: s, base: s.Len()} }

// Probs implements [bytewise.Model].
func (r *TreeRows) Probs(ctx context.Context, paths [][]token.ID) ([][]float64, error) {
	order := make([]int, len(paths))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return slices.Compare(paths[a], paths[b]) }) // those with a beginning in common follow each other
	all := make([][]float64, len(paths))
	for _, i := range order {
		if err := r.move(paths[i]); err != nil {
			return nil, err
		}
		logits, err := r.s.Processed(ctx)
		if err != nil {
			return nil, err
		}
		all[i] = stat.Softmax(logits)
	}
	return all, nil
}

// move makes a path the end of the text.
func (r *TreeRows) move(path []token.ID) error {
	had, same := r.s.Tokens()[r.base:], 0
	for same < min(len(had), len(path)) && had[same] == path[same] {
		same++
	}
	if same == len(had) && same == len(path) {
		return nil
	}
	if same < len(had) {
		if err := r.s.Truncate(r.base + same); err != nil {
			return err
		}
	}
	for _, id := range path[same:] {
		if err := r.s.Follow(id); err != nil {
			return err
		}
	}
	r.Forwards, r.Tokens = r.Forwards+1, r.Tokens+max(1, len(path)-same)
	return nil
}

// End gives the sequence the text that it had when the rows were made.
func (r *TreeRows) End() error { return r.s.Truncate(r.base) }
