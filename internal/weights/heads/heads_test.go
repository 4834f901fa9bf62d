package heads

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/hftest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// open writes a head, changed, and opens it.
func open(t *testing.T, layout string, target *gguf.File, change func(*hftest.Head)) (f *gguf.File, dir string, notes []string, err error) {
	t.Helper()
	h := hftest.NewHead(layout, hftest.SmallHead)
	if change != nil {
		change(h)
	}
	dir = filepath.Join(t.TempDir(), "head")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	f, err = OpenFor(dir, target, func(text string) { notes = append(notes, text) })
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, dir, notes, err
}

// attention are the keys of the layers of a family, in their order.
func attention(family string, inner bool) []string {
	keys := []string{
		"attention.head_count 4", "attention.head_count_kv 2", "attention.key_length 16", "attention.layer_norm_rms_epsilon 1e-05",
		"rope.dimension_count 16", "rope.freq_base 10000", "rope.neox true",
	}
	if inner {
		keys = append(keys, "feed_forward_length 96")
	}
	for i, k := range keys {
		keys[i] = family + "." + k
	}
	return keys
}

// layouts are the published layouts: the keys of a head file of each, and the tensors by their names of before.
var layouts = []struct {
	layout, family string
	keys           []string
	tensors        string // NAME=PUBLISHED, or NAME.*=PUBLISHED.* for a weight and a bias
	notes          int
}{
	{"medusa", "medusa", []string{"medusa.block_count 3", "medusa.residual_count 1"}, `
		blk.0.res.0.*=medusa_head.0.0.linear.* blk.0.output.weight=medusa_head.0.1.weight blk.1.res.0.*=medusa_head.1.0.linear.* blk.1.output.weight=medusa_head.1.1.weight
		blk.2.res.0.*=medusa_head.2.0.linear.* blk.2.output.weight=medusa_head.2.1.weight`, 1},
	{"medusa-old", "medusa", []string{"medusa.block_count 3", "medusa.residual_count 1"}, `
		blk.0.res.0.*=0.0.linear.* blk.0.output.weight=0.1.weight blk.1.res.0.*=1.0.linear.* blk.1.output.weight=1.1.weight
		blk.2.res.0.*=2.0.linear.* blk.2.output.weight=2.1.weight`, 1},
	{"hydra", "hydra", []string{"hydra.block_count 2", "hydra.residual_count 2"}, `
		blk.0.in.*=hydra_mlp.0.0.linear.* blk.0.skip.*=hydra_mlp.0.0.res_connection.* blk.0.res.0.*=hydra_mlp.0.1.linear.* blk.0.res.1.*=hydra_mlp.0.2.linear.* blk.0.output.*=hydra_lm_head.0.*
		blk.1.in.*=hydra_mlp.1.0.linear.* blk.1.skip.*=hydra_mlp.1.0.res_connection.* blk.1.res.0.*=hydra_mlp.1.1.linear.* blk.1.res.1.*=hydra_mlp.1.2.linear.* blk.1.output.*=hydra_lm_head.1.*`, 0},
	{"hydra++", "hydra", append(attention("hydra", true), "hydra.block_count 2", "hydra.residual_count 2"), `
		blk.0.in.*=hydra_mlp.0.1.linear.* blk.0.skip.*=hydra_mlp.0.1.res_connection.* blk.0.res.0.*=hydra_mlp.0.3.linear.* blk.0.res.1.*=hydra_mlp.0.5.linear.* blk.0.output.*=hydra_lm_head.0.1.*
		blk.1.in.*=hydra_mlp.1.1.linear.* blk.1.skip.*=hydra_mlp.1.1.res_connection.* blk.1.res.0.*=hydra_mlp.1.3.linear.* blk.1.res.1.*=hydra_mlp.1.5.linear.* blk.1.output.*=hydra_lm_head.1.1.*
		prefix.attn_norm.weight=prefix_embeding_layer.layers.0.input_layernorm.weight prefix.attn_q.weight=prefix_embeding_layer.layers.0.self_attn.q_proj.weight
		prefix.attn_k.weight=prefix_embeding_layer.layers.0.self_attn.k_proj.weight prefix.attn_v.weight=prefix_embeding_layer.layers.0.self_attn.v_proj.weight
		prefix.attn_output.weight=prefix_embeding_layer.layers.0.self_attn.o_proj.weight prefix.ffn_norm.weight=prefix_embeding_layer.layers.0.post_attention_layernorm.weight
		prefix.ffn_gate.weight=prefix_embeding_layer.layers.0.mlp.gate_proj.weight prefix.ffn_up.weight=prefix_embeding_layer.layers.0.mlp.up_proj.weight
		prefix.ffn_down.weight=prefix_embeding_layer.layers.0.mlp.down_proj.weight prefix.output_norm.weight=prefix_embeding_layer.norm.weight`, 2},
	{"eagle", "eagle", append(attention("eagle", true), "eagle.block_count 1"), `
		fc.*=fc.* blk.0.attn_q.weight=layers.0.self_attn.q_proj.weight blk.0.attn_k.weight=layers.0.self_attn.k_proj.weight blk.0.attn_v.weight=layers.0.self_attn.v_proj.weight
		blk.0.attn_output.weight=layers.0.self_attn.o_proj.weight blk.0.ffn_norm.weight=layers.0.post_attention_layernorm.weight
		blk.0.ffn_gate.weight=layers.0.mlp.gate_proj.weight blk.0.ffn_up.weight=layers.0.mlp.up_proj.weight blk.0.ffn_down.weight=layers.0.mlp.down_proj.weight`, 1},
	{"eagle3", "eagle3", append(attention("eagle3", true), "eagle3.block_count 1", "eagle3.draft_vocabulary "+draft), eagle3Tensors("midlayer."), 0},
	{"eagle3-speculators", "eagle3", append(attention("eagle3", true), "eagle3.block_count 1", "eagle3.draft_vocabulary "+draft,
		"eagle3.taps [1 3 5]", "eagle3.norm_before_residual true"), eagle3Tensors("layers.0."), 0},
	{"fspad", "fspad", append(attention("fspad", true), "fspad.block_count 1"), `
		fc.*=fc.fc.* fc.ffn_norm.weight=fc.post_attention_layernorm.weight fc.ffn_gate.weight=fc.mlp.gate_proj.weight fc.ffn_up.weight=fc.mlp.up_proj.weight
		fc.ffn_down.weight=fc.mlp.down_proj.weight blk.0.attn_q.weight=layers.0.self_attn.q_proj.weight blk.0.attn_k.weight=layers.0.self_attn.k_proj.weight
		blk.0.attn_v.weight=layers.0.self_attn.v_proj.weight blk.0.attn_output.weight=layers.0.self_attn.o_proj.weight blk.0.ffn_norm.weight=layers.0.post_attention_layernorm.weight
		blk.0.ffn_gate.weight=layers.0.mlp.gate_proj.weight blk.0.ffn_up.weight=layers.0.mlp.up_proj.weight
		blk.0.ffn_down_logits.weight=layers.0.mlp.down_proj.weight:0/2 blk.0.ffn_down.weight=layers.0.mlp.down_proj.weight:1/2`, 1},
	{"peagle", "peagle", append(attention("peagle", true), "peagle.block_count 2", "peagle.draft_vocabulary "+draft, "peagle.context_length 4096",
		"peagle.taps [1 3 5]", "peagle.norm_before_residual false", "peagle.mask_token_id 7", "peagle.block_size 6"), eagle3Tensors("layers.0.") + `
		blk.1.attn_norm.weight=layers.1.input_layernorm.weight blk.1.attn_q.weight=layers.1.self_attn.q_proj.weight blk.1.attn_k.weight=layers.1.self_attn.k_proj.weight
		blk.1.attn_v.weight=layers.1.self_attn.v_proj.weight blk.1.attn_output.weight=layers.1.self_attn.o_proj.weight blk.1.ffn_norm.weight=layers.1.post_attention_layernorm.weight
		blk.1.ffn_gate.weight=layers.1.mlp.gate_proj.weight blk.1.ffn_up.weight=layers.1.mlp.up_proj.weight blk.1.ffn_down.weight=layers.1.mlp.down_proj.weight
		token_embd.weight=embed_tokens.weight mask_hidden.weight=mask_hidden:flat`, 0},
	{"falcon", "falcon-draft", append(attention("falcon-draft", true), "falcon-draft.block_count 1", "falcon-draft.block_size 3", "falcon-draft.lstm_pairs 2"), `
		lstm.0.ih.weight=lstm.weight_ih_l0 lstm.0.hh.weight=lstm.weight_hh_l0 lstm.0.ih.bias=lstm.bias_ih_l0 lstm.0.hh.bias=lstm.bias_hh_l0
		lstm.1.ih.weight=lstm.weight_ih_l1 lstm.1.hh.weight=lstm.weight_hh_l1 lstm.1.ih.bias=lstm.bias_ih_l1 lstm.1.hh.bias=lstm.bias_hh_l1
		blk.0.attn_q.weight=layers.0.self_attn.q_proj.weight blk.0.attn_k.weight=layers.0.self_attn.k_proj.weight blk.0.attn_v.weight=layers.0.self_attn.v_proj.weight
		blk.0.attn_output.weight=layers.0.self_attn.o_proj.weight blk.0.ffn_norm.weight=layers.0.post_attention_layernorm.weight
		blk.0.ffn_gate.weight=layers.0.mlp.gate_proj.weight blk.0.ffn_up.weight=layers.0.mlp.up_proj.weight blk.0.ffn_down.weight=layers.0.mlp.down_proj.weight`, 0},
	{"specblock", "specblock", append(attention("specblock", true), "specblock.block_count 2", "specblock.block_size 4", "specblock.draft_vocabulary "+draft), strings.NewReplacer("I.", "input_layer.", "A.", "self_attn.").Replace(`
		fc.weight=I.condition_proj.weight fc_norm.weight=I.condition_norm.weight token_norm.weight=I.token_norm.weight queries.weight=I.position_queries.weight
		query_norm.weight=I.query_norm.weight fuse.weight=I.fuse.weight blk.0.attn_norm.weight=layers.0.input_layernorm.weight blk.0.attn_q.weight=layers.0.A.q_proj.weight
		blk.0.attn_k.weight=layers.0.A.k_proj.weight blk.0.attn_v.weight=layers.0.A.v_proj.weight blk.0.attn_output.weight=layers.0.A.o_proj.weight
		blk.0.ffn_norm.weight=layers.0.post_attention_layernorm.weight blk.0.ffn_gate.weight=layers.0.mlp.gate_proj.weight blk.0.ffn_up.weight=layers.0.mlp.up_proj.weight
		blk.0.ffn_down.weight=layers.0.mlp.down_proj.weight blk.1.attn_norm.weight=layers.1.input_layernorm.weight blk.1.attn_q.weight=layers.1.A.q_proj.weight
		blk.1.attn_k.weight=layers.1.A.k_proj.weight blk.1.attn_v.weight=layers.1.A.v_proj.weight blk.1.attn_output.weight=layers.1.A.o_proj.weight
		blk.1.ffn_norm.weight=layers.1.post_attention_layernorm.weight blk.1.ffn_gate.weight=layers.1.mlp.gate_proj.weight blk.1.ffn_up.weight=layers.1.mlp.up_proj.weight
		blk.1.ffn_down.weight=layers.1.mlp.down_proj.weight blk.1.shift.weight=shift_proj.0.weight rank_in.*=rank_head.0.* rank_out.*=rank_head.2.* output_norm.weight=norm.weight output.weight=lm_head.weight`), 1},
	{"kangaroo", "kangaroo", append(attention("kangaroo", false), "kangaroo.block_count 1", "kangaroo.exit_layer 2"), `
		blk.0.attn_norm.weight=layers.0.input_layernorm.weight blk.0.attn_q.weight=layers.0.self_attn.q_proj.weight blk.0.attn_k.weight=layers.0.self_attn.k_proj.weight
		blk.0.attn_v.weight=layers.0.self_attn.v_proj.weight blk.0.attn_output.weight=layers.0.self_attn.o_proj.weight output_norm.weight=norm.weight`, 0},
	{"lora-drop", "lora-drop", []string{"lora-drop.scale 1.5"}, `blk.1.drop_a.weight=model.layers.1.lora_adapter.A.weight blk.1.drop_b.weight=model.layers.1.lora_adapter.B.weight
		blk.2.drop_a.weight=model.layers.2.lora_adapter.A.weight blk.2.drop_b.weight=model.layers.2.lora_adapter.B.weight`, 1},
	{"m2r2", "m2r2", []string{"m2r2.exit_layer 2", "m2r2.scale 2"}, `blk.0.attn_q.lora_a.weight=blk.0.attn_q.lora_a.weight blk.0.attn_q.lora_b.weight=blk.0.attn_q.lora_b.weight
		blk.1.ffn_down.lora_a.weight=blk.1.ffn_down.lora_a.weight blk.1.ffn_down.lora_b.weight=blk.1.ffn_down.lora_b.weight`, 0},
	{"ppd", "ppd", []string{"ppd.block_count 3"}, `prompt.weight=prompt_embeddings`, 0},
	{"transfer", "transfer", []string{"transfer.block_count 2", "transfer.layers [1 3]"}, `blk.0.transfer.weight=transfer.0.weight blk.1.transfer.weight=transfer.1.weight`, 0},
	{"clover", "clover", append(attention("clover", true), "clover.block_count 2"), `
		mix.attn_norm.weight=clover_head_mlp_rnn.input_layernorm.weight mix.attn_q.*=clover_head_mlp_rnn.q.* mix.attn_k.*=clover_head_mlp_rnn.k.* mix.attn_v.*=clover_head_mlp_rnn.v.*
		cell.attn_norm.weight=clover_head_mlp_rnn2.input_layernorm.weight cell.attn_q.*=clover_head_mlp_rnn2.q.* cell.attn_k.*=clover_head_mlp_rnn2.k.* cell.attn_v.*=clover_head_mlp_rnn2.v.*
		output_norm.weight=clover_norm.weight head_norm.weight=clover_head_norm.weight first.*=clover_head_mlp.* next.*=clover_head_mlp2.* token_embd.weight=clover_embed_tokens.weight` + layerTensors("attn_norm=input_layernorm"), 1},
	{"dflash", "dflash", blockKeys(false, ""), blockTensors(""), 0},
	{"dflash-speculators", "dflash", blockKeys(true, "false"), blockTensors("output.weight=lm_head.weight"), 0},
	{"dspark", "dflash", blockKeys(false, ""), blockTensors("markov_w1.weight=markov_head.markov_w1.weight markov_w2.weight=markov_head.markov_w2.weight conf_proj.*=confidence_head.proj.*"), 0},
	{"dspark-speculators", "dflash", blockKeys(true, "true"), blockTensors(`output.weight=lm_head.weight
		markov_w1.weight=markov_head.markov_w1.weight markov_w2.weight=markov_head.markov_w2.weight conf_proj.*=confidence_head.proj.*`), 0},
}

