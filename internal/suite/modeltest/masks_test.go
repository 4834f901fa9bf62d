package modeltest

import (
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
	"grove/internal/oracle"
	"grove/internal/weights/tensor"
)

// TestMasksOracle compares logits of rows that see each other in some layers, and what is before them in the others, with float64, also within a window.
func TestMasksOracle(t *testing.T) {
	for name, spec := range map[string]Spec{"qwen2": {Arch: "qwen2", Layers: 4}, "gemma2": {Arch: "gemma2", Layers: 4, Window: 200}} {
		t.Run(name, func(t *testing.T) {
			file := spec.File(t)
			o, err := oracle.New(file)
			if err != nil {
				t.Fatal(err)
			}
			r := New(t, file, Config{CacheType: tensor.F32, Context: 256})
			ids := randomIDs(rand.New(rand.NewPCG(3, 4)), 90, r.Model.Info().Vocabulary)
			plain := make([]int, len(ids))
			for i, id := range ids {
				plain[i] = int(id)
			}
			for _, causal := range []forest.Layers{{}, forest.LayerRange(0, 2), forest.LayerRange(2, 4), forest.LayerRange(0, 1).With(2), forest.LayerRange(0, 4)} {
				o.Full = make([]bool, 4)
				for l := range o.Full {
					o.Full[l] = !causal.Has(l)
				}
				s, parent := r.NewSeq(""), forest.Trunk
				for _, id := range ids {
					parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: id, Block: 1, Causal: causal, Want: forest.Want{Logits: true}})
				}
				r.Forward()
				var worst, scale float64
				for i, row := range o.Forward(plain) {
					for v, x := range row {
						worst, scale = max(worst, math.Abs(x-float64(r.Exec.Result(i).Logits[v]))), max(scale, math.Abs(x))
					}
				}
				if !(worst <= 1e-4*scale) {
					t.Errorf("causal layers %b: logits differ by %g; the largest is %g", causal, worst, scale)
				}
				r.Close(s)
			}
		})
	}
}
