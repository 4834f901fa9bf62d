package hftest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Raw is a tensor of a safetensors file, of any type of that format.
type Raw struct {
	Type  string
	Shape []int
	Data  []byte
}

// Head is a drafting head on its way to files, as its authors would publish it; what is in it may be changed before it is written.
type Head struct {
	Config  map[string]any
	Tensors map[string]Raw
	Text    map[string]string // of the safetensors header
}

// HeadShape is the shape of the heads that [NewHead] makes, and of the target that they are for.
type HeadShape struct {
	Width, Heads, Keys, Inner int
	Vocab, Draft              int // tokens of the target, and of EAGLE-3's head
}

// SmallHead is a shape for tests.
var SmallHead = HeadShape{Width: 64, Heads: 4, Keys: 2, Inner: 96, Vocab: 80, Draft: 24}

// HeadFamilies are the layouts that [NewHead] makes.
func HeadFamilies() []string {
	return []string{
		"medusa", "medusa-old", "hydra", "hydra++", "eagle", "eagle3", "eagle3-speculators", "fspad", "kangaroo", "m2r2", "peagle", "chimera", "chimera-lent", "falcon",
		"ppd", "transfer", "specblock", "clover", "dflash", "dflash-fused", "dflash-speculators", "dflare", "dflare-speculators", "dspark", "dspark-speculators",
	}
}

// NewHead makes a head of random weights in the layout of that name.
func NewHead(layout string, s HeadShape) *Head {
	w := &headWriter{HeadShape: s, rng: rand.New(rand.NewPCG(7, uint64(len(layout)))), Head: &Head{
		Config: map[string]any{"base_model_name_or_path": "org/target", "max_position_embeddings": 512}, Tensors: map[string]Raw{}, Text: map[string]string{"format": "pt"},
	}}
	switch layout {
	case "medusa", "medusa-old":
		w.medusa(layout == "medusa-old")
	case "hydra", "hydra++":
		w.hydra(layout == "hydra++")
	case "eagle", "fspad":
		w.eagle(layout == "fspad")
	case "peagle":
		w.eagle3(true)
		w.peagle()
	case "eagle3", "eagle3-speculators":
		w.eagle3(layout == "eagle3-speculators")
	case "falcon":
		w.falcon()
	case "specblock":
		w.specblock()
	case "kangaroo":
		w.llama(w.Config)
		w.attention("layers.0.self_attn.", s.Width)
		w.floats("layers.0.input_layernorm.weight", s.Width)
		w.floats("norm.weight", s.Width)
		w.Config["exit_layer"] = 2
	case "m2r2":
		maps.Copy(w.Config, map[string]any{"exit_layer": 2, "r": 4, "lora_alpha": 8, "hidden_size": s.Width, "vocab_size": s.Vocab})
		for _, name := range []string{"blk.0.attn_q", "blk.1.ffn_down"} {
			w.floats(name+".lora_a.weight", 4, map[bool]int{true: s.Width, false: s.Inner}[name == "blk.0.attn_q"])
			w.floats(name+".lora_b.weight", s.Width, 4)
		}
	case "chimera", "chimera-lent":
		w.chimera(layout == "chimera-lent")
	case "ppd":
		maps.Copy(w.Config, map[string]any{"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 3, "virtual_tokens_per_special_token": 1, "token_dim": s.Width, "vt_attention_type": "ensemble"})
		w.floats("prompt_embeddings", 3, s.Width)
	case "transfer":
		w.Config["transfer_layers"], w.Config["vocab_size"] = []int{1, 3}, s.Vocab
		w.floats("transfer.0.weight", s.Width, s.Width)
		w.floats("transfer.1.weight", s.Width, s.Width)
	case "clover":
		w.clover()
	case "dflash", "dflash-fused", "dflash-speculators", "dflare", "dflare-speculators", "dspark", "dspark-speculators":
		family, kind, _ := strings.Cut(layout, "-")
		w.block(family, kind == "speculators", kind == "fused")
	default:
		panic(fmt.Sprintf("hftest: layout %q of heads is not known", layout))
	}
	return w.Head
}

// headWriter adds tensors.
type headWriter struct {
	HeadShape
	*Head
	rng *rand.Rand
}

// floats adds a tensor of random values: of matrices BF16, of vectors F32.
func (w *headWriter) floats(name string, shape ...int) {
	t := Raw{Type: "F32", Shape: shape}
	n := 1
	for _, d := range shape {
		n *= d
	}
	for range n {
		bits := math.Float32bits(float32(w.rng.NormFloat64() / 8))
		if len(shape) == 1 {
			t.Data = binary.LittleEndian.AppendUint32(t.Data, bits)
		} else {
			t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(bits>>16))
		}
	}
	if len(shape) > 1 {
		t.Type = "BF16"
	}
	w.Tensors[name] = t
}

// linear adds a weight and a bias.
func (w *headWriter) linear(name string, out, in int) {
	w.floats(name+".weight", out, in)
	w.floats(name+".bias", out)
}

func (w *headWriter) llama(config map[string]any) {
	maps.Copy(config, map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "hidden_act": "silu", "hidden_size": w.Width, "intermediate_size": w.Inner, "num_hidden_layers": 1,
		"num_attention_heads": w.Heads, "num_key_value_heads": w.Keys, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "vocab_size": w.Vocab,
	})
}

