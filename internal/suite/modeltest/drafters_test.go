package modeltest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// asEagle makes a module of FSPAD one of EAGLE, without the two parts that FSPAD has more.
func asEagle(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
	for i, kv := range kvs {
		if kv.Key == "general.architecture" {
			kvs[i].Value = gguf.Of("eagle")
		}
		kvs[i].Key = strings.Replace(kv.Key, "fspad.", "eagle.", 1)
	}
	return kvs, slices.DeleteFunc(tensors, func(v tensor.View) bool {
		return strings.HasPrefix(v.Name, "fc.ffn_") || v.Name == "blk.0.ffn_down_logits.weight"
	})
}

// TestFSPADIsEAGLE: where feature sampling adds nothing and both last products are the same, FSPAD gives EAGLE's logits and features, bit by bit; so do files that have one of
// both parts. With parts of its own it gives others.
func TestFSPADIsEAGLE(t *testing.T) {
	plain := func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
		clear(named(t, tensors, "fc.ffn_down.weight").Data)
		copy(named(t, tensors, "blk.0.ffn_down_logits.weight").Data, named(t, tensors, "blk.0.ffn_down.weight").Data)
		return kvs, tensors
	}
	without := func(prefix string) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			kvs, tensors = plain(kvs, tensors)
			return kvs, slices.DeleteFunc(tensors, func(v tensor.View) bool { return strings.HasPrefix(v.Name, prefix) })
		}
	}
	for _, weights := range []tensor.Type{tensor.F32, tensor.Q8_0} {
		m := synthetic.Module{Family: "fspad", Type: weights}
		run := func(edit func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View)) []Bits {
			r := openBlock(t, moduleFile(t, m, edit), 1)
			ids := randomIDs(rand.New(rand.NewPCG(1, 2)), 80, 40)
			var features []Bits
			for _, f := range r.features {
				features = append(features, f)
			}
			return r.pairs(r.NewSeq(""), ids, features, 9)
		}
		want := run(asEagle)
		for name, edit := range map[string]func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View){
			"both parts": plain, "feature sampling": without("blk.0.ffn_down_logits"), "partial alignment": without("fc.ffn_"),
		} {
			if err := Equal(name, run(edit), want); err != nil {
				t.Errorf("%v: %v", weights, err)
			}
		}
		if Equal("parts of its own", run(nil), want) == nil {
			t.Errorf("%v: FSPAD's own parts change nothing", weights)
		}
	}
}

// TestPEagleBlock runs mask rows in the step of the text's last row, in one behind it and one by one: they have the same bits, and do not depend on later ones.
func TestPEagleBlock(t *testing.T) {
	r := openBlock(t, moduleFile(t, synthetic.Module{Family: "peagle", Blocks: 2, Own: true, Taps: []int32{1, 2, 3}}, nil), 1)
	const masks = 5
	text := len(r.features)
	run := func(steps ...int) [][]float32 {
		s, parent := r.NewSeq(""), forest.Trunk
		defer r.Close(s)
		r.context(s, 0, text-1)
		var out [][]float32
		at := 0
		for _, n := range steps {
			for i := range n {
				row := forest.Row{Seq: s, Parent: parent, ID: token.ID(r.Model.Info().Module.Block.Mask), Want: forest.Want{Logits: true}}
				if at+i == 0 {
					row.ID, row.Vector = 5, r.features[text-1]
				}
				parent = r.Add(row)
			}
			r.Forward()
			out = append(out, r.logits(0, n)...)
			at += n
		}
		return out
	}
	want := run(1 + masks)
	for name, got := range map[string][][]float32{"behind the row": run(1, masks), "one by one": run(1, 1, 1, 1, 1, 1), "fewer": append(run(1, 2), want[3:]...)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for i := 1; i <= masks; i++ {
		if slices.Equal(want[i], want[i-1]) {
			t.Errorf("rows %d and %d give the same logits", i-1, i)
		}
	}
}

// TestLayerCost: embeddings that a module has for itself are looked up, and cost its layers nothing.
func TestLayerCost(t *testing.T) {
	m := synthetic.Module{Family: "peagle", Taps: []int32{1, 2, 3}, Own: true}
	without := func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
		return kvs, slices.DeleteFunc(tensors, func(v tensor.View) bool { return v.Name == "token_embd.weight" })
	}
	own, lent := openBlock(t, moduleFile(t, m, nil), 1), openBlock(t, moduleFile(t, m, without), 1)
	if a, b := own.Model.Info().Module.LayerCost, lent.Model.Info().Module.LayerCost; a != b || a <= 0 {
		t.Errorf("a layer of the module costs %v of the target's, and %v with the target's embeddings", a, b)
	}
}