// layerTensors are those of two layers of Llama's kind, with these norms.
func layerTensors(norms string) (list string) {
	for _, i := range []string{"0", "1"} {
		for pair := range strings.FieldsSeq(norms + ` ffn_norm=post_attention_layernorm attn_q=self_attn.q_proj attn_k=self_attn.k_proj attn_v=self_attn.v_proj attn_output=self_attn.o_proj
			ffn_gate=mlp.gate_proj ffn_up=mlp.up_proj ffn_down=mlp.down_proj`) {
			to, from, _ := strings.Cut(pair, "=")
			list += " blk." + i + "." + to + ".weight=layers." + i + "." + from + ".weight"
		}
	}
	return list
}

// blockKeys are those of a head of DFlash's kind; anchor is its key sample_from_anchor.
func blockKeys(speculators bool, anchor string) []string {
	keys := append(attention("dflash", true), "dflash.block_count 2", "dflash.block_size 6", "dflash.mask_token_id 79", "dflash.taps [1 2 3]", "dflash.attention.causal false")
	if speculators {
		keys = append(keys, "dflash.sample_from_anchor "+anchor, "dflash.draft_vocabulary "+draft, "dflash.context_length 4096")
	}
	return keys
}

// blockTensors are those of a head of DFlash's kind, with these further ones.
func blockTensors(more string) string {
	return "fc.weight=fc.weight hidden_norm.weight=hidden_norm.weight output_norm.weight=norm.weight " + more +
		layerTensors("attn_norm=input_layernorm attn_q_norm=self_attn.q_norm attn_k_norm=self_attn.k_norm")
}

