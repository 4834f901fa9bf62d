package heads

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/hftest"
	"grove/internal/weights/gguf"
)

// inner changes a setting of the layers of a head of speculators.
func inner(key string, v any) func(*head) {
	return func(h *head) { h.Config["transformer_layer_config"].(map[string]any)[key] = v }
}

// renamed gives a tensor another name.
func renamed(from, to string) func(*head) {
	return func(h *head) { h.Tensors[to] = h.Tensors[from]; delete(h.Tensors, from) }
}

// TestBlockVariants opens heads of DFlash's kind and of Clover-2 that differ from the usual ones of their layouts.
func TestBlockVariants(t *testing.T) {
	sliding := []string{"sliding_attention", "sliding_attention"}
	tests := []struct {
		name, layout string
		change       func(*head)
		keys         map[string]string // "" : it is missing
		tensors      []string          // that must be there, or with a ! not
		note         string
	}{
		{"one matrix of queries, keys and values", "dflash-fused", nil, nil, []string{"blk.1.attn_q.weight", "blk.0.attn_v.weight"}, ""},
		{"its bias", "dflash-fused", with("layers.0.self_attn.qkv_proj.bias", zeros("BF16", 2, 128)), nil, []string{"blk.0.attn_q.bias", "blk.0.attn_k.bias"}, ""},
		{"no size of a block", "dflash", without("block_size"), map[string]string{"dflash.block_size": "16"}, nil, ""},
		{"a size inside", "dflash", set("dflash_config", map[string]any{"mask_token_id": 3, "target_layer_ids": []int{4, 0, 2}, "block_size": 8}),
			map[string]string{"dflash.block_size": "8", "dflash.taps": "[5 1 3]", "dflash.mask_token_id": "3"}, nil, ""},
		{"windows", "dflash", all(set("layer_types", sliding), set("sliding_window", 32)),
			map[string]string{"dflash.attention.sliding_window": "32", "dflash.attention.sliding_window_pattern": "[true true]", "dflash.attention.causal": "true"}, nil, ""},
		{"windows of rows that see later ones", "dflash-speculators", all(inner("layer_types", []string{"sliding_attention", "full_attention"}), inner("sliding_window", 32), set("sliding_window_non_causal", true)),
			map[string]string{"dflash.attention.sliding_window_pattern": "[true false]", "dflash.attention.causal": "false"}, nil, ""},
		{"causal by its settings", "dflash", set("is_causal", true), map[string]string{"dflash.attention.causal": "true"}, nil, ""},
		{"labels of the next token", "dflash-speculators", all(without("sample_from_anchor"), set("shift_label", true)), map[string]string{"dflash.sample_from_anchor": "true"}, nil, ""},
		{"a scale of logits", "dflash", set("output_multiplier", 2), nil, nil, "output_multiplier of config.json is left out: the target's own is used"},
		{"DFlare", "dflare", nil, map[string]string{"general.architecture": "dflash"}, []string{"fusion.weight", "hidden_norm.weight", "blk.1.attn_k_target.weight", "!fc.weight"}, ""},
		{"DFlare of speculators", "dflare-speculators", nil, nil, []string{"fusion.weight", "blk.1.hidden_norm.weight", "!hidden_norm.weight"}, ""},
		{"DFlare with one pair of matrices", "dflare-speculators", all(set("use_heterogeneous_kv", false), without("layers.0.self_attn.k_proj_target.weight", "layers.0.self_attn.v_proj_target.weight",
			"layers.1.self_attn.k_proj_target.weight", "layers.1.self_attn.v_proj_target.weight")), nil, []string{"blk.0.attn_v_target.weight"}, ""},
		{"DSpark that trusts without the token", "dspark", with("confidence_head.proj.weight", zeros("BF16", 2, 1, 64)), nil, []string{"markov_w2.weight", "!conf_proj.weight", "!conf_proj.bias"},
			"confidence_head.proj.weight [1 64] is left out: it does not read the token, which grove's confidence heads do"},
		{"DSpark that trusts nothing", "dspark", without("confidence_head.proj.weight", "confidence_head.proj.bias"), nil, []string{"markov_w1.weight"}, ""},
		{"the target's tensors in the file", "dspark", all(with("lm_head.weight", zeros("BF16", 2, 80, 64)), with("embed_tokens.weight", zeros("BF16", 2, 80, 64)), with("verifier_norm.weight", zeros("F32", 4, 64))), nil,
			[]string{"output.weight", "!token_embd.weight"}, "verifier_norm.weight [64] is left out"},
		{"Clover of another base", "clover", set("rope_theta", 500000.0), map[string]string{"clover.rope.freq_base": "10000"}, []string{"token_embd.weight", "blk.1.attn_norm.weight", "!output.weight"}, "rope_theta 500000 of config.json is not used"},
		{"Clover with the target's embeddings", "clover", all(without("clover_embed_tokens.weight", "lm_head.weight"), set("vocab_size", 99)), map[string]string{"heads.target.vocabulary": "99"}, []string{"!token_embd.weight"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _, notes, err := open(t, tt.layout, nil, tt.change)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for k := range tt.keys {
				got[k] = key(f, k)
			}
			if diff := cmp.Diff(tt.keys, got); len(tt.keys) > 0 && diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			for _, name := range tt.tensors {
				name, missing := strings.CutPrefix(name, "!")
				if _, ok := f.Tensor(name); ok == missing {
					t.Errorf("tensor %s: there is %v", name, ok)
				}
			}
			if !strings.Contains(strings.Join(notes, "\n"), tt.note) {
				t.Errorf("notes %q; want one with %q", notes, tt.note)
			}
			tensorsIn(t, f)
		})
	}
}

