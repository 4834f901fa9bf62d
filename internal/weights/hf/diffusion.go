// diffusion.go says what the folders of models of masked diffusion have: LLaDA, LLaDA-MoE, Dream, RND1, and SDAR, whose rows see blocks.

package hf

import (
	"encoding/json"
	"path/filepath"
	"slices"
)

// DiffusionFamilies are the classes of config.json.
var DiffusionFamilies = map[string]func(b *FolderBuilder){
	"DreamModel":         diffusionOf(dream),
	"LLaDAModelLM":       diffusionOf(llada),
	"LLaDAMoEModel":      diffusionOf(lladaMoE),
	"LLaDAMoEModelLM":    diffusionOf(lladaMoE),
	"RND1":               diffusionOf(rnd1),
	"RND1LM":             diffusionOf(rnd1),
	"SDARForCausalLM":    diffusionOf(sdar),
	"SDARMoeForCausalLM": diffusionOf(sdarMoE),
}

// diffusionBuilder is a folder whose family is presented.
type diffusionBuilder struct{ *DecoderBuilder }

// diffusionOf returns the function of a family for any folder.
func diffusionOf(family func(*diffusionBuilder)) func(*FolderBuilder) {
	return func(b *FolderBuilder) { family(&diffusionBuilder{&DecoderBuilder{FolderBuilder: b}}) }
}

// canvas adds what makes a decoder one of masked diffusion: rows see each other, a row gives the token behind its own place (shift) or its own, and the mask is the token of
// config.json, or else the added token of tokenizer.json that has one of some texts.
func (b *diffusionBuilder) canvas(shift bool, texts ...string) {
	FolderSet(b.DecoderBuilder.FolderBuilder, ".attention.causal", false)
	FolderSet(b.DecoderBuilder.FolderBuilder, "diffusion.shift_logits", shift)
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
func (b *diffusionBuilder) added(texts []string) (id int, ok bool) {
	text, err := ReadFile(filepath.Join(b.Dir, "tokenizer.json"))
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
func (b *diffusionBuilder) qwen(arch string) Shape {
	c := b.Config
	c.Only("hidden_act", "silu")
	for _, key := range []string{"use_sliding_window", "use_mrope"} {
		if c.BoolOr(key, false) {
			c.Fail("%s is true; it must be false", key)
		}
	}
	return b.RMSDecoder(arch, 1e-6, false)
}

func dream(b *diffusionBuilder) {
	s := b.qwen("dream")
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.Gated(s, to, from)
	})
	b.canvas(true, "<|mask|>")
}

func sdar(b *diffusionBuilder) {
	s := b.qwen("sdar")
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.Gated(s, to, from)
	})
	b.blocks()
}

func sdarMoE(b *diffusionBuilder) {
	b.experts("sdar_moe", "moe_intermediate_size")
	b.blocks()
}

// blocks adds the length of a block, which folders of blocks of four tokens do not name.
func (b *diffusionBuilder) blocks() {
	b.canvas(false, "<|MASK|>", "<|mask|>")
	b.SetCount("diffusion.block_length", b.Config.CountOr(b.Config.First("block_size", "block_length"), 4, 1, 1<<10))
}

func rnd1(b *diffusionBuilder) {
	b.experts("rnd1", "moe_intermediate_size")
	b.canvas(true, "<|mask|>", "<|MASK|>")
}

// experts adds Qwen 3 with a mixture in each layer, whose weights are shares among the chosen experts.
func (b *diffusionBuilder) experts(arch, inner string) {
	c := b.Config
	if !c.BoolOr("norm_topk_prob", true) {
		c.Fail("norm_topk_prob is false; it must be true")
	}
	b.mixtures(b.qwenOf(arch, inner), inner)
}

// qwenOf is qwen for a folder that may name the inner values of its experts alone.
func (b *diffusionBuilder) qwenOf(arch, inner string) Shape {
	c := b.Config
	if !c.Has("intermediate_size") {
		c.Values["intermediate_size"] = c.Values[inner]
	}
	return b.qwen(arch)
}

// mixtures adds layers of normed heads with a mixture each.
func (b *diffusionBuilder) mixtures(s Shape, inner string) {
	c := b.Config
	var dense []int
	if c.Value("mlp_only_layers", &dense, "an array of layers"); len(dense) > 0 || c.CountOr("decoder_sparse_step", 1, 0, MaxLayers) != 1 {
		c.Fail("layers without experts (mlp_only_layers, decoder_sparse_step) are not supported")
	}
	experts, ffn := b.Experts(c.First("num_experts", "num_local_experts")), c.Count(inner, 1, MaxWidth)
	b.SetCount(".expert_feed_forward_length", ffn)
	b.Layers(s.Layers, LayerRoot, func(to, from func(string) string) {
		b.Norms(s.Width, to, from)
		b.Attention(s, to, from)
		b.HeadNorms(s.Size, s.Size, to, from, 0)
		b.Mixture(s, experts, ffn, to, from("mlp.gate.weight"), ExpertOf(from), "gate_proj", "up_proj", "down_proj")
	})
}

// lladaMoE has a mixture in each layer whose weights are not shares among the chosen experts.
func lladaMoE(b *diffusionBuilder) {
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
	FolderSet(b.DecoderBuilder.FolderBuilder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", false))
	b.mixtures(s, inner)
	b.canvas(false, "<|mask|>", "<|mdm_mask|>")
}