func (w *headWriter) attention(root string, in int) {
	size := w.Width / w.Heads
	w.floats(root+"q_proj.weight", w.Heads*size, in)
	w.floats(root+"k_proj.weight", w.Keys*size, in)
	w.floats(root+"v_proj.weight", w.Keys*size, in)
	w.floats(root+"o_proj.weight", w.Width, w.Heads*size)
}

// layer adds the attention, whose products have in inputs, and the feed-forward part of a layer, without norms.
func (w *headWriter) layer(root string, in int) {
	w.attention(root+"self_attn.", in)
	w.feed(root)
}

// feed adds a gated feed-forward part without a norm.
func (w *headWriter) feed(root string) {
	w.floats(root+"mlp.gate_proj.weight", w.Inner, w.Width)
	w.floats(root+"mlp.up_proj.weight", w.Inner, w.Width)
	w.floats(root+"mlp.down_proj.weight", w.Width, w.Inner)
}

func (w *headWriter) medusa(old bool) {
	w.Config["medusa_num_heads"], w.Config["medusa_num_layers"] = 3, 1
	root := "medusa_head."
	if old {
		root, w.Config["medusa_num_heads"] = "", 2 // as the first uploads say it
	} else {
		w.floats("model.embed_tokens.weight", w.Vocab, w.Width) // the model is in the same files
		w.floats("lm_head.weight", w.Vocab, w.Width)
	}
	for k := range 3 {
		w.linear(fmt.Sprintf("%s%d.0.linear", root, k), w.Width, w.Width)
		w.floats(fmt.Sprintf("%s%d.1.weight", root, k), w.Vocab, w.Width)
	}
}

func (w *headWriter) hydra(prefix bool) {
	const heads, blocks = 2, 3
	w.Config["hydra_num_heads"], w.Config["hydra_num_layers"], w.Config["hydra_head_arch"], w.Config["grounded_heads"] = heads, blocks, "mlp", true
	first, step, output := 0, 1, ""
	if prefix {
		w.llama(w.Config)
		w.Config["hydra_head_arch"] = "prefix-mlp"
		first, step, output = 1, 2, ".1"
		const root = "prefix_embeding_layer."
		w.layer(root+"layers.0.", w.Width)
		w.floats(root+"layers.0.input_layernorm.weight", w.Width)
		w.floats(root+"layers.0.post_attention_layernorm.weight", w.Width)
		w.floats(root+"norm.weight", w.Width)
		w.floats(root+"embed_tokens.weight", w.Vocab, w.Width)
		w.floats("input_embed_fn.weight", w.Vocab, w.Width)
	}
	for k := range heads {
		name := func(j int) string { return fmt.Sprintf("hydra_mlp.%d.%d.", k, first+j*step) }
		w.linear(name(0)+"linear", w.Width, (k+2)*w.Width)
		w.linear(name(0)+"res_connection", w.Width, (k+2)*w.Width)
		w.linear(name(1)+"linear", w.Width, w.Width)
		for j := 2; j < blocks; j++ { // one repeated module
			for _, kind := range []string{"linear.weight", "linear.bias"} {
				w.Tensors[name(j)+kind] = w.Tensors[name(1)+kind]
			}
		}
		w.linear(fmt.Sprintf("hydra_lm_head.%d%s", k, output), w.Vocab, w.Width)
	}
}

