package modeltest

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
	"testing"

	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// archsDir has random models of many architectures with the logits of llama.cpp. They are not part of this repository.
const archsDir = "../../../../shared/golden/archs"

// archs are the models of archsDir that grove opens, with the largest difference of their logits in parts of the logits'
// root mean square: that program looks GELU up in a table of half floats, which the attention of Gemma 3n and 4 makes
// larger (TestSharpArchs). With GELU rounded in the same way the first
// rows are within 1e-6, up to the first value that rounds to the other side.
var archs = map[string]float64{
	"apertus-dense":       exactArch,
	"arcee-dense":         exactArch,
	"bailingmoe-moe":      exactArch,
	"bailingmoe2-moe":     exactArch,
	"cohere2-dense":       exactArch,
	"command-r-dense":     exactArch,
	"deepseek-moe":        exactArch,
	"deepseek2-moe":       exactArch,
	"dots1-moe":           exactArch,
	"dream-dense":         exactArch,
	"ernie4_5-moe":        exactArch,
	"exaone-dense":        exactArch,
	"exaone-moe-moe":      exactArch,
	"exaone4-dense":       exactArch,
	"falcon-dense":        geluArch,
	"gemma3n-dense":       0.03,
	"gemma4-dense":        0.2,
	"glm4-dense":          exactArch,
	"glm4moe-moe":         exactArch,
	"gptneox-dense":       geluArch,
	"granite-dense":       exactArch,
	"granite-moe":         exactArch,
	"granitemoe-dense":    exactArch,
	"granitemoe-moe":      exactArch,
	"hunyuan-dense-dense": exactArch,
	"hunyuan-moe-moe":     exactArch,
	"internlm2-dense":     exactArch,
	"kimi-linear-moe":     exactArch,
	"lfm2-dense":          exactArch,
	"lfm2moe-moe":         exactArch,
	"llama4-moe":          exactArch,
	"llada-dense":         exactArch,
	"llada-moe-moe":       exactArch,
	"minicpm-dense":       exactArch,
	"minicpm-moe":         exactArch,
	"minicpm3-dense":      exactArch,
	"minimax-m2-moe":      exactArch,
	"mistral3-dense":      exactArch,
	"mistral3-moe":        exactArch,
	"nemotron-dense":      exactArch,
	"olmo-dense":          exactArch,
	"olmoe-moe":           exactArch,
	"phi2-dense":          geluArch,
	"qwen2moe-moe":        exactArch,
	"qwen35-dense":        exactArch,
	"qwen35moe-moe":       exactArch,
	"qwen3next-moe":       exactArch,
	"qwen3vl-dense":       exactArch,
	"qwen3vlmoe-moe":      exactArch,
	"rnd1-moe":            exactArch,
	"seed_oss-dense":      exactArch,
	"smollm3-dense":       exactArch,
	"stablelm-dense":      exactArch,
	"starcoder-dense":     geluArch,
	"t5-dense":            sharpArch,

	// with recurrent layers
	"falcon-h1-dense":      exactArch,
	"granitehybrid-dense":  exactArch,
	"jamba-dense":          scanArch,
	"mamba-dense":          scanArch,
	"mamba2-dense":         exactArch,
	"nemotron_h-dense":     exactArch,
	"nemotron_h_moe-dense": exactArch,
}

// unread are the ends of the names of tensors that llama.cpp loads and leaves out of its sums, with the values that leave them
// out here.
var unread = map[string]map[string]float32{
	"llada-dense":     {".bias": 0, "rope_freqs.weight": 1},
	"ernie4_5-moe":    {".attn_output.bias": 0},
	"falcon-h1-dense": {".attn_output.bias": 0, "rope_freqs.weight": 1},
	"kimi-linear-moe": unreadBiases,
	"gemma3n-dense":   {"blk.20.attn_q.bias": 0, "blk.21.attn_q.bias": 0},
	"olmoe-moe":       {".bias": 0},
	"qwen35-dense":    unreadBiases,
	"qwen35moe-moe":   unreadBiases,
	"qwen3next-moe":   unreadBiases,
}

var unreadBiases = map[string]float32{".attn_q.bias": 0, ".attn_k.bias": 0, ".attn_v.bias": 0}

// lost are factors of products that llama.cpp had where it made the logits and that are not in the files (the value of tensors
// blk.N.ssm_alpha.scale): one number explains all logits of both models to 3e-6. The weights are multiplied by it here.
var lost = map[string]float32{"qwen35-dense": -1.05, "qwen35moe-moe": -1.05}

const (
	exactArch = 1e-5
	scanArch  = 2e-5 // Mamba 1, whose recurrences add 128 products of products: an oracle in float64 is 6e-6 from that program and 1.3e-5 from grove
	geluArch  = 1.2e-3
	// T5's attention has no scale, so that its scores are large and differences grow: 1.3e-3 are left where GELU is rounded in
	// the same way.
	sharpArch = 7e-3
)

