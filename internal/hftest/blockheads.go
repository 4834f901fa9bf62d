package hftest

import (
	"fmt"
	"maps"
)

// blockHead is a head of DFlash's kind: 2 layers that read 3 states of the target.
const (
	blockLayers = 2
	blockTaps   = 3
	blockRank   = 8
)

// clover adds a head of Clover-2.
func (w *headWriter) clover() {
	w.llama(w.Config) // whose count of layers is 1, as published
	for _, cell := range []string{"clover_head_mlp_rnn.", "clover_head_mlp_rnn2."} {
		w.floats(cell+"input_layernorm.weight", w.Width)
		for _, m := range []string{"q", "k", "v"} {
			w.linear(cell+m, w.Width, w.Width)
		}
	}
	for i := range 2 {
		w.norms(fmt.Sprintf("layers.%d.", i))
	}
	w.floats("clover_norm.weight", w.Width)
	w.floats("clover_head_norm.weight", w.Width)
	w.linear("clover_head_mlp", w.Width, w.Width)
	w.linear("clover_head_mlp2", w.Width, 2*w.Width)
	w.floats("clover_embed_tokens.weight", w.Vocab, w.Width)
	w.floats("lm_head.weight", w.Vocab, w.Width)
}

// norms adds a layer with its two norms.
func (w *headWriter) norms(root string) {
	w.layer(root, w.Width)
	w.floats(root+"input_layernorm.weight", w.Width)
	w.floats(root+"post_attention_layernorm.weight", w.Width)
}

// block adds a head of DFlash, DFlare or DSpark, as its authors or as the speculators library write it; fused has one matrix for queries, keys and
// values.
func (w *headWriter) block(family string, speculators, fused bool) {
	layers := w.Config
	if speculators {
		layers = map[string]any{}
		w.Config = map[string]any{
			"speculators_model_type": family, "transformer_layer_config": layers, "block_size": 6, "mask_token_id": w.Vocab - 1, "aux_hidden_state_layer_ids": []int{1, 2, 3},
			"speculators_config": map[string]any{"verifier": map[string]any{"name_or_path": "org/target"}}, "draft_vocab_size": w.Draft, "sample_from_anchor": family == "dspark",
		}
		w.Head.Config = w.Config
		w.floats("lm_head.weight", w.Draft, w.Width)
		w.SetDraft(w.Vocab, w.DraftTokens())
	} else {
		inner := map[string]any{"mask_token_id": w.Vocab - 1, "target_layer_ids": []int{0, 1, 2}}
		w.Config["block_size"], w.Config["num_target_layers"] = 6, 4
		if family == "dspark" {
			maps.Copy(w.Config, inner)
		} else {
			w.Config["dflash_config"] = inner
		}
	}
	w.llama(layers)
	layers["head_dim"], layers["num_hidden_layers"] = w.Width/w.Heads, blockLayers
	layers["layer_types"] = []string{"full_attention", "full_attention"}
	w.blockInputs(family, speculators)
	for i := range blockLayers {
		w.blockLayer(fmt.Sprintf("layers.%d.", i), family == "dflare", fused)
	}
	w.floats("norm.weight", w.Width)
	if family == "dspark" {
		drafts := w.Vocab
		if speculators {
			drafts = w.Draft
		}
		w.Config["markov_rank"], w.Config["enable_confidence_head"], w.Config["confidence_head_with_markov"] = blockRank, true, true
		w.floats("markov_head.markov_w1.weight", w.Vocab, blockRank)
		w.floats("markov_head.markov_w2.weight", drafts, blockRank)
		w.linear("confidence_head.proj", 1, w.Width+blockRank)
	}
}

// blockInputs adds what joins the target's states.
func (w *headWriter) blockInputs(family string, speculators bool) {
	switch {
	case family != "dflare":
		w.floats("fc.weight", w.Width, blockTaps*w.Width)
		w.floats("hidden_norm.weight", w.Width)
	case speculators:
		w.floats("fusion_weights", blockLayers, blockTaps)
		for i := range blockLayers {
			w.floats(fmt.Sprintf("fusion_norms.%d.weight", i), w.Width)
		}
	default:
		w.floats("layer_fusion_weights", blockLayers, blockTaps)
		w.floats("hidden_norm.weight", w.Width)
	}
}

// blockLayer adds a layer of a head of DFlash's kind.
func (w *headWriter) blockLayer(root string, apart, fused bool) {
	w.norms(root)
	size := w.Width / w.Heads
	w.floats(root+"self_attn.q_norm.weight", size)
	w.floats(root+"self_attn.k_norm.weight", size)
	if apart {
		w.floats(root+"self_attn.k_proj_target.weight", w.Keys*size, w.Width)
		w.floats(root+"self_attn.v_proj_target.weight", w.Keys*size, w.Width)
	}
	if fused {
		all := Raw{Type: "BF16", Shape: []int{(w.Heads + 2*w.Keys) * size, w.Width}}
		for _, m := range []string{"q", "k", "v"} {
			name := root + "self_attn." + m + "_proj.weight"
			all.Data = append(all.Data, w.Tensors[name].Data...)
			delete(w.Tensors, name)
		}
		w.Tensors[root+"self_attn.qkv_proj.weight"] = all
	}
}
