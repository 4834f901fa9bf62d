package hmm

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/text/token"
)

// TestBits compares the bits of a table, and of the scores along a text, with those of an x86 processor: a draw that looks ahead depends
// on no processor. They change with the numerics version alone.
func TestBits(t *testing.T) {
	const states, want = 7, uint64(0x819b68ee4d5fe1e6)
	v := words(t, true, "a", "b", "ab", "c", "ba")
	rng := rand.New(rand.NewPCG(5, 6))
	fill := func(rows, cells, step, row int) []float32 { // each row's cells, step apart, sum to 1
		p := make([]float32, rows*cells)
		for r := range rows {
			sum := float32(0)
			for c := range cells {
				p[r*row+c*step] = float32(1 + rng.IntN(1000))
				sum += p[r*row+c*step]
			}
			for c := range cells {
				p[r*row+c*step] /= sum
			}
		}
		return p
	}
	m, err := New(fill(1, states, 1, 0), fill(states, states, 1, states), fill(states, v.Size(), states, 1))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Compile(v, list{"ab abcab bab abba cacacab"}, m, 30)
	if err != nil {
		t.Fatal(err)
	}
	h := fnv.New64a()
	add := func(bits uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, bits)) }
	for _, l := range a.levels {
		for _, s := range l.scale {
			add(math.Float64bits(s))
		}
		for _, x := range l.value {
			add(uint64(math.Float32bits(x)))
		}
	}
	add(math.Float64bits(a.LogProbability()))
	s := NewStage(a)
	logits := make([]float32, v.Size())
	at := s.Start(nil)
	for _, id := range []token.ID{0, 1, 3} {
		for i := range logits {
			logits[i] = float32(i) / 8
		}
		s.Apply(at, logits)
		for _, l := range logits {
			add(uint64(math.Float32bits(l)))
		}
		at = s.Next(at, id)
	}
	if got := h.Sum64(); got != want {
		t.Errorf("the bits have the digest %#x, want %#x", got, want)
	}
}
