package modeltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// predicting are models whose last layer becomes the layer of a predictor.
var predicting = map[string]Spec{
	"deepseek2":       {Arch: "deepseek2", KeySize: 48, Latent: latentSpec.Latent, Experts: 8, ExpertsPerToken: 3},
	"bailingmoe2-moe": {},
	"dots1-moe":       {},
	"exaone-moe-moe":  {},
	"glm4moe-moe":     {},
	"mimo2":           {Arch: "mimo2", Layers: 4, ValueSize: 24},
	"qwen35":          {Arch: "qwen35"},
	"qwen35moe":       {Arch: "qwen35moe", Experts: 6, ExpertsPerToken: 2},
	"step35":          {Arch: "step35", Layers: 4},
}

// TestPredictors makes the last layer of a model that of a predictor. The model has the logits of a model without that layer,
// and the predictor's layer gives the stream that it gives as the model's own, bit by bit.
func TestPredictors(t *testing.T) {
	for name, spec := range predicting {
		t.Run(name, func(t *testing.T) {
			var file *gguf.File
			if spec.Arch != "" {
				file = spec.File(t)
			} else {
				var err error
				if file, err = gguf.Open(filepath.Join(archsDir, name+".gguf")); err != nil {
					t.Skipf("%s is not here", archsDir)
				}
				defer file.Close()
			}
			config := Config{CacheType: tensor.F32, Context: 128}
			whole, trunk := New(t, file, config), New(t, withPredictor(t, file), config)
			last := len(whole.Model.Info().Layers) - 1
			if n := len(trunk.Model.Info().Layers); n != last {
				t.Fatalf("%d layers run, want %d", n, last)
			}
			predictors := trunk.Model.Info().Predictors
			if len(predictors) != 1 || predictors[0].Layer != last || predictors[0].Norm.Len() == 0 || predictors[0].Head != nil || predictors[0].Bytes == 0 {
				t.Fatalf("predictors are %+v", predictors)
			}
			if added := trunk.Model.Info().Bytes - whole.Model.Info().Bytes; added <= 0 || added >= predictors[0].Bytes {
				t.Errorf("the model takes %d bytes more, the predictor %d", added, predictors[0].Bytes)
			}
			ids := randomIDs(rand.New(rand.NewPCG(1, 2)), 40, trunk.Model.Info().Vocabulary)
			want := whole.hidden(ids, nil, last)
			streams := trunk.hidden(ids, nil, last-1)
			if err := Equal("the stream before the last layer", streams, whole.hidden(ids, nil, last-1)); err != nil {
				t.Fatal(err)
			}
			pool := par.New(2)
			defer pool.Close()
			alone := NewFor(t, &predictorModel{trunk.Model.Info(), predictors[0]}, pool, config)
			if err := Equal("the predictor's layer", alone.hidden(ids, streams, 0), want); err != nil {
				t.Error(err)
			}
			if err := Equal("a layer less", trunk.Plain(ids[:8]), whole.Plain(ids[:8])); err == nil {
				t.Error("the logits without the last layer are those with it")
			}
		})
	}
}

// TestNemotronPredictor opens a Nemotron 3 whose predictor attends and feeds forward in one layer, under both names of its second norm. The model has the
// stream of one without the predictor, and the predictor gives the stream of a model that has its parts as layers of its own, bit by bit.
func TestNemotronPredictor(t *testing.T) {
	for _, norm := range []string{"ffn_norm", "post_attention_norm"} {
		for _, narrow := range []int{0, 32} {
			spec := Spec{Arch: "nemotron_h_moe", Layers: 5, Scan: synthetic.Scan{Narrow: narrow}} // a recurrence, a mixture, attention, a recurrence, a mixture
			config := Config{CacheType: tensor.F32, Context: 128}
			whole := New(t, nemotronPredicting(t, spec, "").file(t), config)
			trunk := New(t, withPredictor(t, nemotronPredicting(t, spec, norm).file(t)), config)
			predictors := trunk.Model.Info().Predictors
			if len(trunk.Model.Info().Layers) != 2 || len(predictors) != 1 || predictors[0].Layer != 2 || predictors[0].Keeps.KVHeads != 2 {
				t.Fatalf("%d layers and predictors %+v", len(trunk.Model.Info().Layers), predictors)
			}
			ids := randomIDs(rand.New(rand.NewPCG(1, 2)), 40, trunk.Model.Info().Vocabulary)
			streams := trunk.hidden(ids, nil, 1)
			if err := Equal("the stream before the predictor", streams, whole.hidden(ids, nil, 1)); err != nil {
				t.Fatal(err)
			}
			pool := par.New(2)
			defer pool.Close()
			alone := NewFor(t, &predictorModel{trunk.Model.Info(), predictors[0]}, pool, config)
			if err := Equal("the predictor's layer", alone.hidden(ids, streams, 0), whole.hidden(ids, nil, 3)); err != nil {
				t.Error(err)
			}
		}
	}
}

