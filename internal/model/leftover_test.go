package model_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"grove/internal/model"
	"grove/internal/model/synthetic"
	"grove/internal/suite/modeltest"
	"grove/internal/weights/tensor"
)

// TestLeftOver adds tensors that an architecture has no place for: each is refused by its name, but for those that
// change no result.
func TestLeftOver(t *testing.T) {
	const other = "its architecture is another one, or needs a newer version of grove"
	for _, c := range []struct {
		spec   modeltest.Spec
		tensor string
		hint   string // "": it is left out
	}{
		{llama, "blk.0.attn_sinks.weight", other},
		{llama, "output.bias", other},
		{llama, "blk.2.ffn_up.scale", other},
		{llama, "blk.1.something", other},
		{llama, "blk.0.attn_q_norm.weight", other},
		{llama, "blk.3.attn_norm.weight", "llama.block_count is 3"},
		{llama, "blk.3.attn_rot_embd.weight", "llama.block_count is 3"},
		{llama, "blk.99999999999999999999.attn_norm.weight", other},
		{llama, "rope_factors", other},
		{llama, "v.patch_embd.weight", other},
		{llama, "token_embd.bias", other},
		{gemma2, "blk.0.attn_q_norm.weight", other},
		{gemma3, "blk.0.v.weight", other},
		{gemma3, "cls.weight", other},
		{gpt2, "rope_freqs.weight", other},
		{bert, "output.weight", other},
		{phi3, "rope_freqs.weight", other},
		{qwen, "blk.0.ffn_up_shexp.weight", other},
		{gptOSS, "blk.0.attn_q_norm.weight", other},
		{deepseek, "blk.0.attn_kv_b.weight", other},
		{deepseek, "blk.2.attn_rot_embd.weight", ""},
		{llama, "blk.0.attn_rot_embd.weight", ""},
		{gemma3, "v.blk.0.attn_q.weight", ""},
		{gemma3, "mm.input_projection.weight", ""},
		{gemma4, "a.blk.0.attn_q.weight", ""},
		{gemma4, "blk.7.attn_k.weight", ""}, // of a layer that reads the keys of another
		{gemma4, "blk.0.attn_k.bias2", other},
	} {
		t.Run(archOf(c.spec)+" "+c.tensor, func(t *testing.T) {
			m, err := open(t, c.spec, setTensor(c.tensor, tensor.F32, 8))
			if c.hint == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			want := fmt.Sprintf("model: %s: architecture %q has no place for this tensor, and results without it would be wrong; %s", c.tensor, archOf(c.spec), c.hint)
			if err == nil || err.Error() != want {
				t.Errorf("got %v, %v\nwant %s", m, err, want)
			}
		})
	}
	for _, arch := range model.Names() {
		if _, err := open(t, modeltest.Spec{Arch: arch}, func(*parts) {}); err != nil {
			continue // package synthetic does not know its tensors
		}
		if _, err := open(t, modeltest.Spec{Arch: arch}, setTensor("extra.weight", tensor.F32, 8)); err == nil || !strings.Contains(err.Error(), "model: extra.weight: ") {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

func archOf(s modeltest.Spec) string { return synthetic.Spec(s).WithDefaults().Arch }

// TestUnitScales: a scale of a product is left out where it is 1, and refused where it is not.
func TestUnitScales(t *testing.T) {
	for _, c := range []struct {
		name string
		one  float32
		want string
	}{
		{"blk.0.attn_q.scale", 1, ""},
		{"blk.0.ffn_up.input_scale", 1, ""},
		{"blk.0.attn_q.scale", 2, "model: blk.0.attn_q.scale: "},
		{"blk.0.attn_q.bias_scale", 1, "model: blk.0.attn_q.bias_scale: "},
	} {
		_, err := open(t, gemma4, func(p *parts) {
			v := tensor.View{Name: c.name, Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)}
			binary.LittleEndian.PutUint32(v.Data, math.Float32bits(c.one))
			p.tensors = append(p.tensors, v)
		})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s of %v: %v", c.name, c.one, err)
		}
	}
}
