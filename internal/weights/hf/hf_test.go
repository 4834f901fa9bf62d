package hf

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/hftest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// golden opens a model of a family: one of those of modeltest, or of ../shared, which has more.
func golden(t *testing.T, name string) *gguf.File {
	t.Helper()
	path := filepath.Join("../../suite/modeltest/testdata", name+".gguf")
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join("../../../../shared/golden/models", name+".gguf")
	}
	return beside(t, path)
}

// beside opens a file, and skips the test where it is not there because ../shared is not.
func beside(t *testing.T, path string) *gguf.File {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		if _, err := os.Stat("../../../../shared"); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("../shared is here and %s is not", path)
		}
		t.Skipf("needs %s: no such file", path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// folderOf writes a model's folder, changed by change.
func folderOf(t *testing.T, f *gguf.File, change func(*hftest.Folder)) string {
	t.Helper()
	h, err := hftest.From(f)
	if err != nil {
		t.Fatal(err)
	}
	change(h)
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens a folder, of which each reading must give the same bytes.
func open(t *testing.T, dir string) *gguf.File {
	t.Helper()
	f := openOnce(t, dir)
	var want bytes.Buffer
	for range 3 { // an order that is random may be the same by chance
		var got bytes.Buffer
		writeTo(t, &got, openOnce(t, dir))
		if want.Len() == 0 {
			want = got
		} else if !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Error("the folder gives other bytes when it is read again")
		}
	}
	return f
}

func openOnce(t *testing.T, dir string) *gguf.File {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// writeTo writes a model as a file of GGUF.
func writeTo(t *testing.T, w io.Writer, f *gguf.File) {
	t.Helper()
	err := gguf.Stream(w, f.Metadata, f.Tensors, func(w io.Writer, i int) error {
		v, err := f.Load(f.Tensors[i])
		if err == nil {
			_, err = w.Write(v.Data)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// without copies a file of all but some tensors.
func without(t *testing.T, f *gguf.File, names ...string) *gguf.File {
	t.Helper()
	var kept []tensor.View
	for _, v := range f.Tensors {
		if !slices.Contains(names, v.Name) {
			kept = append(kept, v)
		}
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, kept); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestFamilies takes golden models apart and expects to find them whole again: the same tensors byte for
// byte, and every hyper-parameter.
func TestFamilies(t *testing.T) {
	for _, name := range []string{
		"llama-gqa", "llama-tied", "mixtral", "qwen2", "qwen3", "qwen3moe", "gemma2", "gemma3", "phi3", "olmo2", "starcoder2", "gpt2",
	} {
		for _, shards := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s/%d", name, shards), func(t *testing.T) {
				want := without(t, golden(t, name), "rope_freqs.weight") // which no folder can spell
				got := open(t, folderOf(t, want, func(f *hftest.Folder) { f.Shards = shards }))
				compareTensors(t, want, got)
				compareMetadata(t, want, got)
			})
		}
	}
}

func compareTensors(t *testing.T, want, got *gguf.File) {
	t.Helper()
	if len(want.Tensors) != len(got.Tensors) {
		t.Errorf("%d tensors, want %d", len(got.Tensors), len(want.Tensors))
	}
	for _, w := range want.Tensors {
		g, ok := got.Tensor(w.Name)
		if !ok {
			t.Errorf("no tensor %s", w.Name)
			continue
		}
		for range 2 { // a tensor can be loaded again
			v, err := got.Load(g)
			if err != nil || v.Type != w.Type || !slices.Equal(v.Shape, w.Shape) || !same(v, w) {
				t.Errorf("tensor %s of type %v and shape %v differs from %v, %v: %v", w.Name, v.Type, v.Shape, w.Type, w.Shape, err)
			}
		}
	}
}

// archs are random models of the families whose weights no other test has, with the ends of the names of tensors that no folder has.
var archs = map[string]string{
	"apertus-dense": "_norm.bias rope_freqs.weight", "arcee-dense": "rope_freqs.weight", "cohere2-dense": "", "command-r-dense": "",
	"ernie4_5-moe": "", "exaone4-dense": "rope_freqs.weight", "glm4-dense": "", "gptneox-dense": "", "granite-dense": "rope_freqs.weight",
	"granitemoe-moe": "rope_freqs.weight", "hunyuan-dense-dense": "", "internlm2-dense": "",
	"minicpm-dense": "rope_freqs.weight ffn_gate.bias ffn_up.bias ffn_down.bias", "nemotron-dense": "", "olmo-dense": "", "olmoe-moe": "",
	"bailingmoe-moe": "", "deepseek2-moe": "", "bailingmoe2-moe": "", "deepseek-moe": "", "dots1-moe": "", "exaone-dense": "rope_freqs.weight",
	"glm4moe-moe": "", "hunyuan-moe-moe": "", "minimax-m2-moe": "", "mistral3-dense": "rope_freqs.weight", "qwen3vl-dense": "cls.output.weight", "qwen3vlmoe-moe": "cls.output.weight",
	"phi2-dense": "", "phimoe-moe": "rope_factors_long.weight rope_factors_short.weight", "qwen2moe-moe": "", "seed_oss-dense": "", "smollm3-dense": "", "stablelm-dense": "",
}

// TestArchs takes random models apart that are not part of this repository. The metadata of these files is that of all
// architectures: what the folder gives must be in it, unless the file leaves it out.
func TestArchs(t *testing.T) {
	needArchs(t)
	for name, lacks := range archs {
		t.Run(name, func(t *testing.T) {
			want := archModel(t, name, lacks)
			got := open(t, folderOf(t, want, func(f *hftest.Folder) {
				f.Tokenizer["post_processor"] = nil
			}))
			compareTensors(t, want, got)
			for _, kv := range got.Metadata {
				w, ok := want.Lookup(kv.Key)
				if ok && strings.HasPrefix(kv.Key, "xielu.") { // a number for all layers, or one for each
					n, _, _ := want.Float(kv.Key)
					all, _, _ := got.Floats(kv.Key)
					ok = len(all) != 3 || slices.ContainsFunc(all, func(x float32) bool { return float64(x) != n })
				}
				if ok = ok && fmt.Sprint(w.Any()) != "0" && kv.Key != "bailingmoe.leading_dense_block_count"; ok && !strings.HasPrefix(kv.Key, "tokenizer.") && !strings.HasPrefix(kv.Key, "general.") && fmt.Sprint(w.Any()) != fmt.Sprint(kv.Value.Any()) {
					t.Errorf("key %s is %v, want %v", kv.Key, kv.Value.Any(), w.Any())
				}
			}
		})
	}
}

const archDir = "../../../../shared/golden/archs"

// needArchs skips a test where the random models are not here.
func needArchs(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(archDir); err != nil {
		if _, err := os.Stat("../../../../shared"); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("%s is missing", archDir)
		}
		t.Skipf("%s is not here", archDir)
	}
}

// archModel returns a random model without the tensors that no folder has.
func archModel(t *testing.T, name, lacks string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(filepath.Join(archDir, name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var names []string
	for _, v := range f.Tensors {
		for end := range strings.FieldsSeq(lacks) {
			if strings.HasSuffix(v.Name, end) {
				names = append(names, v.Name)
			}
		}
	}
	want := without(t, f, names...)
	switch name {
	case "gptneox-dense":
		spread(want, 4, 2)
	case "deepseek2-moe":
		apart(want)
	}
	return want
}

// spread gives every head of a model whose queries, keys and values are one tensor keys and values of its own.
func spread(f *gguf.File, heads, kv int) {
	for i := range f.Metadata {
		if strings.HasSuffix(f.Metadata[i].Key, ".attention.head_count_kv") {
			f.Metadata[i].Value = gguf.Of(uint32(heads))
		}
	}
	for i := range f.Tensors {
		v := &f.Tensors[i]
		if !strings.Contains(v.Name, "attn_qkv") {
			continue
		}
		head := len(v.Data) / (heads + 2*kv)
		data := slices.Clone(v.Data[:heads*head])
		for which := range 2 {
			for h := range heads {
				data = append(data, v.Data[(heads+which*kv+h*kv/heads)*head:][:head]...)
			}
		}
		v.Data = data
		v.Shape = append([]int{v.Shape[0] / (heads + 2*kv) * 3 * heads}, v.Shape[1:]...)
	}
}

// apart gives a model the tensors that its folder has apart, or of a dimension of 1.
func apart(f *gguf.File) {
	var all []tensor.View
	for _, v := range f.Tensors {
		switch {
		case strings.HasSuffix(v.Name, "attn_k_b.weight"), strings.HasSuffix(v.Name, "attn_v_b.weight"):
			v.Shape = append([]int{1}, v.Shape...)
		case strings.HasSuffix(v.Name, "ffn_gate_up_exps.weight"):
			up := v
			v.Name, up.Name = strings.Replace(v.Name, "gate_up", "gate", 1), strings.Replace(v.Name, "gate_up", "up", 1)
			half := len(v.Data) / v.Shape[0] / 2
			v.Shape = []int{v.Shape[0], v.Shape[1] / 2, v.Shape[2]}
			up.Shape = v.Shape
			var gates, ups []byte
			for e := range v.Shape[0] {
				gates, ups = append(gates, v.Data[2*e*half:][:half]...), append(ups, v.Data[(2*e+1)*half:][:half]...)
			}
			v.Data, up.Data = gates, ups
			all = append(all, up)
		}
		all = append(all, v)
	}
	f.Tensors = all
}

// same compares bytes; norms, which some folders keep less one, may differ by the rounding of that.
func same(a, b tensor.View) bool {
	if bytes.Equal(a.Data, b.Data) || !strings.HasSuffix(a.Name, "_norm.weight") {
		return bytes.Equal(a.Data, b.Data)
	}
	for i := range a.Elems() {
		if d := floatAt(a.Data, i) - floatAt(b.Data, i); d > 0x1p-24 || d < -0x1p-24 {
			return false
		}
	}
	return true
}

// compareMetadata compares what both have, and expects all of want but what a model without rotation does
// not need.
func compareMetadata(t *testing.T, want, got *gguf.File) {
	t.Helper()
	for _, kv := range want.Metadata {
		v, ok := got.Lookup(kv.Key)
		switch {
		case kv.Key == "general.name" || kv.Key == "tokenizer.ggml.pre" && !ok || strings.HasPrefix(kv.Key, "gpt2.rope."):
		case !ok:
			t.Errorf("no key %s", kv.Key)
		case fmt.Sprint(v.Any()) != fmt.Sprint(kv.Value.Any()):
			t.Errorf("key %s is %.80v, want %.80v", kv.Key, v.Any(), kv.Value.Any())
		}
	}
}

// TestTypes expects matrices to keep their type and to stay where they are mapped, and vectors and
// routers to become float32.
func TestTypes(t *testing.T) {
	want := golden(t, "mixtral")
	half := func(v tensor.View) tensor.View {
		var data []byte
		for i := 2; i < len(v.Data); i += 4 {
			data = append(data, v.Data[i:i+2]...)
		}
		v.Type, v.Data = tensor.BF16, data
		return v
	}
	got := open(t, folderOf(t, want, func(f *hftest.Folder) {
		for name, v := range f.Tensors {
			f.Tensors[name] = half(v)
		}
	}))
	for _, w := range want.Tensors {
		g, _ := got.Tensor(w.Name)
		view := g.Data != nil
		v, err := got.Load(g)
		if err != nil {
			t.Fatal(err)
		}
		float := len(w.Shape) == 1 || strings.Contains(w.Name, "gate_inp")
		made := float || len(w.Shape) == 3 || strings.Contains(w.Name, "attn_q") || strings.Contains(w.Name, "attn_k")
		if view == made {
			t.Errorf("tensor %s: a view: %v", w.Name, view)
		}
		if float {
			if v.Type != tensor.F32 || !bytes.Equal(v.Data, truncated(w.Data)) {
				t.Errorf("tensor %s of type %v differs", w.Name, v.Type)
			}
		} else if v.Type != tensor.BF16 || !bytes.Equal(v.Data, half(w).Data) {
			t.Errorf("tensor %s of type %v differs", w.Name, v.Type)
		}
	}
}

// truncated returns float32 values cut to bfloat16.
func truncated(b []byte) []byte {
	b = slices.Clone(b)
	for i := 0; i < len(b); i += 4 {
		b[i], b[i+1] = 0, 0
	}
	return b
}

// TestLlama3 holds the factors of Llama 3.1's rotation to its formula, worked out apart.
func TestLlama3(t *testing.T) {
	f := open(t, folderOf(t, without(t, golden(t, "llama-gqa"), "rope_freqs.weight"), func(f *hftest.Folder) {
		f.Config["rope_scaling"] = map[string]any{
			"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
		}
	}))
	v, _ := f.Tensor("rope_freqs.weight")
	v, err := f.Load(v)
	if err != nil {
		t.Fatal(err)
	}
	want := []float32{1, 1, 1, 1, 2.6945296878947333, 8, 8, 8}
	for i, w := range want {
		if got := floatAt(v.Data, i); got != w {
			t.Errorf("factor %d is %v, want %v", i, got, w)
		}
	}
}

func floatAt(b []byte, i int) float32 {
	return math.Float32frombits(uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24)
}
