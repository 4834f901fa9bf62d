package hf

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/hftest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// bare is a folder of a family that is in no golden: the settings and the tokenizer of a small model, and no
// tensors.
func bare(t *testing.T, class string) *hftest.Folder {
	t.Helper()
	f, err := hftest.From(golden(t, "llama-tied"))
	if err != nil {
		t.Fatal(err)
	}
	f.Config["architectures"] = []string{class}
	f.Config["tie_word_embeddings"] = false
	clear(f.Tensors)
	return f
}

func write(t *testing.T, f *hftest.Folder) string {
	t.Helper()
	dir := t.TempDir()
	if err := f.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// random is a tensor of float32 values, a multiple of 1/8 from -2 to 2.
func random(rng *rand.Rand, shape ...int) tensor.View {
	v := tensor.View{Type: tensor.F32, Shape: shape}
	for range v.Elems() {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(float32(rng.IntN(33)-16)/8))
	}
	return v
}

func load(t *testing.T, f *gguf.File, name string) []float32 {
	t.Helper()
	v, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	v, err := f.Load(v)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, v.Elems())
	if err := tensor.Unpack(v.Type, x, v.Data); err != nil {
		t.Fatal(err)
	}
	return x
}

// fp4 are the values of four bits that E2M1 stands for.
var fp4 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

// The sizes of the model of [gptOSSFolder].
const ossWidth, ossFFN, ossExperts, ossHeads, ossKV, ossSize, ossVocab = 64, 96, 4, 4, 2, 16, 320

// gptOSSFolder makes a small model whose experts are in MXFP4.
func gptOSSFolder(t *testing.T) *hftest.Folder {
	t.Helper()
	const width, ffn, experts, heads, kv, size, vocab = ossWidth, ossFFN, ossExperts, ossHeads, ossKV, ossSize, ossVocab
	rng := rand.New(rand.NewPCG(5, 6))
	h := bare(t, "GptOssForCausalLM")
	delete(h.Config, "sliding_window")
	for key, v := range map[string]any{
		"num_hidden_layers": 2, "num_local_experts": experts, "num_experts_per_tok": 2, "sliding_window": 8,
		"intermediate_size": ffn, "hidden_size": width, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": size,
		"layer_types":         []string{"sliding_attention", "full_attention"},
		"quantization_config": map[string]any{"quant_method": "mxfp4"},
		"rope_scaling": map[string]any{
			"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 4096, "truncate": false,
		},
	} {
		h.Config[key] = v
	}
	put := func(name string, shape ...int) { h.Tensors[name] = random(rng, shape...) }
	bytes := func(name string, from, to int, shape ...int) {
		v := tensor.View{Type: tensor.I8, Shape: shape}
		for range v.Elems() {
			v.Data = append(v.Data, byte(from+rng.IntN(to-from)))
		}
		h.Tensors[name] = v
	}
	put("model.embed_tokens.weight", vocab, width)
	put("lm_head.weight", vocab, width)
	put("model.norm.weight", width)
	for l := range 2 {
		name := func(s string) string { return fmt.Sprintf("model.layers.%d.%s", l, s) }
		put(name("input_layernorm.weight"), width)
		put(name("post_attention_layernorm.weight"), width)
		put(name("self_attn.sinks"), heads)
		for part, shape := range map[string][2]int{
			"self_attn.q_proj": {heads * size, width}, "self_attn.k_proj": {kv * size, width}, "self_attn.v_proj": {kv * size, width},
			"self_attn.o_proj": {width, heads * size}, "mlp.router": {experts, width},
		} {
			put(name(part+".weight"), shape[0], shape[1])
			put(name(part+".bias"), shape[0])
		}
		bytes(name("mlp.experts.gate_up_proj_blocks"), 0, 256, experts, 2*ffn, width/32, 16)
		bytes(name("mlp.experts.gate_up_proj_scales"), 120, 130, experts, 2*ffn, width/32)
		bytes(name("mlp.experts.down_proj_blocks"), 0, 256, experts, width, ffn/32, 16)
		bytes(name("mlp.experts.down_proj_scales"), 120, 130, experts, width, ffn/32)
		put(name("mlp.experts.gate_up_proj_bias"), experts, 2*ffn)
		put(name("mlp.experts.down_proj_bias"), experts, width)
	}
	return h
}