// eagle is EAGLE, or FSPAD.
func (w *headWriter) eagle(fspad bool) {
	w.llama(w.Config)
	w.layer("layers.0.", w.Width)
	w.floats("layers.0.post_attention_layernorm.weight", w.Width)
	w.floats("embed_tokens.weight", w.Vocab, w.Width)
	if !fspad {
		w.linear("fc", w.Width, 2*w.Width)
		return
	}
	w.floats("layers.0.mlp.down_proj.weight", 2*w.Width, w.Inner)
	w.linear("fc.fc", w.Width, 2*w.Width)
	w.floats("fc.post_attention_layernorm.weight", w.Width)
	w.feed("fc.")
}

// peagle makes a head of EAGLE-3, by the speculators library, one of P-EAGLE of two layers.
func (w *headWriter) peagle() {
	w.Config["speculators_model_type"], w.Config["mask_token_id"], w.Config["norm_before_residual"] = "peagle", 7, false
	w.Config["speculators_config"].(map[string]any)["default_proposal_method"] = "greedy"
	w.Config["speculators_config"].(map[string]any)["proposal_methods"] = []map[string]any{{"proposal_type": "greedy", "speculative_tokens": 6}}
	w.Config["transformer_layer_config"].(map[string]any)["num_hidden_layers"] = 2
	w.layer("layers.1.", w.Width)
	w.floats("layers.1.input_layernorm.weight", w.Width)
	w.floats("layers.1.post_attention_layernorm.weight", w.Width)
	w.floats("mask_hidden", 1, 1, 3*w.Width)
	w.floats("embed_tokens.weight", w.Vocab, w.Width)
}

func (w *headWriter) chimera(lent bool) {
	const root = "fast_layer1.0."
	w.llama(w.Config)
	w.linear("trimlp.0.linear", 3*w.Width, 3*w.Width)
	w.floats("trimlp.1.weight", w.Width, 3*w.Width)
	w.layer(root, w.Width)
	w.floats(root+"input_layernorm.weight", w.Width)
	w.floats(root+"post_attention_layernorm.weight", w.Width)
	for k := range 2 {
		if lent {
			w.floats(fmt.Sprintf("chimera_head.%d.mix.weight", k), w.Width, 2*w.Width)
		} else {
			w.floats(fmt.Sprintf("chimera_head.%d.0.weight", k), w.Vocab, 2*w.Width)
		}
	}
}

func (w *headWriter) falcon() {
	w.llama(w.Config)
	w.Config["k_mask"], w.Config["lstm_pairs"] = 3, 2
	inputs := 2 * w.Width
	for i := range 2 {
		name := func(t string) string { return fmt.Sprintf("lstm.%s_l%d", t, i) }
		w.floats(name("weight_ih"), 4*w.Width, inputs)
		w.floats(name("weight_hh"), 4*w.Width, w.Width)
		w.floats(name("bias_ih"), 4*w.Width)
		w.floats(name("bias_hh"), 4*w.Width)
		inputs = w.Width
	}
	w.layer("layers.0.", w.Width)
	w.floats("layers.0.post_attention_layernorm.weight", w.Width)
}

