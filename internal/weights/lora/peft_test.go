package lora

import (
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

	"grove/internal/hftest"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

func golden(t testing.TB, name string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(filepath.Join("../../suite/modeltest/testdata", name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// factors returns random matrices, and what they add to a matrix [out, in].
func factors(rng *rand.Rand, out, in, rank int, scale float64) (a, b, product []float32) {
	a, b, product = make([]float32, rank*in), make([]float32, out*rank), make([]float32, out*in)
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
			product[o*in+i] = float32(scale * sum)
		}
	}
	return a, b, product
}

func view(values []float32, shape ...int) tensor.View {
	v := tensor.View{Type: tensor.F32, Shape: shape}
	v.Data = make([]byte, v.Bytes())
	if err := tensor.Pack(tensor.F32, v.Data, values); err != nil {
		panic(err)
	}
	return v
}

func settings(rank int) map[string]any {
	return map[string]any{"peft_type": "LORA", "r": rank, "lora_alpha": 3 * rank, "bias": "none", "fan_in_fan_out": false,
		"target_modules": []string{"q_proj"}, "modules_to_save": nil, "use_dora": false, "use_rslora": false}
}

// writePEFT writes a folder and returns its path.
func writePEFT(t testing.TB, config map[string]any, tensors map[string]tensor.View) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, peftConfig), text, 0o644)
	}
	if err == nil {
		err = hftest.WriteTensors(filepath.Join(dir, peftWeights), tensors, slices.Sorted(maps.Keys(tensors)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPEFTSettings reads scales, and expects settings that are not honoured to be refused by name.
func TestPEFTSettings(t *testing.T) {
	base := golden(t, "llama-gqa")
	const module = "base_model.model.model.layers.0.self_attn.q_proj"
	tests := []struct {
		name  string
		set   map[string]any
		scale float64
		want  string
	}{
		{"plain", nil, 3, ""},
		{"rslora", map[string]any{"use_rslora": true}, 6 / math.Sqrt(2), ""},
		{"pattern of alphas", map[string]any{"alpha_pattern": map[string]any{"q_proj": 5, "o_proj": 1}}, 2.5, ""},
		{"pattern by an expression", map[string]any{"alpha_pattern": map[string]any{`layers\.[0-3]\..*`: 1}}, 0.5, ""},
		{"a pattern of another module", map[string]any{"alpha_pattern": map[string]any{"xq_proj": 5}}, 3, ""},
		{"a wrong rank", map[string]any{"r": 3}, 0, "rank 2; adapter_config.json says 3"},
		{"a pattern of ranks", map[string]any{"r": 3, "lora_alpha": 8, "rank_pattern": map[string]any{"q_proj": 2}}, 4, ""},
		{"layers that are trained", map[string]any{"layers_to_transform": []int{0}, "layers_pattern": "layers", "target_modules": "all-linear"}, 3, ""},
		{"settings that ask for nothing", map[string]any{"use_dora": false, "bias": nil, "modules_to_save": []string{}, "use_new": false, "eva_config": map[string]any{"rho": 2}}, 3, ""},
		{"a later setting", map[string]any{"use_new": true}, 0, "use_new is true; it is not supported"},
		{"quantisation awareness", map[string]any{"use_qalora": true}, 0, "use_qalora is true"},
		{"biases of factors", map[string]any{"lora_bias": true}, 0, "lora_bias is true"},
		{"parameters", map[string]any{"target_parameters": []string{"x"}}, 0, "target_parameters is"},
		{"layers that are repeated", map[string]any{"layer_replication": [][]int{{0, 1}}}, 0, "layer_replication is"},
		{"tokens", map[string]any{"trainable_token_indices": []int{1}}, 0, "trainable_token_indices is"},
		{"loftq", map[string]any{"init_lora_weights": "loftq"}, 0, "init_lora_weights"},
		{"gradients", map[string]any{"init_lora_weights": "lora_ga"}, 0, "init_lora_weights"},
		{"a pattern of ranks that does not fit", map[string]any{"rank_pattern": map[string]any{"q_proj": 3}}, 0, "rank 2; adapter_config.json says 3"},
		{"rslora with patterns", map[string]any{"use_rslora": true, "alpha_pattern": map[string]any{"q_proj": 4}}, 4 / math.Sqrt(2), ""},
		{"biases of the model", map[string]any{"bias": "lora_only"}, 0, `bias is "lora_only"`},
		{"dora", map[string]any{"use_dora": true}, 0, "use_dora is true"},
		{"saved modules", map[string]any{"modules_to_save": []string{"lm_head"}}, 0, "modules_to_save"},
		{"biases", map[string]any{"bias": "all"}, 0, "bias is"},
		{"pissa", map[string]any{"init_lora_weights": "pissa_niter_4"}, 0, "init_lora_weights"},
		{"another kind", map[string]any{"peft_type": "IA3"}, 0, "peft_type is"},
		{"turned matrices", map[string]any{"fan_in_fan_out": true}, 0, "fan_in_fan_out is true"},
		{"rank 0", map[string]any{"r": 0}, 0, "r is 0"},
		{"a broken pattern", map[string]any{"alpha_pattern": map[string]any{"(": 5}}, 0, "is no expression"},
		{"an endless alpha", map[string]any{"lora_alpha": 1e300}, 0, "scale is"},
		{"an invocation", map[string]any{"alora_invocation_tokens": []int{1, -2}}, 0, "token 1 is -2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := settings(2)
			maps.Copy(config, tt.set)
			a, b, _ := factors(rand.New(rand.NewPCG(1, 2)), 64, 64, 2, 1)
			dir := writePEFT(t, config, map[string]tensor.View{module + ".lora_A.weight": view(a, 2, 64), module + ".lora_B.weight": view(b, 64, 2)})
			got, err := Open(dir, base)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				defer got.Close()
				if p := got.Pairs[0]; p.Scale != tt.scale || p.Name != "blk.0.attn_q.weight" {
					t.Errorf("scale %v of %s; want %v", p.Scale, p.Name, tt.scale)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
}

// TestOtherBase expects adapters of other models to be refused by the name of what does not fit.
func TestOtherBase(t *testing.T) {
	for name, tt := range map[string]struct {
		module string
		in     int
		want   string
	}{
		"another width":   {"model.layers.0.self_attn.q_proj", 32, `q_proj: factor A has shape [2 32]`},
		"another layer":   {"model.layers.99.self_attn.q_proj", 64, "the base has no such module"},
		"another module":  {"model.layers.0.self_attn.qkv_proj", 64, "the base has no such module"},
		"a norm":          {"model.norm", 64, "the base has no such module"},
		"a missing model": {"", 64, "the base has no such module"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := factors(rand.New(rand.NewPCG(1, 2)), 64, tt.in, 2, 1)
			module := "base_model.model." + tt.module
			dir := writePEFT(t, settings(2), map[string]tensor.View{module + ".lora_A.weight": view(a, 2, tt.in), module + ".lora_B.weight": view(b, 64, 2)})
			if _, err := Open(dir, golden(t, "llama-gqa")); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
	if _, err := Open(fmt.Sprint(t.TempDir(), "/none"), golden(t, "gpt2")); err == nil {
		t.Error("a file that is not there was opened")
	}
}