// nemotronPredicting leaves the second recurrence of a model out. Where norm is not empty, the attention before it and the mixture behind it are one layer,
// and norm is the name of the latter's norm.
func nemotronPredicting(t *testing.T, spec Spec, norm string) *changed {
	c, layers := change(t, spec), 4
	if norm != "" {
		layers = 3
	}
	for i, kv := range c.metadata {
		if all, ok := kv.Value.Any().([]uint32); ok && len(all) == 5 {
			c.metadata[i].Value = gguf.ArrayOf(append(slices.Clone(all[:3]), all[4])[:layers])
		}
		if strings.HasSuffix(kv.Key, ".block_count") {
			c.metadata[i].Value = gguf.Of(uint32(layers))
		}
	}
	c.tensors = slices.DeleteFunc(c.tensors, func(v tensor.View) bool { return strings.HasPrefix(v.Name, "blk.3.") })
	for i := range c.tensors {
		rest, ok := strings.CutPrefix(c.tensors[i].Name, "blk.4.")
		switch {
		case ok && norm == "":
			c.tensors[i].Name = "blk.3." + rest
		case ok && rest == "attn_norm.weight":
			c.tensors[i].Name = "blk.2." + norm + ".weight"
		case ok:
			c.tensors[i].Name = "blk.2." + rest
		}
	}
	return c
}

// TestNoPredictor opens a file that counts a predictor and was written without it.
func TestNoPredictor(t *testing.T) {
	metadata, tensors := Spec{Arch: "deepseek2", Layers: 2}.Parts(t)
	for i, kv := range metadata {
		if kv.Key == "deepseek2.block_count" {
			metadata[i].Value = gguf.Of(uint32(3))
		}
	}
	metadata = append(metadata, gguf.KV{Key: "deepseek2.nextn_predict_layers", Value: gguf.Of(uint32(1))})
	info := New(t, written(t, metadata, tensors), Config{CacheType: tensor.F32, Context: 64}).Model.Info()
	if len(info.Layers) != 2 || len(info.Predictors) != 0 {
		t.Errorf("%d layers and %d predictors, want 2 and none", len(info.Layers), len(info.Predictors))
	}
}

// TestPartOfPredictor opens files that lack tensors of a predictor's layer: it is left out by name, and the model has the logits that it has without it. A file that
// lacks what makes the layer a predictor's, or has a tensor of another shape, is refused.
func TestPartOfPredictor(t *testing.T) {
	file := withPredictor(t, predicting["qwen35"].File(t))
	config := Config{CacheType: tensor.F32, Context: 64}
	whole := New(t, file, config)
	ids := randomIDs(rand.New(rand.NewPCG(1, 2)), 12, whole.Model.Info().Vocabulary)
	for _, name := range []string{"ffn_up.weight", "attn_q.weight", "nextn.hnorm.weight"} {
		part := New(t, withoutTensors(t, file, name, "nextn.eh_proj.weight"), config)
		info := part.Model.Info()
		want := fmt.Sprintf("the predictor of layer %d: tensor \"blk.%d.%s\" is missing", len(info.Layers), len(info.Layers), name)
		if len(info.Predictors) != 0 || info.LeftOut != want {
			t.Errorf("without %s there are %d predictors, and %q is left out; want %q", name, len(info.Predictors), info.LeftOut, want)
		}
		if err := Equal("logits without "+name, part.Plain(ids), whole.Plain(ids)); err != nil {
			t.Error(err)
		}
	}
	pool := par.New(1)
	defer pool.Close()
	narrow := written(t, file.Metadata, slices.Clone(file.Tensors))
	for i, v := range narrow.Tensors {
		if strings.HasSuffix(v.Name, "nextn.hnorm.weight") {
			narrow.Tensors[i].Shape = []int{v.Shape[0] / 2}
		}
	}
	for what, f := range map[string]*gguf.File{`enorm.weight" is missing`: withoutTensors(t, file, "nextn.enorm.weight"), `hnorm.weight" has shape`: narrow} {
		if _, err := model.Open(f, pool, model.Options{}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v; want an error with %s", err, what)
		}
	}
}