// TestGPTOSS makes a small model whose experts are in MXFP4 and expects their values, from the description
// of both formats, in the rows of gate, up and down.
func TestGPTOSS(t *testing.T) {
	const width, ffn, experts = ossWidth, ossFFN, ossExperts
	h := gptOSSFolder(t)
	f := open(t, write(t, h))

	// value returns a weight of the folder: its nibble and its scale, found from the shapes.
	value := func(matrix string, rows, in, e, row, col int) float32 {
		block := (e*rows+row)*(in/32) + col/32
		b := h.Tensors["model.layers.1.mlp.experts."+matrix+"_blocks"].Data[block*16+col%32/2]
		scale := h.Tensors["model.layers.1.mlp.experts."+matrix+"_scales"].Data[block]
		return fp4[b>>(4*(col%2))&15] * float32(math.Ldexp(1, int(scale)-127))
	}
	for i, part := range []string{"ffn_gate_exps", "ffn_up_exps"} {
		got := load(t, f, "blk.1."+part+".weight")
		bias, wantBias := load(t, f, "blk.1."+part+".bias"), h.Tensors["model.layers.1.mlp.experts.gate_up_proj_bias"]
		for e := range experts {
			for r := range ffn {
				for c := range width {
					if want := value("gate_up_proj", 2*ffn, width, e, 2*r+i, c); got[(e*ffn+r)*width+c] != want {
						t.Fatalf("%s, expert %d, row %d, column %d: %v, want %v", part, e, r, c, got[(e*ffn+r)*width+c], want)
					}
				}
				if want := floatAt(wantBias.Data, e*2*ffn+2*r+i); bias[e*ffn+r] != want {
					t.Fatalf("%s, expert %d: bias %d is %v, want %v", part, e, r, bias[e*ffn+r], want)
				}
			}
		}
	}
	got := load(t, f, "blk.1.ffn_down_exps.weight")
	for i, x := range got {
		if want := value("down_proj", width, ffn, i/ffn/width, i/ffn%width, i%ffn); x != want {
			t.Fatalf("ffn_down_exps, value %d: %v, want %v", i, x, want)
		}
	}
	if v, _ := f.Tensor("blk.1.ffn_down_exps.weight"); v.Type != tensor.MXFP4 || !slices.Equal(v.Shape, []int{experts, width, ffn}) {
		t.Errorf("ffn_down_exps has type %v and shape %v", v.Type, v.Shape)
	}
	if x := load(t, f, "blk.0.attn_sinks.weight"); x[3] != floatAt(h.Tensors["model.layers.0.self_attn.sinks"].Data, 3) {
		t.Errorf("sinks %v", x)
	}
	for key, want := range map[string]any{
		"general.architecture": "gpt-oss", "gpt-oss.expert_feed_forward_length": uint32(ffn), "gpt-oss.attention.sliding_window": uint32(8),
		"gpt-oss.rope.scaling.type": "yarn", "gpt-oss.rope.scaling.factor": float32(32), "gpt-oss.rope.scaling.original_context_length": uint32(4096),
	} {
		if v, _ := f.Lookup(key); v.Any() != want {
			t.Errorf("%s is %v, want %v", key, v.Any(), want)
		}
	}
}

