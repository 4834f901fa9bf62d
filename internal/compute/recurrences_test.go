package compute

import (
	"testing"

	"grove/internal/kernel/scan"
	"grove/internal/kv"
)

// TestRecurrences: weights are read as files have them, channel by channel.
func TestRecurrences(t *testing.T) {
	v := func(f ...float32) Vector { return Vector{F: f} }
	run := func(op scan.Op, rows int, in ...float32) []float32 {
		out := make([]float32, rows*op.Out())
		for part := range op.Parts() {
			op.Advance(part, make([]float32, op.Size()), make([]float32, op.Size()), in, op.Record(), rows, out, op.Out())
		}
		return out
	}
	if got, want := NewDelta(4, 2, 16, 128, false, false).Keeps(), (kv.State{Parts: 8, Size: 16 * 64, Record: 2*2*16 + 4*128 + 4 + 4}); got != want {
		t.Errorf("a delta net keeps %+v, want %+v", got, want)
	}
	for _, c := range []struct {
		name      string
		got, want []float32
	}{
		{"Conv", run(NewConv(v(1, 2, 10, 20), v(0.5, 0.25), 2, 2, false), 2, 3, 4, 5, 6), []float32{6.5, 80.25, 13.5, 160.25}},
		// With dt of 0 nothing decays and nothing is added; the state stays 0.
		{"Mamba1", run(NewMamba1(v(-1, -2, -3, -4), v(2, 3), 2, 2), 1, 5, 7, 0, 0, 1, 1, 1, 1), []float32{10, 21}},
		{"Mamba2", run(NewMamba2(v(-1, -2), v(2, 3), 2, 1, 1, 1), 1, 5, 7, 2, 3, 0, 0), []float32{10, 21}},
		{"Mamba2 without d", run(NewMamba2(v(0, 0), Vector{}, 2, 1, 1, 1), 2, 5, 7, 2, 3, 1, 1, 5, 7, 2, 3, 1, 1), []float32{30, 42, 60, 84}},
		// Value heads 0 to 3 read query heads 0, 0, 1, 1, or 0, 1, 0, 1.
		{"Delta", run(NewDelta(4, 2, 1, 1, false, false), 1, 1, 10, 1, 1, 1, 2, 3, 4, 0, 0, 0, 0, 1, 1, 1, 1), []float32{1, 2, 30, 40}},
		{"Delta, tiled", run(NewDelta(4, 2, 1, 1, false, true), 1, 1, 10, 1, 1, 1, 2, 3, 4, 0, 0, 0, 0, 1, 1, 1, 1), []float32{1, 20, 3, 40}},
	} {
		for i, w := range c.want {
			if c.got[i] != w {
				t.Errorf("%s gives %v, want %v", c.name, c.got, c.want)
				break
			}
		}
	}
}
