package modeltest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
)

// TestSmoothed: a row with a weighted prior is the row whose input is the sum of its embedding and of what the prior expects, in float64 here; beside rows without a prior, and with several threads, it
// has the bits that it has otherwise.
func TestSmoothed(t *testing.T) {
	for _, arch := range []string{"llada", "dream", "rnd1", "sdar"} {
		file := Spec{Arch: arch}.File(t)
		v, _ := file.Tensor("token_embd.weight")
		vocabulary, width := v.Shape[0], v.Shape[1]
		table := func(id, k int) float64 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.Data[4*(id*width+k):])))
		}
		rng := rand.New(rand.NewPCG(5, 6))
		c := newRandomCanvas(rng, 6, 9, vocabulary)
		vectors := make([][]float32, len(c.canvas))
		for i, id := range c.canvas {
			p := &c.priors[i]
			p.Temperature, p.Weight = 1, 0.05*float32(1+i%4)
			sum := 0.0
			for _, l := range p.Logits {
				sum += math.Exp(float64(l))
			}
			vectors[i] = make([]float32, width)
			for k := range vectors[i] {
				x := table(int(id), k)
				for other, l := range p.Logits {
					x += float64(p.Weight) * math.Exp(float64(l)) / sum * table(other, k)
				}
				vectors[i][k] = float32(x)
			}
		}
		run := func(r *Runner, row func(i int) forest.Row) []Bits {
			s := r.NewSeq("")
			defer r.Close(s)
			parent := forest.Trunk
			for _, id := range c.prompt {
				parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: id, Block: 1})
			}
			for i := range c.canvas {
				one := row(i)
				one.Seq, one.Parent, one.Block, one.Want = s, parent, 1, logits
				parent = r.Add(one)
			}
			r.Forward()
			return r.take(len(c.prompt) + len(c.canvas))[len(c.prompt):]
		}
		smoothed := func(i int) forest.Row { return forest.Row{ID: c.canvas[i], Prior: &c.priors[i]} }
		r := New(t, file, Config{})
		got, want := run(r, smoothed), run(r, func(i int) forest.Row { return forest.Row{Vector: vectors[i]} })
		plain := run(r, func(i int) forest.Row { return forest.Row{ID: c.canvas[i]} })
		changed := 0.0
		for i := range got {
			for k, x := range got[i] {
				if d := math.Abs(float64(x - want[i][k])); d > 2e-5*(1+math.Abs(float64(x))) {
					t.Fatalf("%s: row %d, logit %d: %g, want %g", arch, i, k, x, want[i][k])
				}
				changed = max(changed, math.Abs(float64(x-plain[i][k])))
			}
		}
		if changed < 1e-2 {
			t.Errorf("%s: priors change logits by %g at most", arch, changed)
		}
		for i, bits := range run(New(t, file, Config{Threads: 3}), smoothed) {
			if err := bits.Diff(got[i]); err != nil {
				t.Errorf("%s: row %d with three threads: %v", arch, i, err)
			}
		}
	}
}
