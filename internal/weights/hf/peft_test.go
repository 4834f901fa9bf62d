package hf_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/lora"
	"grove/internal/weights/tensor"
)

// tables are the tensors that are embeddings of tokens, and others the matrices that no adapter is for, or whose modules are refused.
var (
	tables = regexp.MustCompile(`(embed_tokens|wte|embed_in|tok_embeddings|word_embeddings|backbone\.embeddings)\.weight$`)
	others = regexp.MustCompile(`wpe|norm|shared_expert_gate|embed_tokens_per_layer|vision_tower|embed_audio|visual`)
	split  = regexp.MustCompile(`kv_b_proj`)
)

// TestPEFT gives a folder's model an adapter of PEFT with a pair for every matrix, and compares the tensors with those of the folder whose
// matrices had the products added before it was opened. The model is the folder, and the same as a GGUF file.
func TestPEFT(t *testing.T) {
	for name, folderOf := range hf.Folders(t) {
		t.Run(name, func(t *testing.T) {
			folder := folderOf(t)
			base := opened(t, folder)
			_, parted := base.Tensor("blk.0.attn_k_b.weight")
			rng := rand.New(rand.NewPCG(1, 2))
			pairs := map[string]tensor.View{}
			for _, module := range slices.Sorted(maps.Keys(folder.Tensors)) {
				w := folder.Tensors[module]
				if len(w.Shape) == 2 && strings.HasSuffix(module, ".weight") && !others.MatchString(module) && !(parted && split.MatchString(module)) {
					addPair(rng, folder, pairs, module, w)
				}
			}
			want, peft := opened(t, folder), writePEFT(t, pairs)
			t.Run("folder", func(t *testing.T) { checkPEFT(t, peft, base, want) })
			t.Run("gguf", func(t *testing.T) {
				if name == "FalconH1ForCausalLM" { // its file does not say by which numbers matrices were multiplied
					if _, err := lora.Open(peft, fileOf(t, base)); err == nil || !strings.Contains(err.Error(), `architecture "falcon-h1"`) {
						t.Error(err)
					}
					return
				}
				checkPEFT(t, peft, fileOf(t, base), want)
			})
		})
	}
}

// TestPEFTRefused expects modules that the model has in another form to be refused by their names.
func TestPEFTRefused(t *testing.T) {
	for _, tt := range []struct{ folder, module, want string }{
		{"mistral4", "model.language_model.layers.0.self_attn.kv_b_proj", "in two parts"},
		{"qwen3", "model.norm", "no such module"},
		{"MambaForCausalLM", "backbone.layers.0.mixer.conv1d", "no such module"},
		{"gpt-oss", "model.layers.0.mlp.experts.gate_up_proj", "no such module"},
	} {
		t.Run(tt.folder+" "+tt.module, func(t *testing.T) {
			base := opened(t, hf.Folders(t)[tt.folder](t))
			module := "base_model.model." + tt.module
			peft := writePEFT(t, map[string]tensor.View{module + ".lora_A.weight": view(make([]float32, 2*64), 2, 64), module + ".lora_B.weight": view(make([]float32, 64*2), 64, 2)})
			for _, b := range []*gguf.File{base, fileOf(t, base)} {
				if _, err := lora.Open(peft, b); err == nil || !strings.Contains(err.Error(), module) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v; want %q", err, tt.want)
				}
			}
		})
	}
}