// draft is the draft vocabulary of the small heads of EAGLE-3.
var draft = fmt.Sprint(hftest.SmallHead.DraftTokens())

func eagle3Tensors(root string) string {
	return strings.ReplaceAll(`fc.weight=fc.weight blk.0.embd_norm.weight=ROOT.input_layernorm.weight blk.0.attn_norm.weight=ROOT.hidden_norm.weight
		blk.0.attn_q.weight=ROOT.self_attn.q_proj.weight blk.0.attn_k.weight=ROOT.self_attn.k_proj.weight blk.0.attn_v.weight=ROOT.self_attn.v_proj.weight
		blk.0.attn_output.weight=ROOT.self_attn.o_proj.weight blk.0.ffn_norm.weight=ROOT.post_attention_layernorm.weight blk.0.ffn_gate.weight=ROOT.mlp.gate_proj.weight
		blk.0.ffn_up.weight=ROOT.mlp.up_proj.weight blk.0.ffn_down.weight=ROOT.mlp.down_proj.weight output_norm.weight=norm.weight output.weight=lm_head.weight`, "ROOT.", root)
}

// TestLayouts opens a head of each published layout and compares every key and every tensor with what was published.
func TestLayouts(t *testing.T) {
	for _, tt := range layouts {
		t.Run(tt.layout, func(t *testing.T) {
			f, _, notes, err := open(t, tt.layout, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(notes) != tt.notes {
				t.Errorf("%d notes, want %d: %q", len(notes), tt.notes, notes)
			}
			if diff := cmp.Diff(keysOf(tt.family, tt.keys), keysIn(f)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(published(t, hftest.NewHead(tt.layout, hftest.SmallHead), tt.tensors), tensorsIn(t, f)); diff != "" {
				t.Errorf("tensors (-want +got):\n%s", diff)
			}
		})
	}
}

// keysOf returns all keys of a small head with these ones of its own.
func keysOf(family string, own []string) map[string]string {
	keys := map[string]string{
		"general.architecture": family, "general.type": "model", "general.name": "head", "general.quantization_version": "2",
		"heads.target.name": "org/target", "heads.target.vocabulary": "80", "heads.metadata.format": "pt", family + ".embedding_length": "64", family + ".context_length": "512",
	}
	for _, kv := range own {
		key, value, _ := strings.Cut(kv, " ")
		keys[key] = value
	}
	if family == "ppd" {
		delete(keys, "heads.target.vocabulary") // the authors do not say it
	}
	if family == "eagle3" && keys["eagle3.taps"] != "" {
		keys["eagle3.context_length"] = "4096" // the inner object does not say it
	}
	return keys
}

func keysIn(f *gguf.File) map[string]string {
	keys := map[string]string{}
	for _, kv := range f.Metadata {
		keys[kv.Key] = fmt.Sprint(kv.Value.Any())
	}
	return keys
}

// flat returns a tensor of BF16 as a vector of F32.
func flat(raw hftest.Raw) hftest.Raw {
	out := hftest.Raw{Type: "F32", Shape: []int{len(raw.Data) / 2}}
	for i := 0; i < len(raw.Data); i += 2 {
		out.Data = append(out.Data, 0, 0, raw.Data[i], raw.Data[i+1])
	}
	return out
}

// published returns the tensors of a list by their names of GGUF: the type, the shape and the bytes. Behind a colon a name has the half of the rows, or flat.
func published(t *testing.T, h *hftest.Head, list string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for pair := range strings.FieldsSeq(list) {
		to, from, _ := strings.Cut(pair, "=")
		from, part, _ := strings.Cut(from, ":")
		for _, kind := range []string{"weight", "bias"} {
			name := strings.Replace(from, "*", kind, 1)
			raw, ok := h.Tensors[name]
			if !ok {
				t.Fatalf("%s is not published", name)
			}
			switch n := len(raw.Data) / 2; part {
			case "0/2":
				raw.Shape, raw.Data = []int{raw.Shape[0] / 2, raw.Shape[1]}, raw.Data[:n]
			case "1/2":
				raw.Shape, raw.Data = []int{raw.Shape[0] / 2, raw.Shape[1]}, raw.Data[n:]
			case "flat": // a vector of F32, of BF16
				raw = flat(raw)
			}
			out[strings.Replace(to, "*", kind, 1)] = fmt.Sprintf("%s %v %x", raw.Type, raw.Shape, raw.Data)
		}
	}
	return out
}

func tensorsIn(t *testing.T, f *gguf.File) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range f.Tensors {
		v, err := f.Load(v)
		if err != nil {
			t.Fatal(err)
		}
		out[v.Name] = fmt.Sprintf("%v %v %x", v.Type, v.Shape, v.Data)
	}
	return out
}

// TestRoundTrip writes a head of each layout as GGUF and opens that: it has the same keys, tensors and bytes, and is written the same again.
func TestRoundTrip(t *testing.T) {
	for _, layout := range hftest.HeadFamilies() {
		t.Run(layout, func(t *testing.T) {
			f, dir, _, err := open(t, layout, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			path := dir + ".gguf"
			first := write(t, f)
			if err := os.WriteFile(path, first, 0o644); err != nil {
				t.Fatal(err)
			}
			again, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if diff := cmp.Diff(keysIn(f), keysIn(again)); diff != "" {
				t.Errorf("keys:\n%s", diff)
			}
			if !bytes.Equal(first, write(t, again)) {
				t.Error("the file that was written is written with other bytes")
			}
			if err := Finite(again); err != nil {
				t.Error(err)
			}
		})
	}
}

// write returns the bytes of the file.
func write(t *testing.T, f *gguf.File) []byte {
	t.Helper()
	var tensors []tensor.View
	for _, v := range f.Tensors {
		v, err := f.Load(v)
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, v)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
