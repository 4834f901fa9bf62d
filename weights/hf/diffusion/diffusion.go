// Package diffusion says what the folders of models of masked diffusion have: LLaDA, LLaDA-MoE, Dream, RND1, and SDAR, whose rows see blocks.
package diffusion

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"grove/weights/hf/decoder"
	"grove/weights/hf/folder"
)

// Families are the classes of config.json.
var Families = map[string]func(b *folder.Builder){
	"DreamModel":         of(dream),
	"LLaDAModelLM":       of(llada),
	"LLaDAMoEModel":      of(lladaMoE),
	"LLaDAMoEModelLM":    of(lladaMoE),
	"RND1":               of(rnd1),
	"RND1LM":             of(rnd1),
	"SDARForCausalLM":    of(sdar),
	"SDARMoeForCausalLM": of(sdarMoE),
}

// builder is a folder whose family is presented.
type builder struct{ *decoder.Builder }

// of returns the function of a family for any folder.
func of(family func(*builder)) func(*folder.Builder) {
	return func(b *folder.Builder) { family(&builder{&decoder.Builder{Builder: b}}) }
}

// canvas adds what makes a decoder one of masked diffusion: rows see each other, a row gives the token behind its own place (shift) or its own, and the mask is the token of
// config.json, or else the added token of tokenizer.json that has one of some texts.
func (b *builder) canvas(shift bool, texts ...string) {
	folder.Set(b.Builder.Builder, ".attention.causal", false)
	folder.Set(b.Builder.Builder, "diffusion.shift_logits", shift)
	if !b.OK() {
		return
	}
	const key = "mask_token_id"
	id, ok := b.Config.CountOr(key, 0, 0, max(0, b.Vocab-1)), b.Config.Has(key)
	if !ok {
		id, ok = b.added(texts)
	}
	if !ok {
		b.Config.Fail("%s is missing, and tokenizer.json adds none of %q: without a mask there is no canvas", key, texts)
		return
	}
	b.SetCount("tokenizer.ggml.mask_token_id", id)
}

// added returns the first added token of the tokenizer that has one of some texts.
func (b *builder) added(texts []string) (id int, ok bool) {
	text, err := folder.ReadFile(filepath.Join(b.Dir, "tokenizer.json"))
	if err != nil {
		return 0, false // the tokenizer says so
	}
	var file struct {
		Added []struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
	}
	if json.Unmarshal(text, &file) != nil {
		return 0, false
	}
	for _, t := range file.Added {
		if slices.Contains(texts, t.Content) && t.ID >= 0 && t.ID < b.Vocab {
			return t.ID, true
		}
	}
	return 0, false
}

// qwen adds what the models that began as a Qwen share.
func (b *builder) qwen(arch string) decoder.Shape {
	c := b.Config
	c.Only("hidden_act", "silu")
	for _, key := range []string{"use_sliding_window", "use_mrope"} {
		if c.BoolOr(key, false) {
			c.Fail("%s is true; it must be false", key)
		}
	}
	return b.RMSDecoder(arch, 1e-6, false)
}

func dream(b *builder) {
	s := b.qwen("dream")
	b.Layers(s.Layers, decoder.LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.Gated(s, to, from)
	})
	b.canvas(true, "<|mask|>")
}

func sdar(b *builder) {
	s := b.qwen("sdar")
	b.Layers(s.Layers, decoder.LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.Gated(s, to, from)
	})
	b.blocks()
}

func sdarMoE(b *builder) {
	b.experts("sdar_moe", "moe_intermediate_size")
	b.blocks()
}

// blocks adds the length of a block, which folders of blocks of four tokens do not name.
func (b *builder) blocks() {
	b.canvas(false, "<|MASK|>", "<|mask|>")
	b.SetCount("diffusion.block_length", b.Config.CountOr(b.Config.First("block_size", "block_length"), 4, 1, 1<<10))
}

func rnd1(b *builder) {
	b.experts("rnd1", "moe_intermediate_size")
	b.canvas(true, "<|mask|>", "<|MASK|>")
}

// experts adds Qwen 3 with a mixture in each layer, whose weights are shares among the chosen experts.
func (b *builder) experts(arch, inner string) {
	c := b.Config
	if !c.BoolOr("norm_topk_prob", true) {
		c.Fail("norm_topk_prob is false; it must be true")
	}
	b.mixtures(b.qwenOf(arch, inner), inner)
}

// qwenOf is qwen for a folder that may name the inner values of its experts alone.
func (b *builder) qwenOf(arch, inner string) decoder.Shape {
	c := b.Config
	if !c.Has("intermediate_size") {
		c.Values["intermediate_size"] = c.Values[inner]
	}
	return b.qwen(arch)
}

// mixtures adds layers of normed heads with a mixture each.
func (b *builder) mixtures(s decoder.Shape, inner string) {
	c := b.Config
	var dense []int
	if c.Value("mlp_only_layers", &dense, "an array of layers"); len(dense) > 0 || c.CountOr("decoder_sparse_step", 1, 0, decoder.MaxLayers) != 1 {
		c.Fail("layers without experts (mlp_only_layers, decoder_sparse_step) are not supported")
	}
	experts, ffn := b.Experts(c.First("num_experts", "num_local_experts")), c.Count(inner, 1, decoder.MaxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.Layers(s.Layers, decoder.LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.Mixture(s, experts, ffn, to, from("mlp.gate.weight"), decoder.ExpertOf(from), "gate_proj", "up_proj", "down_proj")
	})
}

// lladaMoE has a mixture in each layer whose weights are not shares among the chosen experts.
func lladaMoE(b *builder) {
	c := b.Config
	inner := c.First("expert_intermediate_size", "moe_intermediate_size")
	for key, want := range map[string]float64{"routed_scaling_factor": 1, "partial_rotary_factor": 1, "shared_expert_intermediate_size": 0} {
		if x := c.FloatOr(key, want, 0, 1e9); x != want {
			c.Fail("%s is %v; it must be %v", key, x, want)
		}
	}
	if !c.Has("rms_norm_eps") {
		c.Values["rms_norm_eps"] = []byte("1e-5")
	}
	s := b.qwenOf("llada-moe", inner)
	folder.Set(b.Builder.Builder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", false))
	b.mixtures(s, inner)
	b.canvas(false, "<|mask|>", "<|mdm_mask|>")
}
