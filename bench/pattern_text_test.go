package bench

import (
	"bytes"
	"testing"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/model"
	_ "grove/internal/model/all"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/method"
)

// still returns a model of random weights whose layer adds nothing to the stream.
func still(t *testing.T, layer string) method.Model {
	t.Helper()
	metadata, tensors, err := synthetic.Spec{Arch: "llama", Layers: 3, Seed: 7}.WithDefaults().Parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tensors {
		if v.Name == layer+".attn_output.weight" || v.Name == layer+".ffn_down.weight" {
			clear(v.Data)
		}
	}
	var file bytes.Buffer
	if err := gguf.Write(&file, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	parsed, err := gguf.Parse(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	pool := par.New(1)
	t.Cleanup(pool.Close)
	m, err := model.Open(parsed, pool, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, pool, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return e.Model()
}

// TestStill: a layer that adds nothing to the stream costs nothing, bit for bit; another one does.
func TestStill(t *testing.T) {
	m := still(t, "blk.1")
	branch, err := m.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer branch.Close()
	p := &textPass{size: m.Size(), branch: branch}
	if err := p.begin(t.Context(), []token.ID{1, 2, 3, 4, 5}); err != nil {
		t.Fatal(err)
	}
	all := forest.LayerRange(0, 3)
	without := func(l int) PatternSet { return all.Minus(forest.LayerRange(l, l+1)) }
	for id := token.ID(6); id < 12; id++ {
		full, err := p.place(t.Context(), id, id+1, []PatternSet{all, without(1), without(0), without(2)})
		if err != nil {
			t.Fatal(err)
		}
		if p.scores[0] != full || p.scores[1] != full || p.scores[2].Loss == full.Loss || p.scores[3].Loss == full.Loss {
			t.Errorf("token %d: %+v of all layers, %+v of all, all but 1, 0 and 2", id, full, p.scores)
		}
	}
	if n := branch.Len(); n != 11 {
		t.Errorf("a trunk of %d tokens, want 11", n)
	}
}
