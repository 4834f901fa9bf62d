package method

import (
	"testing"

	"grove/internal/forest"
)

// TestRanParts: a pass counts the parts of layers that any of its rows runs, by their weights.
func TestRanParts(t *testing.T) {
	size := Size{Layers: 4, AttentionShare: 0.25}
	for _, c := range []struct {
		name string
		rows []Row
		want float64 // layers
	}{
		{"all", []Row{{}}, 4},
		{"an exit", []Row{{Row: forest.Row{To: 1}}}, 1},
		{"resumed", []Row{{Row: forest.Row{From: 1, To: 3}}}, 2},
		{"a whole layer", []Row{{Row: forest.Row{Skip: forest.LayerRange(1, 2)}}}, 3},
		{"attention", []Row{{Row: forest.Row{SkipAttention: forest.LayerRange(1, 3)}}}, 3.5},
		{"feed-forward", []Row{{Row: forest.Row{SkipFeedForward: forest.LayerRange(1, 3)}}}, 2.5},
		{"two rows", []Row{{Row: forest.Row{SkipFeedForward: forest.LayerRange(1, 3)}}, {Row: forest.Row{SkipFeedForward: forest.LayerRange(2, 4)}}}, 3.25},
	} {
		var target, module Ran
		target.Pass(c.rows, size, 0)
		module.Pass(c.rows, size, 0.5)
		if target != (Ran{Passes: 1, Rows: len(c.rows), Share: c.want / 4}) || module != (Ran{Passes: 1, Rows: len(c.rows), Layers: c.want / 2}) {
			t.Errorf("%s: %+v on the target, %+v on a module; want %v layers", c.name, target, module, c.want)
		}
	}
}