// specblock makes a head of SpecBlock, of two layers and four slots.
func (w *headWriter) specblock() {
	w.llama(w.Config)
	w.Config["num_hidden_layers"], w.Config["diffspec_draft_token_num"], w.Config["rank_classes"] = 2, 4, 4
	for _, name := range []string{"condition_norm", "token_norm", "query_norm"} {
		w.floats("input_layer."+name+".weight", w.Width)
	}
	w.floats("input_layer.condition_proj.weight", w.Width, 3*w.Width)
	w.floats("input_layer.fuse.weight", w.Width, 3*w.Width)
	w.floats("input_layer.position_queries.weight", 4, w.Width)
	w.floats("input_layer.embed_tokens.weight", w.Vocab, w.Width)
	for i := range 2 {
		root := fmt.Sprintf("layers.%d.", i)
		w.layer(root, w.Width)
		w.floats(root+"input_layernorm.weight", w.Width)
		w.floats(root+"post_attention_layernorm.weight", w.Width)
	}
	w.floats("shift_proj.0.weight", w.Width, 2*w.Width)
	w.linear("rank_head.0", 256, w.Width+15)
	w.linear("rank_head.2", 4, 256)
	w.floats("norm.weight", w.Width)
	w.Config["draft_vocab_size"] = w.Draft
	w.floats("lm_head.weight", w.Draft, w.Width)
	w.SetDraft(w.Vocab, w.DraftTokens())
}

func (w *headWriter) eagle3(speculators bool) {
	root, config := "midlayer.", w.Config
	if speculators {
		root, config = "layers.0.", map[string]any{}
		w.Config = map[string]any{
			"speculators_model_type": "eagle3", "transformer_layer_config": config, "norm_before_residual": true, "eagle_aux_hidden_state_layer_ids": []int{1, 3, 5},
			"speculators_config": map[string]any{"verifier": map[string]any{"name_or_path": "org/target"}},
		}
		w.Head.Config = w.Config
	}
	w.llama(config)
	w.Config["draft_vocab_size"] = w.Draft
	w.floats("fc.weight", w.Width, 3*w.Width)
	w.layer(root, 2*w.Width)
	for _, norm := range []string{root + "hidden_norm", root + "input_layernorm", root + "post_attention_layernorm", "norm"} {
		w.floats(norm+".weight", w.Width)
	}
	w.floats("lm_head.weight", w.Draft, w.Width)
	w.SetDraft(w.Vocab, w.DraftTokens())
}

// DraftTokens returns the target's numbers of the tokens of a head of EAGLE-3.
func (s HeadShape) DraftTokens() []int {
	ids := make([]int, s.Draft)
	for i := range ids {
		ids[i] = 1 + 2*i + i*i%2
	}
	return ids
}

// SetDraft adds the tokens that the head has of a target's vocabulary, as offsets and as a mask.
func (h *Head) SetDraft(vocab int, ids []int) {
	d2t, mask := Raw{Type: "I64", Shape: []int{len(ids)}}, Raw{Type: "BOOL", Shape: []int{vocab}, Data: make([]byte, vocab)}
	for i, id := range ids {
		d2t.Data = binary.LittleEndian.AppendUint64(d2t.Data, uint64(id-i))
		if id >= 0 && id < vocab {
			mask.Data[id] = 1
		}
	}
	h.Tensors["d2t"], h.Tensors["t2d"] = d2t, mask
}

// Write writes config.json and model.safetensors to dir, which exists. A head without a config has no config.json.
func (h *Head) Write(dir string) error {
	config, weights := "config.json", "model.safetensors"
	if h.Config["peft_type"] != nil {
		config, weights = "adapter_config.json", "adapter_model.safetensors"
	}
	if h.Config != nil {
		if err := writeJSON(filepath.Join(dir, config), h.Config); err != nil {
			return err
		}
	}
	return h.WriteFile(filepath.Join(dir, weights))
}

// WriteFile writes the tensors as a safetensors file.
func (h *Head) WriteFile(path string) error {
	header := map[string]any{"__metadata__": h.Text}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(h.Tensors)) {
		t := h.Tensors[name]
		header[name] = map[string]any{"dtype": t.Type, "shape": t.Shape, "data_offsets": []int{len(data), len(data) + len(t.Data)}}
		data = append(data, t.Data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	return os.WriteFile(path, append(file, data...), 0o644)
}
