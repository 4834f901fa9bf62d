package hf

import (
	"math"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/safetensors"
)

// Settings of Llama 4 that GGUF does not tell of, unless they differ.
const (
	llama4Chunk  = 8192
	llama4Period = 4   // layers from one without rotation to the next
	llama4Wide   = 128 // experts of the model that does not norm queries and keys
)

// TextPrefix returns what the names of the text part's tensors begin with, and leaves other parts of a model that sees or hears out, by what
// their names begin with.
func (b *FolderBuilder) TextPrefix(others ...string) string {
	for _, p := range []string{"language_model.model.", "model.language_model."} {
		if b.Has(p + "embed_tokens.weight") {
			b.Ignored = func(name string) bool {
				name = strings.TrimPrefix(name, "model.")
				return slices.ContainsFunc(others, func(part string) bool { return strings.HasPrefix(name, part) })
			}
			return p
		}
	}
	return "model."
}

// Slides reads which layers have a sliding window, and adds that and the window.
func (b *FolderBuilder) Slides(layers int) []bool {
	var kinds []string
	if !b.Config.Value("layer_types", &kinds, "an array of kinds") || len(kinds) != layers {
		b.Config.Fail("layer_types has %d entries, there are %d layers", len(kinds), layers)
		return make([]bool, layers)
	}
	slides := make([]bool, layers)
	for i, kind := range kinds {
		if slides[i] = kind == "sliding_attention"; !slides[i] && kind != "full_attention" {
			b.Config.Fail("layer_types has %.40q for layer %d; it must be sliding_attention or full_attention", kind, i)
		}
	}
	b.SetCount(".attention.sliding_window", b.Config.Count("sliding_window", 1, folderMaxContext))
	b.SetValue(".attention.sliding_window_pattern", gguf.ArrayOf(slides))
	return slides
}

// Inner returns the inner values of each layer, which are a number or an array.
func (b *FolderBuilder) Inner(layers int) []int {
	var each []int
	out := make([]int, layers)
	if text := b.Config.Values["intermediate_size"]; len(text) > 0 && text[0] == '[' {
		if b.Config.Value("intermediate_size", &each, "a number, or an array of one for each layer"); len(each) != layers {
			b.Config.Fail("intermediate_size has %d entries, there are %d layers", len(each), layers)
			return out
		}
	}
	for i := range out {
		if each == nil {
			out[i] = b.Config.Count("intermediate_size", 1, folderMaxWidth)
		} else if out[i] = each[i]; out[i] < 1 || out[i] > folderMaxWidth {
			b.Config.Fail("intermediate_size has %d for layer %d; it must be 1 to %d", out[i], i, folderMaxWidth)
		}
	}
	return out
}

// LayerInputs adds the inputs of layers, n values each. The second table may lack the last tokens, of images and sounds: they get the
// row of token 0, as they do when the folder's own program runs.
func (b *FolderBuilder) LayerInputs(prefix string, layers, width, n int) {
	all := n * layers
	const table = "embed_tokens_per_layer.weight"
	t, _ := b.Tensor(prefix + table)
	rows := b.Vocab
	if len(t.Shape) == 2 && t.Shape[0] >= 1 && t.Shape[0] < rows {
		rows = t.Shape[0]
	}
	if rows == b.Vocab {
		b.Copy("per_layer_token_embd.weight", prefix+table, b.Vocab, all)
	} else {
		b.Gathered("per_layer_token_embd.weight", prefix+table, rows, all, b.Vocab, func(i int) int {
			if i < rows {
				return i
			}
			return 0
		})
	}
	b.Copy("per_layer_model_proj.weight", prefix+"per_layer_model_projection.weight", all, width)
	b.Norm("per_layer_proj_norm.weight", prefix+"per_layer_projection_norm.weight", n, 0)
}

// Gemma4Experts adds the mixture of a layer of Gemma 4, of ffn inner values an expert, and its norms.
func (b *FolderBuilder) Gemma4Experts(width, experts, ffn int, to, from func(string) string) {
	for _, n := range [][2]string{{"pre_ffw_norm_2", "pre_feedforward_layernorm_2"}, {"post_ffw_norm_1", "post_feedforward_layernorm_1"}, {"post_ffw_norm_2", "post_feedforward_layernorm_2"}} {
		b.Norm(to(n[0]+".weight"), from(n[1]+".weight"), width, 0)
	}
	b.Copy(to("ffn_gate_inp.weight"), from("router.proj.weight"), experts, width)
	b.Norm(to("ffn_gate_inp.scale"), from("router.scale"), width, 0)
	b.Norm(to("ffn_down_exps.scale"), from("router.per_expert_scale"), experts, 0)
	b.Copy(to("ffn_gate_up_exps.weight"), from("experts.gate_up_proj"), experts, 2*ffn, width)
	b.Copy(to("ffn_down_exps.weight"), from("experts.down_proj"), experts, width, ffn)
}