// TestArchs compares the logits of models with those of llama.cpp, and checks the bits of each with one cache, by turns.
func TestArchs(t *testing.T) {
	if _, err := os.Stat(archsDir); err != nil {
		if _, err := os.Stat(filepath.Dir(filepath.Dir(archsDir))); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("%s is missing", archsDir)
		}
		t.Skipf("%s is not here", archsDir)
	}
	for turn, name := range slices.Sorted(maps.Keys(archs)) {
		tolerance := archs[name]
		t.Run(name, func(t *testing.T) {
			file, err := gguf.Open(filepath.Join(archsDir, name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { file.Close() })
			for i := range file.Tensors {
				leaveOut(&file.Tensors[i], unread[name])
				if v := &file.Tensors[i]; lost[name] != 0 && strings.HasSuffix(v.Name, ".ssm_alpha.weight") {
					v.Data = times(lost[name], v.Data)
				}
			}
			r := New(t, file, Config{CacheType: tensor.F32, Context: 256})
			ids, want := archLogits(t, name, r.Model.Info().Vocabulary)
			usual := r.source
			r.source = ids // both parts of an encoder-decoder were fed them
			got := r.Reference(ids)
			if r.Model.Info().Diffusion != nil {
				got = r.Canvas(ids)
			}
			r.source = usual
			var worst, square float64
			n := 0
			for i, row := range want {
				for v, x := range row {
					worst, square = max(worst, math.Abs(x-float64(got[i][v]))), square+x*x
					n++
				}
			}
			rms := math.Sqrt(square / float64(n))
			t.Logf("largest difference %.2g of %.3g", worst, rms)
			if !(worst <= tolerance*rms) {
				t.Fatalf("logits differ by %g; their root mean square is %g", worst, rms)
			}
			if _, table := file.Tensor("position_embd.weight"); table {
				t.Log("128 learned positions are too few for the checks of bits; TestBits has them for gpt2, which is the same code")
				return
			}
			archBits(t, r, file, turn)
		})
	}
}

// leaveOut gives a tensor of one of these ends a value everywhere.
func leaveOut(v *tensor.View, ends map[string]float32) {
	for end, x := range ends {
		if strings.HasSuffix(v.Name, end) {
			v.Data = nil
			for range v.Elems() {
				v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(x))
			}
		}
	}
}

// times returns values in float32, multiplied by a factor.
func times(factor float32, data []byte) []byte {
	var out []byte
	for i := 0; i < len(data); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(factor*x))
	}
	return out
}

// archLogits reads the ids of a model of archsDir and the logits behind each of them.
func archLogits(t *testing.T, name string, vocabulary int) (ids []token.ID, logits [][]float64) {
	text, err := os.ReadFile(filepath.Join(archsDir, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var fed struct{ Tokens []token.ID }
	if err := json.Unmarshal(text, &fed); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(archsDir, name+".f32"))
	if err != nil {
		t.Fatal(err)
	}
	if len(fed.Tokens) == 0 || len(data) != len(fed.Tokens)*vocabulary*4 {
		t.Fatalf("%d ids and %d bytes of logits do not fit a vocabulary of %d", len(fed.Tokens), len(data), vocabulary)
	}
	for range fed.Tokens {
		row := make([]float64, vocabulary)
		for v := range row {
			row[v] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*v:])))
		}
		logits, data = append(logits, row), data[4*vocabulary:]
	}
	return fed.Tokens, logits
}

// laterArchs came after the numerics version's own list of bits, and no other program has made a model of them.
var laterArchs = []Spec{{Arch: "blockffn"}, {Arch: "diffusion-gemma"}, {Arch: "mimo2", Layers: 4, ValueSize: 24}, {Arch: "phimoe"}, {Arch: "sdar"}, {Arch: "sdar_moe"}, {Arch: "step3", Layers: 4}, {Arch: "step35", Layers: 4}}

// TestLaterArchs checks the bits of laterArchs.
func TestLaterArchs(t *testing.T) {
	for n, spec := range laterArchs {
		t.Run(spec.Arch, func(t *testing.T) {
			file := spec.File(t)
			archBits(t, New(t, file, Config{CacheType: tensor.F32, Context: 256}), file, n)
		})
	}
}

// archBits checks the equalities of bits of a runner with one thread: the short run one in three of them, from the n-th on.
func archBits(t *testing.T, r *Runner, file *gguf.File, n int) {
	rng := rand.New(rand.NewPCG(7, 8))
	text := randomIDs(rng, textLength, r.Model.Info().Vocabulary)
	plain := r.Plain(text)
	if info := r.Model.Info(); info.Arch == "blockffn" { // a row has gates for as many blocks as it likes
		if all := info.Experts * info.Mixtures; r.Exec.Touched() < all/10 || r.Exec.Touched() > all*9/10 {
			t.Errorf("a row touched %d blocks of %d", r.Exec.Touched(), all)
		}
	} else if r.Exec.Touched() != info.ExpertsPerToken*info.Mixtures {
		t.Errorf("a row touched %d experts; it chooses %d in each of %d layers", r.Exec.Touched(), info.ExpertsPerToken, info.Mixtures)
	}
	if long || n%3 == 0 {
		many := New(t, file, Config{CacheType: tensor.F32, Threads: 2, Context: 256})
		if err := Equal("2 threads and 1", many.Plain(text), plain); err != nil {
			t.Error(err)
		}
	}
	for i, c := range checks {
		if !long && (i+n)%3 != 0 {
			continue
		}
		if err := c.run(r, rng, text, plain); err != nil {
			t.Error(fmt.Errorf("%s: %w", c.name, err))
		}
	}
}