// TestBadDrafters: modules of FSPAD and P-EAGLE that lack something or contradict their target are refused by what is wrong.
func TestBadDrafters(t *testing.T) {
	set := func(key string, v gguf.Value) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			kvs = slices.DeleteFunc(kvs, func(kv gguf.KV) bool { return kv.Key == key })
			return append(kvs, gguf.KV{Key: key, Value: v}), tensors
		}
	}
	without := func(names ...string) func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View) {
		return func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
			return kvs, slices.DeleteFunc(tensors, func(v tensor.View) bool { return slices.Contains(names, v.Name) })
		}
	}
	shorter := func(kvs []gguf.KV, tensors []tensor.View) ([]gguf.KV, []tensor.View) {
		for i, v := range tensors {
			if v.Name == "mask_hidden.weight" {
				tensors[i].Shape, tensors[i].Data = []int{v.Shape[0] / 3}, v.Data[:len(v.Data)/3]
			}
		}
		return kvs, tensors
	}
	for _, c := range []struct {
		name, family string
		edit         func([]gguf.KV, []tensor.View) ([]gguf.KV, []tensor.View)
		want         string
	}{
		{"neither part", "fspad", without("fc.ffn_norm.weight", "fc.ffn_gate.weight", "fc.ffn_up.weight", "fc.ffn_down.weight", "blk.0.ffn_down_logits.weight"),
			`tensors "fc.ffn_gate.weight" and "blk.0.ffn_down_logits.weight" are missing`},
		{"no norm of feature sampling", "fspad", without("fc.ffn_norm.weight"), `tensor "fc.ffn_norm.weight"`},
		{"feature sampling without a gate", "fspad", without("fc.ffn_gate.weight"), `"fspad" has no place for this tensor`},
		{"two layers", "fspad", set("fspad.block_count", gguf.Of(uint32(2))), "fspad.block_count is 2; it must be 1 to 1"},
		{"no mask row", "peagle", without("mask_hidden.weight"), `tensor "mask_hidden.weight"`},
		{"a mask row of one place", "peagle", shorter, `tensor "mask_hidden.weight"`},
		{"mask outside the vocabulary", "peagle", set("peagle.mask_token_id", gguf.Of(uint32(48))), "peagle.mask_token_id is 48; it must be 0 to 47"},
		{"a block of one row", "peagle", set("peagle.block_size", gguf.Of(uint32(1))), "peagle.block_size is 1; it must be 2 to 64"},
		{"two taps", "peagle", set("peagle.taps", gguf.ArrayOf([]int32{1, 2})), "peagle.taps has 2 values; the module reads 3"},
		{"nine layers", "peagle", set("peagle.block_count", gguf.Of(uint32(9))), "peagle.block_count is 9; it must be 1 to 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := synthetic.Module{Family: c.family}
			if c.family == "peagle" {
				m.Taps = []int32{1, 2, 3}
			}
			pool := par.New(1)
			defer pool.Close()
			target, err := model.Open(moduleTarget.File(t), pool, model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := model.OpenModule(moduleFile(t, m, c.edit), pool, target, model.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
