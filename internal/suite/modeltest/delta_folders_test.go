package modeltest

import (
	"math"
	"path/filepath"
	"testing"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/tensor"
)

// TestDeltaFolders takes models with delta nets and short convolutions apart as their publishers save them, and opens the folders: tensors
// have the values of the model within a rounding of those that are saved as logarithms or as distances from 1, and logits agree.
func TestDeltaFolders(t *testing.T) {
	vocabulary, tokens := folderVocabulary(t)
	for _, spec := range []Spec{
		{Arch: "lfm2"}, {Arch: "lfm2moe"}, {Arch: "qwen3next"}, {Arch: "qwen35"}, {Arch: "qwen35moe"}, {Arch: "kimi-linear"}, {Arch: "step3", Layers: 4}, {Arch: "qwen35moe", Layers: 4},
	} {
		name, further := spec.Arch, spec.Arch == "qwen35moe" && spec.Layers > 0
		if further {
			name += ", further"
		}
		t.Run(name, func(t *testing.T) {
			spec.Vocab, spec.Context = tokens, 256
			metadata, tensors, err := synthetic.Spec(spec).Parts()
			if err != nil {
				t.Fatal(err)
			}
			f := written(t, metadata, tensors)
			if further { // the last layer attends, so that it can be a predictor's
				f = furtherLayer(t, spec)
			}
			folder, err := hftest.FromDelta(f, vocabulary)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := folder.Write(dir); err != nil {
				t.Fatal(err)
			}
			got, err := hf.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { got.Close() })
			compareTensors(t, got, f)
			config := Config{CacheType: tensor.F32, Context: 64}
			a, b := New(t, got, config), New(t, f, config)
			if x, y := a.Model.Info(), b.Model.Info(); len(x.Predictors) != len(y.Predictors) || further && len(x.Predictors) != 1 {
				t.Errorf("%d predictors, want %d", len(x.Predictors), len(y.Predictors))
			}
			worst, scale := 0.0, 0.0
			want := b.Reference(settingIDs)
			for i, row := range a.Reference(settingIDs) {
				for v, x := range row {
					worst, scale = max(worst, math.Abs(float64(x)-float64(want[i][v]))), max(scale, math.Abs(float64(x)))
				}
			}
			if !(worst <= 1e-4*scale) {
				t.Errorf("logits differ by %g; the largest is %g", worst, scale)
			}
		})
	}
}

// folderVocabulary is the tokenizer of a small folder, and its number of tokens.
func folderVocabulary(t *testing.T) (*hftest.Folder, int) {
	f, err := gguf.Open(filepath.Join("testdata", "llama-tied.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	folder, err := hftest.From(f)
	if err != nil {
		t.Fatal(err)
	}
	return folder, folder.Tensors["model.embed_tokens.weight"].Shape[0]
}

// furtherLayer is a model of four layers, the last of which attends and predicts a further token.
func furtherLayer(t *testing.T, spec Spec) *gguf.File {
	spec.Layers = 6
	metadata, tensors := spec.Parts(t)
	var of []tensor.View
	for _, v := range tensors {
		switch v.Name[:min(6, len(v.Name))] {
		case "blk.3.", "blk.4.":
			continue
		case "blk.5.":
			v.Name = "blk.3." + v.Name[6:]
		}
		of = append(of, v)
	}
	for i := range metadata {
		if metadata[i].Key == spec.Arch+".block_count" {
			metadata[i].Value = gguf.Of(uint32(4))
		}
	}
	whole := withPredictor(t, written(t, metadata, of))
	var without []tensor.View
	for _, v := range whole.Tensors {
		if v.Name != "blk.3.nextn.embed_tokens.weight" { // folders have one table
			without = append(without, v)
		}
	}
	return written(t, whole.Metadata, without)
}

// compareTensors compares the tensors of a folder with those that it was made of.
func compareTensors(t *testing.T, got, want *gguf.File) {
	t.Helper()
	for _, w := range want.Tensors {
		g, ok := got.Tensor(w.Name)
		switch {
		case !ok && (w.Name[6:] == "attn_k_b.weight" || w.Name[6:] == "attn_v_b.weight"):
			continue // one tensor in folders
		case !ok:
			t.Errorf("no tensor %s", w.Name)
			continue
		case g.Elems() != w.Elems():
			t.Errorf("%s has shape %v, want %v", w.Name, g.Shape, w.Shape)
			continue
		}
		g, err := got.Load(g)
		if err != nil {
			t.Fatal(err)
		}
		a, b := make([]float32, w.Elems()), make([]float32, w.Elems())
		if tensor.Unpack(g.Type, a, g.Data) != nil || tensor.Unpack(w.Type, b, w.Data) != nil {
			t.Fatalf("%s cannot be read", w.Name)
		}
		for i := range a {
			if math.Abs(float64(a[i])-float64(b[i])) > 1e-6 {
				t.Errorf("%s: value %d is %v, want %v", w.Name, i, a[i], b[i])
				break
			}
		}
	}
	for _, g := range got.Tensors {
		if _, ok := want.Tensor(g.Name); !ok && g.Name[6:] != "attn_kv_b.weight" {
			t.Errorf("tensor %s is one too many", g.Name)
		}
	}
}
