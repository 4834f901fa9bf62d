package modeltest

import (
	"slices"
	"strings"
	"testing"

	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/weights/gguf"
)

// TestM2R2 opens matrices that add to the first layers of a target: those of the file, and files with one fault each.
func TestM2R2(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	target := New(t, kangarooTarget.File(t), Config{}).Model
	of := synthetic.Spec{Width: kangarooTarget.Width, Vocab: kangarooTarget.Vocab, Layers: kangarooTarget.Layers}
	opened := func(change func(p *parts)) (model.Model, error) {
		var p parts
		var err error
		if p.metadata, p.tensors, err = (synthetic.Module{Family: "m2r2", Target: of, Seed: 3, Exit: 2}).Parts(); err != nil {
			t.Fatal(err)
		}
		change(&p)
		return model.OpenModule(p.file(t), pool, target, model.Options{})
	}
	key := func(name string, v gguf.Value) func(p *parts) {
		return func(p *parts) {
			p.metadata = append(slices.DeleteFunc(p.metadata, func(kv gguf.KV) bool { return kv.Key == name }), gguf.KV{Key: name, Value: v})
		}
	}
	m, err := opened(func(*parts) {})
	if err != nil {
		t.Fatal(err)
	}
	other, err := opened(key("m2r2.scale", gguf.Of(float32(2))))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := m.Info().Adds, other.Info().Adds; a.Layers != 2 || a.Adapter.Bytes() == 0 || a.Name == b.Name {
		t.Errorf("%+v, and with another scale %+v", a, b)
	}
	for want, change := range map[string]func(p *parts){
		"m2r2.exit_layer is 4; it must be 1 to 3":                     key("m2r2.exit_layer", gguf.Of(uint32(4))),
		"m2r2.scale is 1e+07; it must be":                             key("m2r2.scale", gguf.Of(float32(1e7))),
		"the target has no matrix of this name in its first 1 layers": key("m2r2.exit_layer", gguf.Of(uint32(1))),
		"blk.0.attn_q.lora_b.weight has the shape []":                 func(p *parts) { p.tensors = slices.Delete(p.tensors, 1, 2) },
		"has no tensors NAME.lora_a.weight":                           func(p *parts) { p.tensors = nil },
		"\"blk.0.attn_q.lora_a.weight\" has shape [2 32]": func(p *parts) {
			p.tensors[0].Shape, p.tensors[0].Data = []int{2, 32}, p.tensors[0].Data[:len(p.tensors[0].Data)/4]
		},
		"no matrix of this name in its first 2 layers to which": func(p *parts) { p.tensors[0].Name = "blk.0.attn_norm.lora_a.weight" },
	} {
		if _, err := opened(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
