package modeltest

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"grove/internal/oracle"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// decoders are the decoders that tests compare with the oracle where no golden does: texts longer than the window, both sets of
// factors of LongRoPE, heads that rotate in part, OLMo 3's two rotations, Phi 3.5 MoE as it is published, and Gemma 1.
var decoders = []struct {
	name    string
	spec    Spec
	context int
	long    bool
}{
	{"gemma", Spec{Arch: "gemma", Tied: true}, 0, false},
	{"gemma2, window", Spec{Arch: "gemma2", Layers: 4, Window: 30}, 0, false},
	{"olmo2", Spec{Arch: "olmo2"}, 0, false},
	{"olmo3", Spec{Arch: "olmo2", Layers: 5, Window: 30}, 0, false},
	{"olmo3, window never filled", Spec{Arch: "olmo2", Layers: 5, Window: 5000}, 0, false},
	{"phi3, window", Spec{Arch: "phi3", Window: 30}, 0, false},
	{"phi3, short factors", Spec{Arch: "phi3", LongRope: 100}, 100, false},
	{"phi3, long factors", Spec{Arch: "phi3", LongRope: 100}, 101, true},
	{"phimoe, short factors", Spec{Arch: "phimoe", LongRope: 100}, 100, false},
	{"phimoe, long factors", Spec{Arch: "phimoe", LongRope: 100}, 101, true},
	{"qwen2", Spec{Arch: "qwen2"}, 0, false},
	{"qwen3", Spec{Arch: "qwen3"}, 0, false},
}

// TestDecoders compares decoders with the oracle.
func TestDecoders(t *testing.T) {
	for _, tt := range decoders {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Type = tensor.F32
			file := tt.spec.File(t)
			o, err := oracle.New(file)
			if err != nil {
				t.Fatal(err)
			}
			o.Long = tt.long
			r := New(t, file, Config{Context: tt.context})
			text := randomIDs(rand.New(rand.NewPCG(3, 4)), 90, 48)
			ids := make([]int, len(text))
			for i, id := range text {
				ids[i] = int(id)
			}
			got := r.Reference(text)
			var most float64
			for i, want := range o.Forward(ids) {
				most = max(most, worst(got[i], want))
			}
			t.Logf("largest difference %.2g of the largest logit", most)
			if !(most < 1e-5) {
				t.Errorf("logits differ by %.2g of the largest", most)
			}
		})
	}
}

// TestOracleDecoders compares the oracle's decoders with the goldens.
func TestOracleDecoders(t *testing.T) {
	for _, name := range []string{"gemma2", "olmo2", "phi3", "qwen2", "qwen3"} {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, name)
			f, err := gguf.Open(filepath.Join("testdata", name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			o, err := oracle.New(f)
			if err != nil {
				t.Fatal(err)
			}
			ids := make([]int, len(g.Tokens))
			for i, id := range g.Tokens {
				ids[i] = int(id)
			}
			for i, want := range o.Forward(ids) {
				if w := worst(g.logits[i], want); !(w < 1e-5) {
					t.Fatalf("logits at %d differ by %.2g of the largest", i, w)
				}
			}
		})
	}
}