// Gemma4Rope adds the two rotations. That of layers without a window may turn the first pairs of a head alone: the others get a
// divisor that stops them.
func (b *FolderBuilder) Gemma4Rope(full, local int) {
	p := b.Config.Sub("rope_parameters")
	global, slide := p.Sub("full_attention"), p.Sub("sliding_attention")
	b.SetCount(".rope.dimension_count", full)
	b.SetCount(".rope.dimension_count_swa", local)
	b.SetFloat(".rope.freq_base", global.FloatOr("rope_theta", 1e6, 1, math.MaxFloat32))
	b.SetFloat(".rope.freq_base_swa", slide.FloatOr("rope_theta", 10000, 1, math.MaxFloat32))
	slide.Only("rope_type", "default")
	if slide.FloatOr("partial_rotary_factor", 1, 0, 1) != 1 || global.FloatOr("factor", 1, 0, 1<<20) != 1 {
		p.Fail("a part of the heads with a window that rotates, and a factor of positions, are not supported")
	}
	switch kind := global.TextOr("rope_type", "default"); kind {
	case "default":
	case "proportional":
		factors := make([]float32, full/2)
		turns := int(float64(full)*global.FloatOr("partial_rotary_factor", 1, 0, 1)) / 2
		for i := range factors {
			if factors[i] = 1; i >= turns {
				factors[i] = 1e30
			}
		}
		b.AddFloats("rope_freqs.weight", factors)
	default:
		global.Fail("rope_type is %.40q; it must be default or proportional", kind)
	}
}

// Llama4Attention adds chunks and temperature, where they are not the usual ones, and refuses layers against the rule.
func (b *FolderBuilder) Llama4Attention(layers, experts int) {
	c := b.Config
	chunk := c.CountOr("attention_chunk_size", llama4Chunk, 1, folderMaxContext)
	if chunk != llama4Chunk {
		b.SetCount(".attention.chunk_size", chunk)
	}
	if n := c.CountOr("floor_scale", llama4Chunk, 1, folderMaxContext); n != chunk {
		b.SetCount(".attention.temperature_length", n)
	}
	scale := c.FloatOr("attn_scale", 0.1, 0, 10)
	var tuned any = true
	if c.Value("attn_temperature_tuning", &tuned, "true, false or a number"); tuned == false || tuned == 0.0 {
		scale = 0
	}
	b.SetFloat(".attention.temperature_scale", scale)
	if got, want := c.BoolOr("use_qk_norm", experts != llama4Wide), experts != llama4Wide; got != want {
		c.Fail("use_qk_norm is %v; with %d experts it must be %v", got, experts, want)
	}
	var turns []int
	if !c.Value("no_rope_layers", &turns, "an array of 0 and 1") || len(turns) == 0 {
		return
	}
	var want []int
	for i := range layers {
		want = append(want, min(1, (i+1)%llama4Period))
	}
	if !slices.Equal(turns, want) {
		c.Fail("no_rope_layers is %v; every fourth layer must be without rotation", turns)
	}
}

// TurnedStack adds the columns [first, first+out) of n matrices [in, columns] as a stack of matrices [out, in].
func (b *FolderBuilder) TurnedStack(to, from string, n, in, columns, first, out int) {
	if t, ok := b.Find(from, n, in, columns); ok {
		b.TurnedStackOf(to, t, first, out)
	}
}

// TurnedStackOf is [FolderBuilder.TurnedStack] for a tensor that was found, of shape [n, in, columns].
func (b *FolderBuilder) TurnedStackOf(to string, t safetensors.Tensor, first, out int) {
	n, in, columns := t.Shape[0], t.Shape[1], t.Shape[2]
	b.Add(to, safetensors.FloatTypes[t.Type], []int{n, out, in}, func(dst []byte) {
		size := len(dst) / (n * out * in)
		for e := range n {
			for o := range out {
				for i := range in {
					copy(dst[((e*out+o)*in+i)*size:][:size], t.Data[((e*in+i)*columns+first+o)*size:])
				}
			}
		}
	})
}

// UnitShape is the sizes of a layer of Gemma 3n and 4.
type UnitShape struct{ Width, Heads, KVHeads, Size, FFN int }

// UnitLayer adds the norms, the attention and the feed-forward block of a layer.
func (b *FolderBuilder) UnitLayer(s UnitShape, inputs int, to, from func(string) string) {
	for _, n := range [][2]string{
		{"attn_norm", "input_layernorm"}, {"post_attention_norm", "post_attention_layernorm"},
		{"ffn_norm", "pre_feedforward_layernorm"}, {"post_ffw_norm", "post_feedforward_layernorm"},
	} {
		b.Norm(to(n[0]+".weight"), from(n[1]+".weight"), s.Width, 0)
	}
	b.Copy(to("attn_q.weight"), from("self_attn.q_proj.weight"), s.Heads*s.Size, s.Width)
	b.Norm(to("attn_q_norm.weight"), from("self_attn.q_norm.weight"), s.Size, 0)
	b.CopyIf(to("attn_k.weight"), from("self_attn.k_proj.weight"), s.KVHeads*s.Size, s.Width)
	b.CopyIf(to("attn_v.weight"), from("self_attn.v_proj.weight"), s.KVHeads*s.Size, s.Width)
	b.CopyIf(to("attn_k_norm.weight"), from("self_attn.k_norm.weight"), s.Size)
	b.Copy(to("attn_output.weight"), from("self_attn.o_proj.weight"), s.Width, s.Heads*s.Size)
	b.Copy(to("ffn_gate.weight"), from("mlp.gate_proj.weight"), s.FFN, s.Width)
	b.Copy(to("ffn_up.weight"), from("mlp.up_proj.weight"), s.FFN, s.Width)
	b.Copy(to("ffn_down.weight"), from("mlp.down_proj.weight"), s.Width, s.FFN)
	if inputs > 0 {
		b.Copy(to("inp_gate.weight"), from("per_layer_input_gate.weight"), inputs, s.Width)
		b.Copy(to("proj.weight"), from("per_layer_projection.weight"), s.Width, inputs)
		b.Norm(to("post_norm.weight"), from("post_per_layer_input_norm.weight"), s.Width, 0)
	}
}
