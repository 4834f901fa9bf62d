package hf

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// The parts of a DiffusionGemma: the decoder has all weights, and the encoder for text one number of its own in each layer.
const (
	canvasRoot  = "model.decoder."
	encoderRoot = "model.encoder."
)

// diffusionGemma takes the text part of DiffusionGemma (Google 2026). Text and canvas have the same layers but for a factor.
func diffusionGemma(b *builder) {
	c := b.Config
	for _, key := range []string{"num_kv_shared_layers", "hidden_size_per_layer_input"} {
		if n := c.CountOr(key, 0, 0, math.MaxInt32); n != 0 {
			c.Fail("%s is %d; it must be 0", key, n)
		}
	}
	if c.Has("per_layer_config") {
		c.Fail("per_layer_config is not supported; global_head_dim and num_global_key_value_heads say what layers without a window have")
	}
	if kind := c.TextOr("use_bidirectional_attention", "vision"); kind != "vision" {
		c.Fail("use_bidirectional_attention is %.40q; it must be vision or missing: the tokens of a text see the ones before them", kind)
	}
	if !b.Whole.BoolOr("tie_word_embeddings", true) {
		b.Whole.Fail("tie_word_embeddings is false; the text and the canvas must have the same weights")
	}
	for key, usual := range map[string]string{
		"global_head_dim": "512", "final_logit_softcapping": "30", // what folders mean that do not say
		"rope_parameters": `{"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000}, "sliding_attention": {"rope_theta": 10000}}`,
	} {
		if !c.Has(key) {
			c.Values[key] = []byte(usual)
		}
	}
	g := b.readGemma4("diffusion-gemma", true, true)
	b.Ignored = func(name string) bool { return strings.HasPrefix(name, encoderRoot) }
	layer := 0
	b.gemma4Layers(g, canvasRoot, func(to, _ func(string) string) {
		b.Copy(to("enc_layer_output_scale.weight"), encoderRoot+"language_model.layers."+strconv.Itoa(layer)+".layer_scalar", 1)
		layer++
	})
	const own = canvasRoot + "self_conditioning."
	b.Norm("self_cond_pre_norm.weight", own+"pre_norm.weight", g.Width, 0)
	b.Copy("self_cond_gate.weight", own+"gate_proj.weight", g.FFN, g.Width)
	b.Copy("self_cond_up.weight", own+"up_proj.weight", g.FFN, g.Width)
	b.Copy("self_cond_down.weight", own+"down_proj.weight", g.Width, g.FFN)
	b.canvases(g.Context)
}

// canvases adds how canvases are filled, of config.json and generation_config.json.
func (b *builder) canvases(context int) {
	FolderSet(b.DecoderBuilder.FolderBuilder, ".attention.causal", false)
	b.SetCount("diffusion.canvas_length", b.Whole.CountOr("canvas_length", 256, 1, context))
	c := b.OptionalConfig(filepath.Join(b.Dir, GenerationName))
	for _, n := range [][2]string{{"max_denoising_steps", "eb_max_steps"}, {"stability_threshold", "eb_stability_threshold"}} {
		if c.Has(n[0]) {
			b.SetCount("diffusion."+n[1], c.Count(n[0], 0, 1<<16))
		}
	}
	for _, n := range [][2]string{{"t_min", "eb_t_min"}, {"t_max", "eb_t_max"}, {"confidence_threshold", "eb_confidence_threshold"}} {
		if c.Has(n[0]) {
			b.SetFloat("diffusion."+n[1], c.FloatOr(n[0], 0, 0, 1e6))
		}
	}
	if s := c.Sub("sampler_config"); s.Has("entropy_bound") {
		b.SetFloat("diffusion.eb_entropy_bound", s.FloatOr("entropy_bound", 0, 0, 1e6))
	}
}