// TestLongRope expects the two lists of factors of Phi 3's long variants.
func TestLongRope(t *testing.T) {
	long, short := []float32{1, 1.5, 2, 4, 8, 16}, []float32{1, 1, 1, 1.25, 1.5, 1.75}
	dir := folderOf(t, golden(t, "phi3"), func(f *hftest.Folder) {
		f.Config["original_max_position_embeddings"] = 128
		f.Config["partial_rotary_factor"] = 0.75
		f.Config["rope_scaling"] = map[string]any{"type": "longrope", "long_factor": long, "short_factor": short}
	})
	f := open(t, dir)
	if got := load(t, f, "rope_factors_long.weight"); !slices.Equal(got, long) {
		t.Errorf("long: %v", got)
	}
	if got := load(t, f, "rope_factors_short.weight"); !slices.Equal(got, short) {
		t.Errorf("short: %v", got)
	}
	if n, _, _ := f.Uint("phi3.rope.dimension_count"); n != 12 {
		t.Errorf("%d dimensions rotate", n)
	}
	want := math.Sqrt(1 + math.Log(4)/math.Log(128)) // the context is four times as long
	if x, _, _ := f.Float("phi3.rope.scaling.attn_factor"); math.Abs(x-want) > 1e-6 {
		t.Errorf("attention factor %v, want %v", x, want)
	}
}

// TestSight takes the text part of a model that sees, and leaves the rest.
func TestSight(t *testing.T) {
	want := golden(t, "gemma3")
	dir := folderOf(t, want, func(f *hftest.Folder) {
		text := f.Config
		delete(text, "architectures")
		f.Config = map[string]any{"architectures": []string{"Gemma3ForConditionalGeneration"}, "text_config": text, "vision_config": map[string]any{}}
		all := map[string]tensor.View{"vision_tower.vision_model.post_layernorm.bias": {Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)}}
		for name, v := range f.Tensors {
			all["language_model."+name] = v
		}
		f.Tensors = all
	})
	compareTensors(t, want, open(t, dir))
}

// TestSettings covers what settings may leave out, or say in other ways.
func TestSettings(t *testing.T) {
	llama := func(change func(*hftest.Folder)) func(*testing.T) *gguf.File {
		return func(t *testing.T) *gguf.File { return open(t, folderOf(t, golden(t, "llama-tied"), change)) }
	}
	tests := []struct {
		name string
		open func(*testing.T) *gguf.File
		key  string
		want any
	}{
		{"head size from the width", llama(func(f *hftest.Folder) { delete(f.Config, "head_dim") }), "llama.attention.key_length", uint32(16)},
		{"rotation in one object", llama(func(f *hftest.Folder) {
			delete(f.Config, "rope_theta")
			f.Config["rope_parameters"] = map[string]any{"rope_theta": 5e5, "rope_type": "default"}
		}), "llama.rope.freq_base", float32(5e5)},
		{"rotation that is left out", llama(func(f *hftest.Folder) { delete(f.Config, "rope_theta") }), "llama.rope.freq_base", float32(10000)},
		{"linear", llama(func(f *hftest.Folder) {
			f.Config["rope_scaling"] = map[string]any{"type": "linear", "factor": 4}
		}), "llama.rope.scaling.factor", float32(4)},
		{"a window keeps the context inside", llama(func(f *hftest.Folder) { f.Config["sliding_window"] = 100 }), "llama.context_length", uint32(100)},
		{"a window beyond the context", llama(func(f *hftest.Folder) { f.Config["sliding_window"] = 1 << 20 }), "llama.context_length", uint32(512)},
		{"name", llama(func(f *hftest.Folder) {}), "general.name", "model"},
		{"template", llama(func(f *hftest.Folder) { f.Names["chat_template"] = "{{ x }}" }), "tokenizer.chat_template", "{{ x }}"},
		{"templates by name", llama(func(f *hftest.Folder) {
			f.Names["chat_template"] = []map[string]string{{"name": "default", "template": "a"}, {"name": "rag", "template": "b"}}
		}), "tokenizer.chat_template.rag", "b"},
		{"end of text by its id", llama(func(f *hftest.Folder) {
			delete(f.Names, "eos_token")
			f.Config["eos_token_id"] = 7
		}), "tokenizer.ggml.eos_token_id", uint32(7)},
		{"two ends", llama(func(f *hftest.Folder) { f.Config["eos_token_id"] = []int{318, 9} }), "tokenizer.ggml.eot_token_id", uint32(9)},
		{"padded vocabulary", func(t *testing.T) *gguf.File {
			return open(t, folderOf(t, golden(t, "llama-tied"), func(f *hftest.Folder) {
				v := f.Tensors["model.embed_tokens.weight"]
				v.Shape, v.Data = []int{330, 64}, append(v.Data, make([]byte, 10*64*4)...)
				f.Tensors["model.embed_tokens.weight"] = v
			}))
		}, "llama.vocab_size", uint32(330)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, _ := tt.open(t).Lookup(tt.key)
			if v.Any() != tt.want {
				t.Errorf("%s is %v, want %v", tt.key, v.Any(), tt.want)
			}
		})
	}
}