// TestFusedProjections compares a head whose queries, keys and values are products of one matrix with the head of three matrices.
func TestFusedProjections(t *testing.T) {
	fused, _, _, err := open(t, "dflash-fused", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	apart, _, _, err := open(t, "dflash", nil, func(h *head) {
		whole := hftest.NewHead("dflash-fused", hftest.SmallHead)
		for name, tensor := range whole.Tensors {
			if root, ok := strings.CutSuffix(name, "qkv_proj.weight"); ok {
				at := 0
				for _, m := range []struct {
					name string
					rows int
				}{{"q", 64}, {"k", 32}, {"v", 32}} {
					h.Tensors[root+m.name+"_proj.weight"] = hftest.Raw{Type: "BF16", Shape: []int{m.rows, 64}, Data: tensor.Data[2*64*at:][:2*64*m.rows]}
					at += m.rows
				}
				continue
			}
			h.Tensors[name] = tensor
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tensorsIn(t, apart), tensorsIn(t, fused)); diff != "" {
		t.Errorf("tensors (-apart +fused):\n%s", diff)
	}
}

// TestBlocksRefused expects heads of DFlash's kind and of Clover-2 that contradict themselves or that grove cannot run to be refused by name.
func TestBlocksRefused(t *testing.T) {
	taps := func(ids ...int) func(*head) {
		return set("dflash_config", map[string]any{"mask_token_id": 79, "target_layer_ids": ids})
	}
	const bad = "; a module of blocks reads the states of 1 to 16 layers, each from 0 to 4095, no two the same"
	tests := []struct {
		name, layout string
		target       *gguf.File
		change       func(*head)
		want         string
	}{
		{"norms missing", "dflash", nil, without("hidden_norm.weight", "layers.1.self_attn.q_proj.weight"), "tensors are missing: hidden_norm.weight, layers.1.self_attn.q_proj.weight"},
		{"context's matrices missing", "dflare", nil, without("layers.1.self_attn.v_proj_target.weight"), "tensors are missing: layers.1.self_attn.v_proj_target.weight"},
		{"leftover", "dflash", nil, with("layers.0.mlp_conv.base_kernel", zeros("F32", 4, 2, 2)), "dflash heads have no such tensors: layers.0.mlp_conv.base_kernel"},
		{"fc of other taps", "dflash", nil, taps(0, 1), "fc.weight: shape is [64 192]; the other tensors and the settings ask for [64 128]"},
		{"no taps", "dflash", nil, set("dflash_config", map[string]any{"mask_token_id": 79}), "config.json: target_layer_ids is missing: it names the states of the target that the module reads"},
		{"a tap twice", "dflash", nil, taps(1, 2, 1), "config.json: dflash_config.target_layer_ids is [1 2 1]" + bad},
		{"a tap below 0", "dflash", nil, taps(1, -1, 2), "config.json: dflash_config.target_layer_ids is [1 -1 2]" + bad},
		{"the largest tap", "dflash", nil, taps(1, 2147483647, 2), "config.json: dflash_config.target_layer_ids is [1 2147483647 2]" + bad},
		{"too many taps", "dflash", nil, taps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16), "config.json: dflash_config.target_layer_ids is [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16]" + bad},
		{"the embedding as a tap", "dflash-speculators", nil, set("aux_hidden_state_layer_ids", []int{0, 1, 2}),
			"config.json: aux_hidden_state_layer_ids is [0 1 2]; a module of blocks reads the states of 1 to 16 layers, each from 1 to 4096, no two the same"},
		{"a tap behind the target", "dflash", target(t, 64, 80, 2), nil, "the head reads the state before layer 3; its target has 2 layers, so that 0 to 2 can be read"},
		{"a block of one", "dflash", nil, set("block_size", 1), "config.json: block_size is 1; it must be an integer from 2 to 64"},
		{"a block of many", "dspark", nil, set("block_size", 65), "config.json: block_size is 65; it must be an integer from 2 to 64"},
		{"no mask", "dspark", nil, without("mask_token_id"), "config.json: mask_token_id is missing"},
		{"a mask below 0", "dspark", nil, set("mask_token_id", -1), "config.json: mask_token_id is -1; it must be an integer from 0 to 16777215"},
		{"a mask behind the vocabulary", "dspark", nil, set("mask_token_id", 80), "config.json: mask_token_id is 80; the vocabulary has 80 tokens"},
		{"another projector", "dflash-speculators", nil, set("projector_type", "domino"), `config.json: projector_type is "domino"; it must be one of ["dflash"]`},
		{"a gated Markov head", "dspark-speculators", nil, set("markov_head_type", "gated"), `config.json: markov_head_type is "gated"; it must be one of ["vanilla"]`},
		{"kinds of layers", "dflash", nil, set("layer_types", []string{"full_attention"}), "config.json: layer_types has 1 entries, there are 2 layers"},
		{"a kind of layer", "dflash", nil, set("layer_types", []string{"full_attention", "linear_attention"}), `config.json: layer_types has "linear_attention" for layer 1; it must be full_attention or sliding_attention`},
		{"windows of some", "dflash", nil, all(set("layer_types", []string{"full_attention", "sliding_attention"}), set("sliding_window", 9)),
			"config.json: layer_types: rows of a block see the later ones in layers of full_attention and not in those of sliding_attention; such a mix is not supported"},
		{"windows of no size", "dflash", nil, set("layer_types", []string{"sliding_attention", "sliding_attention"}), "config.json: sliding_window is missing"},
		{"weights of other taps", "dflare", nil, with("layer_fusion_weights", zeros("F32", 4, 2, 2)), "layer_fusion_weights: shape is [2 2]; the other tensors and the settings ask for [2 3]"},
		{"weights of integers", "dflare", nil, with("layer_fusion_weights", zeros("I32", 4, 2, 3)), "layer_fusion_weights: type is I32; it must be F32, F16 or BF16"},
		{"Markov of another vocabulary", "dspark", nil, with("markov_head.markov_w2.weight", zeros("F32", 4, 79, 8)), "markov_head.markov_w2.weight: shape is [79 8]; the other tensors and the settings ask for [80 8]"},
		{"Markov of another rank", "dspark-speculators", nil, with("markov_head.markov_w2.weight", zeros("F32", 4, 24, 9)), "markov_head.markov_w2.weight: shape is [24 9]; the other tensors and the settings ask for [24 8]"},
		{"half a Markov head", "dspark", nil, without("markov_head.markov_w1.weight"), "tensors are missing: markov_head.markov_w1.weight"},
		{"rows of one matrix", "dflash-fused", nil, with("layers.1.self_attn.qkv_proj.weight", zeros("F32", 4, 127, 64)),
			"layers.1.self_attn.qkv_proj.weight: type is F32 and shape [127 64]; it must be F32, F16 or BF16 and [128 64], the queries', keys' and values' rows"},
		{"cells missing", "clover", nil, without("clover_head_mlp_rnn2.k.weight", "clover_head_norm.weight"), "tensors are missing: clover_head_mlp_rnn2.k.weight, clover_head_norm.weight"},
		{"a cell of another shape", "clover", nil, with("clover_head_mlp_rnn.q.weight", zeros("F32", 4, 32, 64)), "clover_head_mlp_rnn.q.weight: shape is [32 64]; the other tensors and the settings ask for [64 64]"},
		{"leftover of Clover", "clover", nil, renamed("clover_head_mlp.bias", "clover_head_mlp.b"), "clover heads have no such tensors: clover_head_mlp.b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expect(t, tt.layout, tt.target, tt.change, tt.want) })
	}
}
