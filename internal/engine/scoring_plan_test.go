package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"grove/internal/text/token"
)

// TestPlanBatches runs the batches of random continuations on paper: each token but the first is scored once, by the row of the tokens before it,
// no batch has more rows than a step, and continuations that begin alike share rows.
func TestPlanBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 9).Draw(t, "most")
		var all [][]token.ID
		for range rapid.IntRange(1, 8).Draw(t, "continuations") {
			ids := rapid.SliceOfN(rapid.Map(rapid.Int32Range(0, 2), func(id int32) token.ID { return token.ID(id) }), 1, 20)
			all = append(all, ids.Draw(t, "ids"))
		}
		scored := make([][]bool, len(all))
		for i, ids := range all {
			scored[i] = make([]bool, len(ids))
		}
		var trunk []token.ID // that batches have committed
		for i, b := range planBatches(all, most) {
			if len(b.rows) == 0 || len(b.rows) > most {
				t.Fatalf("a batch of %d rows, with %d at most", len(b.rows), most)
			}
			if b.before == 0 {
				trunk = nil
			}
			if len(trunk) != b.before {
				t.Fatalf("batch %d goes on from %d tokens of %d", i, b.before, len(trunk))
			}
			texts := make([][]token.ID, len(b.rows)) // behind the prefix, of each row
			for n, r := range b.rows {
				up := trunk
				if r.parent >= 0 {
					up = texts[r.parent]
				}
				texts[n] = append(slices.Clip(up), r.id)
			}
			for _, r := range b.reads {
				if want := all[r.continuation][:r.at]; !slices.Equal(texts[r.row], want) {
					t.Fatalf("token %d of continuation %d is scored behind %v, want %v", r.at, r.continuation, texts[r.row], want)
				}
				if scored[r.continuation][r.at] {
					t.Fatalf("token %d of continuation %d is scored twice", r.at, r.continuation)
				}
				scored[r.continuation][r.at] = true
			}
			for n, text := range texts {
				if slices.ContainsFunc(texts[:n], func(o []token.ID) bool { return slices.Equal(o, text) }) {
					t.Fatalf("batch %d computes %v twice", i, text)
				}
			}
			if b.commit {
				trunk = texts[len(texts)-1]
			}
		}
		for i, of := range scored {
			if slices.Contains(of[1:], false) {
				t.Fatalf("a token of continuation %d is not scored: %v", i, of)
			}
		}
	})
}