// withoutTensors returns the model of a file without the tensors of the last layer of some names.
func withoutTensors(t *testing.T, file *gguf.File, names ...string) *gguf.File {
	arch, _, _ := file.String("general.architecture")
	layers, _, _ := file.Uint(arch + ".block_count")
	prefix := fmt.Sprintf("blk.%d.", layers-1)
	tensors := slices.DeleteFunc(slices.Clone(file.Tensors), func(v tensor.View) bool {
		rest, ok := strings.CutPrefix(v.Name, prefix)
		return ok && slices.Contains(names, rest)
	})
	return written(t, file.Metadata, tensors)
}

// withPredictor returns the model of a file whose last layer is a predictor's, with the other tensors of one.
func withPredictor(t *testing.T, file *gguf.File) *gguf.File { return withPredictors(t, file, 1) }

// withPredictors is withPredictor of the last n layers.
func withPredictors(t *testing.T, file *gguf.File, n int) *gguf.File {
	arch, _, _ := file.String("general.architecture")
	layers, _, _ := file.Uint(arch + ".block_count")
	width, _, _ := file.Uint(arch + ".embedding_length")
	var metadata []gguf.KV
	for _, kv := range file.Metadata {
		if !strings.HasSuffix(kv.Key, ".nextn_predict_layers") {
			metadata = append(metadata, kv)
		}
	}
	metadata = append(metadata, gguf.KV{Key: arch + ".nextn_predict_layers", Value: gguf.Of(uint32(n))})
	table, _ := file.Tensor("token_embd.weight")
	tensors := append([]tensor.View(nil), file.Tensors...)
	rng := rand.New(rand.NewPCG(9, 9))
	for layer := layers - n; layer < layers; layer++ {
		for name, shape := range map[string][]int{
			"enorm": {width}, "hnorm": {width}, "shared_head_norm": {width}, "eh_proj": {width, 2 * width}, "embed_tokens": {table.Shape[0], width},
		} {
			v := tensor.View{Name: fmt.Sprintf("blk.%d.nextn.%s.weight", layer, name), Type: tensor.F32, Shape: shape}
			for range v.Elems() {
				v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(float32(rng.NormFloat64())))
			}
			tensors = append(tensors, v)
		}
	}
	return written(t, metadata, tensors)
}

// written returns the file of metadata and tensors.
func written(t testing.TB, metadata []gguf.KV, tensors []tensor.View) *gguf.File {
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// hidden runs a text in steps of 16 rows, with vectors instead of ids where there are some, and returns the streams behind
// a layer.
func (r *Runner) hidden(ids []token.ID, vectors []Bits, layer int) (out []Bits) {
	r.tb.Helper()
	s := r.NewSeq("")
	defer r.Close(s)
	for first := 0; first < len(ids); first += 16 {
		node, n := forest.Trunk, min(16, len(ids)-first)
		for i := first; i < first+n; i++ {
			row := forest.Row{Seq: s, Parent: node, ID: ids[i], Want: forest.Want{Hidden: forest.LayerRange(layer, layer+1)}}
			if vectors != nil {
				row.Vector = vectors[i]
			}
			node = r.Add(row)
		}
		r.Forward()
		for i := range n {
			out = append(out, append(Bits(nil), r.Exec.Result(i).Hidden[0]...))
		}
		r.Commit(s, node)
	}
	return out
}

// predictorModel is the layer of a predictor as a model of its own.
type predictorModel struct {
	info *model.Info
	p    model.Predictor
}

func (m *predictorModel) Info() *model.Info {
	info := *m.info
	info.Layers = []kv.Layer{m.p.Keeps}
	return &info
}

func (m *predictorModel) Forward(x *compute.Exec) {
	x.Embed(m.p.Embed, 1)
	if stream, ok := x.Enter(0); ok {
		x.Leave(m.p.Block.Forward(x, stream))
	}
}
