package engine_test

import (
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/method"
)

// TestPrime: the successors of tokens are the likeliest tokens behind each by itself.
func TestPrime(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 2})
	const begin = 7
	var ids []token.ID
	for id := range token.ID(48) {
		ids = append(ids, 47-id)
	}
	n := 0
	err := method.Prime(t.Context(), e.Model(), begin, ids, 0, func(rows []method.RowResult) {
		for _, r := range rows {
			at := 0
			err := e.Logits(t.Context(), []token.ID{begin, ids[n]}, 1, func(logits []float32) error {
				order := make([]int, len(logits))
				for i := range order {
					order[i] = i
				}
				slices.SortStableFunc(order, func(a, b int) int { return map[bool]int{true: -1, false: 1}[logits[a] >= logits[b]] })
				for i, top := range r.Top {
					if int(top.ID) != order[i] || top.Logit != logits[order[i]] {
						t.Errorf("token %d: place %d has %v, want %d with %v", ids[n], i, top, order[i], logits[order[i]])
					}
				}
				at++
				return nil
			})
			if err != nil || at != 1 || r.ID != ids[n] || len(r.Top) != method.SuccessorWidth {
				t.Errorf("token %d: %+v, %v", ids[n], r, err)
			}
			n++
		}
	})
	if err != nil || n != len(ids) {
		t.Fatal(n, err)
	}
	if e.Load().Open != 0 {
		t.Error("its sequence is open")
	}
	if err := method.Prime(t.Context(), e.Model(), token.None, []token.ID{99}, 0, func([]method.RowResult) {}); err == nil {
		t.Error("a token that is none is primed")
	}
}
