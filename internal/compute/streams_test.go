package compute

import (
	"math"
	"slices"
	"testing"

	"grove/internal/kv"
	"grove/internal/par"
)

// TestStreams mixes streams and matches lengths, by hand.
func TestStreams(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	cache, err := kv.New(kv.Config{Layers: []kv.Layer{{KVHeads: 1, KeySize: 4}}, Context: 64, Tokens: 64, Seqs: 1, Scratch: 64})
	if err != nil {
		t.Fatal(err)
	}
	x := NewExec(cache, pool, 4, 1)
	a, c := x.alloc(2, 4), x.alloc(2, 4)
	copy(a.f, []float32{1, 2, 10, 20, 3, 4, 30, 40})
	copy(c.f, []float32{0, 1, 2, 0, 1, 0, 0, -1})
	// row 0: stream 0 gets stream 1, stream 1 twice stream 0; row 1: stream 0 doubles, stream 1 vanishes
	if got, want := x.AddMixed(a, c, 2).f, []float32{11, 22, 12, 24, 6, 8, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("mixed streams are %v, want %v", got, want)
	}
	like := x.alloc(2, 2)
	copy(like.f, []float32{3, 4, 0, 0})
	copy(a.f, []float32{6, 8, 0, 0.001, 3, 4, 5, 12})
	for i, got := range x.MatchLength(a, 2, like, 1e-5).f {
		want := []float64{3, 4, 0, 0.001 * math.Sqrt(12.5) / math.Sqrt(1e-5), 0, 0, 0, 0}[i]
		if math.Abs(float64(got)-want) > 1e-5 {
			t.Errorf("value %d of matched lengths is %v, want %v", i, got, want)
		}
	}
}