// opened writes a folder and opens it.
func opened(t *testing.T, f *hftest.Folder) *gguf.File {
	t.Helper()
	dir := t.TempDir()
	if err := f.Write(dir); err != nil {
		t.Fatal(err)
	}
	file, err := hf.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// fileOf returns a folder's model as a GGUF file.
func fileOf(t *testing.T, f *gguf.File) *gguf.File {
	t.Helper()
	tensors := slices.Clone(f.Tensors)
	for i, v := range tensors {
		loaded, err := f.Load(v)
		if err != nil {
			t.Fatal(err)
		}
		tensors[i] = loaded
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, tensors); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// checkPEFT compares a model with an adapter of pairs with the model that is wanted, tensor by tensor.
func checkPEFT(t *testing.T, peft string, base, want *gguf.File) {
	t.Helper()
	a, err := lora.Open(peft, base)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if len(a.Pairs) < 5 {
		t.Errorf("the adapter has %d pairs", len(a.Pairs))
	}
	for _, v := range base.Tensors {
		loaded, err := base.Load(v)
		if err != nil {
			t.Fatal(err)
		}
		values, changed, err := lora.Merged(base, v, []*lora.Adapter{a}, []float64{1})
		if err != nil {
			t.Fatal(err)
		}
		if !changed {
			values = valuesOf(loaded)
		}
		w, _ := want.Tensor(v.Name)
		if w, err = want.Load(w); err != nil {
			t.Fatal(err)
		}
		compare(t, v.Name, values, valuesOf(w))
	}
}

// factors returns random matrices, and what they add to a matrix [out, in].
func factors(rng *rand.Rand, out, in, rank int, scale float64) (a, b []float32, product []float64) {
	a, b, product = make([]float32, rank*in), make([]float32, out*rank), make([]float64, out*in)
	for _, m := range [][]float32{a, b} {
		for i := range m {
			m[i] = float32(rng.NormFloat64())
		}
	}
	for o := range out {
		for i := range in {
			sum := 0.0
			for r := range rank {
				sum += float64(b[o*rank+r]) * float64(a[r*in+i])
			}
			product[o*in+i] = scale * sum
		}
	}
	return a, b, product
}

func view(values []float32, shape ...int) tensor.View {
	v := tensor.View{Type: tensor.F32, Shape: shape}
	for _, x := range values {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(x))
	}
	return v
}

func valuesOf(v tensor.View) []float32 {
	values := make([]float32, v.Elems())
	if err := tensor.Unpack(v.Type, values, v.Data); err != nil {
		panic(err)
	}
	return values
}

const rank, scale = 2, 3.0

// writePEFT writes an adapter's folder and returns its path.
func writePEFT(t *testing.T, tensors map[string]tensor.View) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(map[string]any{"peft_type": "LORA", "r": rank, "lora_alpha": scale * rank, "target_modules": "all-linear"})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "adapter_config.json"), text, 0o644)
	}
	if err == nil {
		err = hftest.WriteTensors(filepath.Join(dir, "adapter_model.safetensors"), tensors, slices.Sorted(maps.Keys(tensors)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// addPair adds a pair for a module of a folder, and its product to the module's matrix.
func addPair(rng *rand.Rand, folder *hftest.Folder, pairs map[string]tensor.View, module string, w tensor.View) {
	out, in := w.Shape[0], w.Shape[1]
	gpt2 := slices.Equal(folder.Config["architectures"].([]string), []string{"GPT2LMHeadModel"})
	turned := gpt2 && strings.Contains(module, ".c_") // [in, out]
	if turned {
		out, in = in, out
	}
	a, b, product := factors(rng, out, in, rank, scale)
	values := valuesOf(w)
	for o := range out {
		for i := range in {
			if turned {
				values[i*out+o] = float32(float64(values[i*out+o]) + product[o*in+i])
			} else {
				values[o*in+i] = float32(float64(values[o*in+i]) + product[o*in+i])
			}
		}
	}
	folder.Tensors[module] = view(values, w.Shape...)
	name := "base_model.model." + strings.TrimSuffix(module, ".weight")
	if gpt2 {
		name = "base_model.model.transformer." + strings.TrimSuffix(module, ".weight")
	}
	if tables.MatchString(module) { // [vocabulary, width] = (B A) turned
		table := make([]float32, len(b))
		for r := range rank {
			for o := range out {
				table[r*out+o] = b[o*rank+r]
			}
		}
		columns := make([]float32, len(a))
		for r := range rank {
			for i := range in {
				columns[i*rank+r] = a[r*in+i]
			}
		}
		pairs[name+".lora_embedding_A"], pairs[name+".lora_embedding_B"] = view(table, rank, out), view(columns, in, rank)
		return
	}
	pairs[name+".lora_A.weight"], pairs[name+".lora_B.weight"] = view(a, rank, in), view(b, out, rank)
}

func compare(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-5*(1+math.Abs(float64(want[i]))) {
			t.Errorf("%s: value %d is %v, want %v", name, i, got[i], want[i])
			return
		}
	}
}
