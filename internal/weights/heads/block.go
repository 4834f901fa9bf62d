package heads

import (
	"cmp"
	"fmt"
	"slices"

	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

// Bounds of modules that draft blocks, as internal/model/module has them.
const (
	maxTaps = 16

	usualBlock = 16 // of files that do not say it, as the authors' code has it
)

// dflash presents a module that drafts blocks, as its authors or as the speculators library write it: DFlash (2026), whose fc.weight joins the
// target's states; DFlare (2026), whose layers weigh these each; DSpark (2026), which has a Markov head. All three are of the architecture dflash:
// the tensors say which it is.
func dflash(b *builder) {
	if b.top.Has("transformer_layer_config") {
		b.Config = b.top.Sub("transformer_layer_config")
	}
	b.setWidth(b.rowsOf("fc.weight", "layers.0.self_attn.o_proj.weight"))
	layers := b.layerCount()
	taps := b.blockSettings()
	b.attention()
	b.blockAttention(layers)
	if !b.OK() {
		return
	}
	fusion, fused := b.fusionName()
	if fused {
		b.fusion(fusion, layers, taps)
	} else {
		b.take("fc.weight", "fc.weight", b.width, taps*b.width)
		b.takeIf("fc.bias", "fc.bias", b.width)
		b.take("hidden_norm.weight", "hidden_norm.weight", b.width)
	}
	for i := range layers {
		l := layer{to: fmt.Sprintf("blk.%d.", i), from: fmt.Sprintf("layers.%d.", i), inputs: b.width, norm: true, mlp: true}
		b.layer(l)
		if fused {
			b.contextProjections(l)
		}
	}
	b.take("output_norm.weight", "norm.weight", b.width)
	b.draftEnds()
	b.markov()
	if b.vocab > 0 && b.mask >= b.vocab {
		b.top.Fail("mask_token_id is %d; the vocabulary has %d tokens", b.mask, b.vocab)
	}
	b.drop("verifier_norm.weight", "it is the target's")
	b.drop("verifier_lm_head.weight", "it is the target's")
}

// blockSettings adds the settings of blocks, and returns how many states of the target a row reads.
func (b *builder) blockSettings() (taps int) {
	inner := b.top.Sub("dflash_config")
	in := func(key string) *hf.FolderConfig {
		if inner.Has(key) {
			return inner
		}
		return b.top
	}
	b.SetCount(".block_size", in("block_size").CountOr("block_size", usualBlock, 2, maxBlock))
	b.mask = in("mask_token_id").Count("mask_token_id", 0, maxRows-1)
	b.SetCount(".mask_token_id", b.mask)
	const ids, places = "target_layer_ids", "aux_hidden_state_layer_ids" // of layers, and of what stands between them
	key, shift := ids, int32(1)
	if b.top.Has(places) {
		key, shift = places, 0
	}
	var read []int32
	if c := in(key); !c.Has(key) {
		c.Fail("%s is missing: it names the states of the target that the module reads", key)
	} else if c.Value(key, &read, "an array of numbers of layers") {
		for i := range read {
			read[i] += shift
		}
		sorted := slices.Clone(read)
		if slices.Sort(sorted); len(read) < 1 || len(read) > maxTaps || sorted[0] < 1 || sorted[len(sorted)-1] > maxLayers || len(slices.Compact(sorted)) != len(read) {
			c.Fail("%s is %.60s; a module of blocks reads the states of 1 to %d layers, each from %d to %d, no two the same", key, fmt.Sprint(minus(read, shift)), maxTaps, 1-shift, maxLayers-int(shift))
		}
		b.SetValue(".taps", gguf.ArrayOf(read))
	}
	for _, key := range []string{"sample_from_anchor", "shift_label"} {
		if c := in(key); c.Has(key) {
			hf.FolderSet(b.FolderBuilder, b.Arch+".sample_from_anchor", c.BoolOr(key, false))
			break
		}
	}
	for _, key := range []string{"input_embedding_scale", "output_multiplier", "final_logit_softcapping"} {
		if c := in(key); c.Has(key) {
			b.note(fmt.Sprintf("%s of config.json is left out: the target's own is used", key))
		}
	}
	in("projector_type").Only("projector_type", "dflash")
	in("markov_head_type").Only("markov_head_type", "vanilla")
	return len(read)
}

// minus returns numbers as the file has them.
func minus(numbers []int32, shift int32) []int32 {
	out := slices.Clone(numbers)
	for i := range out {
		out[i] -= shift
	}
	return out
}

// blockAttention adds which layers have a window, and whether rows of a block see those behind them. Layers with a window do not, unless the settings
// say otherwise; the engine wants the same of all layers.
func (b *builder) blockAttention(layers int) {
	var kinds []string
	windowed := make([]bool, layers)
	if b.Config.Has("layer_types") && b.Config.Value("layer_types", &kinds, "an array of kinds") {
		if len(kinds) != layers {
			b.Config.Fail("layer_types has %d entries, there are %d layers", len(kinds), layers)
			return
		}
		for i, kind := range kinds {
			if windowed[i] = kind == "sliding_attention"; !windowed[i] && kind != "full_attention" {
				b.Config.Fail("layer_types has %.40q for layer %d; it must be full_attention or sliding_attention", kind, i)
				return
			}
		}
	}
	some, all := slices.Contains(windowed, true), !slices.Contains(windowed, false)
	if some {
		b.SetCount(".attention.sliding_window", b.Config.Count("sliding_window", 1, maxTokens))
		b.SetValue(".attention.sliding_window_pattern", gguf.ArrayOf(windowed))
	}
	causal := some && !b.top.BoolOr("sliding_window_non_causal", false)
	for _, c := range []*hf.FolderConfig{b.Config, b.top, b.top.Sub("dflash_config")} {
		if c.Has("is_causal") {
			causal, all = c.BoolOr("is_causal", false), true
		}
	}
	if causal && !all {
		b.Config.Fail("layer_types: rows of a block see the later ones in layers of full_attention and not in those of sliding_attention; such a mix is not supported")
	}
	hf.FolderSet(b.FolderBuilder, b.Arch+".attention.causal", causal)
}

// fusionName returns the name of DFlare's weights of the target's states, if they are there: that of its authors, or of speculators.
func (b *builder) fusionName() (string, bool) {
	for _, name := range []string{"layer_fusion_weights", "fusion_weights"} {
		if _, ok := b.Weights.Tensor(name); ok {
			return name, true
		}
	}
	return "", false
}

// fusion adds DFlare's weights of the target's states, and the norm of their sum: one, or one for each layer.
func (b *builder) fusion(name string, layers, taps int) {
	t, _ := b.Weights.Tensor(name)
	b.used[name] = true
	switch _, float := safetensors.FloatTypes[t.Type]; {
	case !slices.Equal(t.Shape, []int{layers, taps}):
		b.Fail("%s: shape is %v; the other tensors and the settings ask for [%d %d]", name, t.Shape, layers, taps)
	case !float:
		b.Fail("%s: type is %s; it must be F32, F16 or BF16", name, t.Type)
	default:
		b.Add("fusion.weight", tensor.F32, t.Shape, func(dst []byte) { hf.ToF32(dst, t, 0) })
	}
	if !b.has("fusion_norms.") {
		b.take("hidden_norm.weight", "hidden_norm.weight", b.width)
		return
	}
	for i := range layers {
		b.take(fmt.Sprintf("blk.%d.hidden_norm.weight", i), fmt.Sprintf("fusion_norms.%d.weight", i), b.width)
	}
}

// contextProjections adds what makes the context's keys and values in a layer of DFlare: matrices of their own, or the layer's, where the settings
// say so.
func (b *builder) contextProjections(l layer) {
	suffix := "_target"
	if !b.top.BoolOr("use_heterogeneous_kv", true) {
		suffix = ""
	}
	for _, m := range []string{"k", "v"} {
		to, from := l.to+"attn_"+m+"_target", l.from+"self_attn."+m+"_proj"+suffix
		b.take(to+".weight", from+".weight", b.keys*b.size, b.width)
		b.takeIf(to+".bias", from+".bias", b.keys*b.size)
	}
}

// markov adds what DSpark adds to logits behind a token, and what it expects of a draft.
func (b *builder) markov() {
	const in, out, trust = "markov_head.markov_w1.weight", "markov_head.markov_w2.weight", "confidence_head.proj"
	if !b.has("markov_head.") {
		for _, kind := range []string{".weight", ".bias"} {
			b.drop(trust+kind, "a confidence head is used with a Markov head")
		}
		return
	}
	rows, rank := b.matrix(in)
	if b.vocab == 0 {
		b.setVocabulary(rows)
	}
	drafts, _ := b.matrix(out)
	b.take("markov_w1.weight", in, cmp.Or(b.vocab, rows), rank)
	b.take("markov_w2.weight", out, cmp.Or(b.rowsOf("lm_head.weight"), b.vocab, drafts), rank)
	if _, cols := b.matrix(trust + ".weight"); cols == b.width {
		for _, kind := range []string{".weight", ".bias"} {
			b.drop(trust+kind, "it does not read the token, which grove's confidence heads do")
		}
		return
	}
	if b.takeIf("conf_proj.weight", trust+".weight", 1, b.width+rank) {
		b.takeIf("conf_proj.bias", trust+".bias", 1)
	}
}
