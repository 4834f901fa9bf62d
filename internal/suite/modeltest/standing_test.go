package modeltest

import (
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/weights/gguf"
)

// TestTransfer opens matrices: those of the file, and files with one fault each.
func TestTransfer(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	target := New(t, kangarooTarget.File(t), Config{}).Model
	of := synthetic.Spec{Width: kangarooTarget.Width, Vocab: kangarooTarget.Vocab, Layers: kangarooTarget.Layers}
	opened := func(change func(p *parts)) (model.Model, error) {
		var p parts
		var err error
		if p.metadata, p.tensors, err = (synthetic.Module{Family: "transfer", Target: of, Seed: 3, Exit: 1}).Parts(); err != nil {
			t.Fatal(err)
		}
		change(&p)
		return model.OpenModule(p.file(t), pool, target, model.Options{})
	}
	m, err := opened(func(*parts) {})
	if err != nil {
		t.Fatal(err)
	}
	for k, r := range m.Info().Module.Rows {
		if layer := min(1+k, of.Layers-1); r.Skip != forest.LayerRange(0, layer) || r.Through.In() != of.Width || r.Vector != nil {
			t.Errorf("row %d is %+v, want one that begins at layer %d", k, r, layer)
		}
	}
	if n := len(m.Info().Module.Rows); n != 3 {
		t.Errorf("%d rows", n)
	}
	layers := func(layers ...uint32) func(p *parts) {
		return func(p *parts) {
			p.metadata = append(slices.DeleteFunc(p.metadata, func(kv gguf.KV) bool { return kv.Key == "transfer.layers" }), gguf.KV{Key: "transfer.layers", Value: gguf.ArrayOf(layers)})
		}
	}
	for want, change := range map[string]func(p *parts){
		"transfer.layers is []; of 3 rows it has a layer each":                layers(),
		"transfer.layers is [1 2]; of 3 rows it has a layer each":             layers(1, 2),
		"transfer.layers is [2 1 2]; of 3 rows it has a layer each from 0 to": layers(2, 1, 2),
		"transfer.layers is [1 2 99]; of 3 rows it has a layer each":          layers(1, 2, 99),
		"blk.2.transfer.weight": func(p *parts) { p.tensors = p.tensors[:2] },
		"blk.0.transfer.weight\" has shape": func(p *parts) {
			p.tensors[0].Shape, p.tensors[0].Data = []int{2, of.Width}, p.tensors[0].Data[:len(p.tensors[0].Data)/of.Width*2]
		},
	} {
		if _, err := opened(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
