package modeltest

import (
	"math"
	"path/filepath"
	"testing"

	"grove/internal/oracle"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// TestSharpArchs compares the models whose attention has no scale with the oracle, and the oracle, with GELU rounded as llama.cpp
// rounds it, with that program's logits. Products of normed heads are large there, and shares of the softmax near 0 and 1: a change of all
// embeddings by 4e-7 moves gemma4's logits as far as the second tolerance allows, once GELU is rounded.
func TestSharpArchs(t *testing.T) {
	for name, rounded := range map[string]float64{"gemma3n-dense": 0.003, "gemma4-dense": 0.02} {
		t.Run(name, func(t *testing.T) {
			file, err := gguf.Open(filepath.Join(archsDir, name+".gguf"))
			if err != nil {
				t.Skipf("%s is not here", archsDir)
			}
			t.Cleanup(func() { file.Close() })
			for i := range file.Tensors {
				leaveOut(&file.Tensors[i], unread[name])
			}
			r := New(t, file, Config{CacheType: tensor.F32, Context: 256})
			ids, want := archLogits(t, name, r.Model.Info().Vocabulary)
			o, err := oracle.New(file)
			if err != nil {
				t.Fatal(err)
			}
			var plain []int
			for _, id := range ids {
				plain = append(plain, int(id))
			}
			exact := o.Forward(plain)
			o.Half = true
			half := o.Forward(plain)
			var got, peer float64
			for i, row := range r.Reference(ids) {
				for v := range row {
					got, peer = max(got, math.Abs(float64(row[v])-exact[i][v])), max(peer, math.Abs(want[i][v]-half[i][v]))
				}
			}
			t.Logf("largest difference from the oracle %.2g, of llama.cpp from the oracle with GELU in half floats %.2g", got, peer)
			if !(got <= 1e-3) || !(peer <= rounded) {
				t.Errorf("logits differ by %g from the oracle, and llama.cpp's by %g from the oracle with GELU in half floats", got, peer)
			}
		})
	}
}
