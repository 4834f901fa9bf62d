package modeltest

import (
	"math"
	"math/rand/v2"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/oracle"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/tensor"
)

// TestHybridFolders opens folders of Hugging Face with recurrent layers and compares their logits with the oracle's.
func TestHybridFolders(t *testing.T) {
	for _, class := range []string{
		"MambaForCausalLM", "Mamba2ForCausalLM", "JambaForCausalLM", "FalconH1ForCausalLM", "GraniteMoeHybridForCausalLM", "NemotronHForCausalLM",
	} {
		t.Run(class, func(t *testing.T) {
			tokenizer, err := gguf.Open("testdata/llama-tied.gguf")
			if err != nil {
				t.Fatal(err)
			}
			defer tokenizer.Close()
			folder, err := hftest.From(tokenizer)
			if err != nil {
				t.Fatal(err)
			}
			if err := folder.Become(class); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := folder.Write(dir); err != nil {
				t.Fatal(err)
			}
			file, err := hf.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { file.Close() })
			for i, v := range file.Tensors { // the oracle reads them all
				if file.Tensors[i], err = file.Load(v); err != nil {
					t.Fatal(err)
				}
			}
			o, err := oracle.New(file)
			if err != nil {
				t.Fatal(err)
			}
			r := New(t, file, Config{CacheType: tensor.F32, Context: 128})
			ids := randomIDs(rand.New(rand.NewPCG(3, 4)), 40, r.Model.Info().Vocabulary)
			var plain []int
			for _, id := range ids {
				plain = append(plain, int(id))
			}
			got := r.Reference(ids)
			var worst, scale float64
			for i, row := range o.Forward(plain) {
				for v, x := range row {
					worst, scale = max(worst, math.Abs(x-float64(got[i][v]))), max(scale, math.Abs(x))
				}
			}
			if !(worst <= 1e-4*scale) {
				t.Errorf("values differ by %g; the largest is %g", worst, scale)
			}
		})
	}
}

// TestHybridBits checks the equalities of bits with weights of other types than those of archs, and with mixtures.
func TestHybridBits(t *testing.T) {
	for n, s := range []Spec{
		{Arch: "jamba", Type: tensor.Q8_0, Experts: 6, ExpertsPerToken: 2}, {Arch: "granitehybrid", Type: tensor.Q4_0, Experts: 6, ExpertsPerToken: 2},
		{Arch: "nemotron_h_moe", Type: tensor.Q8_0, Layers: 6, Scan: synthetic.Scan{Narrow: 32}},
		{Arch: "falcon-h1", Type: tensor.F16}, {Arch: "mamba2", Type: tensor.BF16}, {Arch: "sambay", Type: tensor.Q4_0, Layers: 12},
	} {
		t.Run(s.Arch, func(t *testing.T) {
			file := s.File(t)
			archBits(t, New(t, file, Config{CacheType: tensor.F32, Context: 256}), file, n)
		})
	}
}