// TestSnapshot expects the name of the repository for a folder of the cache, and the file of a template to
// count for more than a setting.
func TestSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models--owner--Small-1B", "snapshots", "0123abc")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h, err := hftest.From(golden(t, "qwen3"))
	if err != nil {
		t.Fatal(err)
	}
	h.Names["chat_template"] = "old"
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	if name, _, _ := f.String("general.name"); name != "Small-1B" {
		t.Errorf("the name is %q", name)
	}
	if text, _, _ := f.String("tokenizer.chat_template"); text != "new" {
		t.Errorf("the template is %q", text)
	}
	if !Is(dir) || Is(filepath.Dir(dir)) {
		t.Error("the folder is not told from the one around it")
	}
	if g, err := OpenModel(dir); err != nil || g.Close() != nil {
		t.Error(err)
	}
}

// TestTemplates reads the templates of all places: a file counts for more than tokenizer_config.json, that for more than a processor's, and further ones have
// the names of their files.
func TestTemplates(t *testing.T) {
	for _, c := range []struct {
		name   string
		config string // tokenizer_config.json's; "": none
		files  map[string]string
		want   map[string]string
	}{
		{"a processor's", "", map[string]string{"chat_template.json": `{"chat_template":"P"}`}, map[string]string{"": "P"}},
		{"the tokenizer's before a processor's", "T", map[string]string{"chat_template.json": `{"chat_template":"P"}`}, map[string]string{"": "T"}},
		{"a file before both", "T", map[string]string{"chat_template.json": `{"chat_template":"P"}`, "chat_template.jinja": "F"}, map[string]string{"": "F"}},
		{"further ones", "", map[string]string{"chat_template.jinja": "F", "additional_chat_templates/tool_use.jinja": "U", "additional_chat_templates/rag.jinja": "R", "additional_chat_templates/x.txt": "x"},
			map[string]string{"": "F", ".tool_use": "U", ".rag": "R"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := hftest.From(golden(t, "qwen3"))
			if err != nil {
				t.Fatal(err)
			}
			if delete(h.Names, "chat_template"); c.config != "" {
				h.Names["chat_template"] = c.config
			}
			dir := t.TempDir()
			if err := h.Write(dir); err != nil {
				t.Fatal(err)
			}
			for name, text := range c.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]string{}
			for _, kv := range open(t, dir).Metadata {
				if name, ok := strings.CutPrefix(kv.Key, "tokenizer.chat_template"); ok && name != "s" {
					got[name], _ = kv.Value.Any().(string)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOriginalForm: a folder with consolidated weights alone says what it is, with and without config.json.
func TestOriginalForm(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"consolidated.safetensors", "params.json", "config.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"model_type":"qwen3","architectures":["Qwen3ForCausalLM"]}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenModel(dir); err == nil || !strings.Contains(err.Error(), "consolidated.safetensors holds the weights in the form of the maker's own programs") {
			t.Errorf("with %s: %v", name, err)
		}
	}
}
