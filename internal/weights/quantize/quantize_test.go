package quantize

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// model is a file of tensors of zeros, of which only names and shapes count.
func model(t *testing.T, arch string, counts map[string]int, tensors ...tensor.View) *gguf.File {
	t.Helper()
	metadata := []gguf.KV{{Key: "general.architecture", Value: gguf.Of(arch)}, {Key: "split.count", Value: gguf.Of(uint16(0))}}
	for key, n := range counts {
		metadata = append(metadata, gguf.KV{Key: arch + "." + key, Value: gguf.Of(uint32(n))})
	}
	for i := range tensors {
		if tensors[i].Data == nil {
			tensors[i].Data = make([]byte, tensors[i].Bytes())
		}
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func f32(name string, shape ...int) tensor.View {
	return tensor.View{Name: name, Type: tensor.F32, Shape: shape}
}

// decoder is the tensors that mixes tell apart, for some layers of one width.
func decoder(layers, width int, stack bool) []tensor.View {
	out := []tensor.View{f32("token_embd.weight", 2, width), f32("output_norm.weight", width), f32("output.weight", 2, width)}
	for i := range layers {
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s.weight", i, s) }
		out = append(out, f32(name("attn_norm"), width))
		for _, s := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			out = append(out, f32(name(s), 2, width))
		}
		if stack {
			out = append(out, f32(name("ffn_gate_inp"), 2, width), f32(name("ffn_gate_exps"), 2, 2, width), f32(name("ffn_down_exps"), 2, 2, width))
		} else {
			out = append(out, f32(name("ffn_gate"), 2, width), f32(name("ffn_down"), 2, width))
		}
	}
	return out
}

// types returns the type of each tensor under a mix.
func types(t *testing.T, f *gguf.File, name string) map[string]tensor.Type {
	t.Helper()
	j, err := New(f, name, false)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]tensor.Type{}
	for _, v := range j.Tensors() {
		out[v.Name] = v.Type
	}
	return out
}

// layersWith returns the layers whose tensor has a type.
func layersWith(got map[string]tensor.Type, part string, typ tensor.Type) (layers []int) {
	for i := 0; ; i++ {
		found, ok := got[fmt.Sprintf("blk.%d.%s.weight", i, part)]
		if !ok {
			return layers
		}
		if found == typ {
			layers = append(layers, i)
		}
	}
}

// TestMixes holds mixes to what files that llama.cpp has quantised are known to hold, for a model of 32
// layers with four query heads to a key head.
func TestMixes(t *testing.T) {
	more := []int{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31}
	all := make([]int, 32)
	for i := range all {
		all[i] = i
	}
	gqa := map[string]int{"block_count": 32, "attention.head_count": 32, "attention.head_count_kv": 8}
	tests := []struct {
		mix                  string
		most, table, output  tensor.Type
		value, down, attnOut tensor.Type
		valueIn, downIn      []int
	}{
		{"Q8_0", tensor.Q8_0, tensor.Q8_0, tensor.Q8_0, tensor.Q8_0, tensor.Q8_0, tensor.Q8_0, all, all},
		{"Q4_0", tensor.Q4_0, tensor.Q4_0, tensor.Q6_K, tensor.Q4_0, tensor.Q4_0, tensor.Q4_0, all, all},
		{"q4_k_m", tensor.Q4_K, tensor.Q4_K, tensor.Q6_K, tensor.Q6_K, tensor.Q6_K, tensor.Q4_K, more, more},
		{"Q4_K_S", tensor.Q4_K, tensor.Q4_K, tensor.Q6_K, tensor.Q5_K, tensor.Q5_K, tensor.Q4_K, []int{0, 1, 2, 3}, []int{0, 1, 2, 3}},
		{"Q5_K_M", tensor.Q5_K, tensor.Q5_K, tensor.Q6_K, tensor.Q6_K, tensor.Q6_K, tensor.Q5_K, more, more},
		{"Q5_K_S", tensor.Q5_K, tensor.Q5_K, tensor.Q6_K, tensor.Q5_K, tensor.Q5_K, tensor.Q5_K, all, all},
		{"Q6_K", tensor.Q6_K, tensor.Q6_K, tensor.Q6_K, tensor.Q6_K, tensor.Q6_K, tensor.Q6_K, all, all},
		{"Q3_K_M", tensor.Q3_K, tensor.Q3_K, tensor.Q6_K, tensor.Q5_K, tensor.Q5_K, tensor.Q4_K, []int{0, 1}, []int{0, 1}},
		{"Q3_K_L", tensor.Q3_K, tensor.Q3_K, tensor.Q6_K, tensor.Q5_K, tensor.Q5_K, tensor.Q5_K, all, all},
		{"Q2_K", tensor.Q2_K, tensor.Q2_K, tensor.Q6_K, tensor.Q4_K, tensor.Q3_K, tensor.Q3_K, all, all},
		{"IQ4_XS", tensor.IQ4_XS, tensor.IQ4_XS, tensor.Q6_K, tensor.Q5_K, tensor.Q5_K, tensor.IQ4_XS, all, []int{0, 1, 2, 3}},
		{"F16", tensor.F16, tensor.F16, tensor.F16, tensor.F16, tensor.F16, tensor.F16, all, all},
		{"auto", tensor.F32, tensor.F32, tensor.F32, tensor.F32, tensor.F32, tensor.F32, all, all},
	}
	for _, tt := range tests {
		t.Run(tt.mix, func(t *testing.T) {
			tensors := append(decoder(32, 256, false), f32("diffusion.filter.0.weight", 64, 32)) // of a canvas
			got := types(t, model(t, "llama", gqa, tensors...), tt.mix)
			for name, want := range map[string]tensor.Type{
				"token_embd.weight": tt.table, "output.weight": tt.output, "output_norm.weight": tensor.F32, "diffusion.filter.0.weight": tensor.F32,
				"blk.5.attn_norm.weight": tensor.F32, "blk.5.attn_q.weight": tt.most, "blk.5.attn_k.weight": tt.most,
				"blk.5.ffn_gate.weight": tt.most, "blk.5.attn_output.weight": tt.attnOut,
			} {
				if got[name] != want {
					t.Errorf("%s is %v, want %v", name, got[name], want)
				}
			}
			if layers := layersWith(got, "attn_v", tt.value); !slices.Equal(layers, tt.valueIn) {
				t.Errorf("attn_v is %v in layers %v, want %v", tt.value, layers, tt.valueIn)
			}
			if layers := layersWith(got, "ffn_down", tt.down); !slices.Equal(layers, tt.downIn) {
				t.Errorf("ffn_down is %v in layers %v, want %v", tt.down, layers, tt.downIn)
			}
		})
	}
}

// TestMixture covers eight experts, tied tables, and rows that are no multiple of 256.
func TestMixture(t *testing.T) {
	experts := map[string]int{"block_count": 8, "attention.head_count": 4, "attention.head_count_kv": 4, "expert_count": 8}
	got := types(t, model(t, "llama", experts, decoder(8, 256, true)...), "Q4_K_M")
	for name, want := range map[string]tensor.Type{
		"blk.2.attn_v.weight": tensor.Q8_0, "blk.2.attn_k.weight": tensor.Q8_0, "blk.2.attn_output.weight": tensor.Q5_K,
		"blk.2.attn_q.weight": tensor.Q4_K, "blk.2.ffn_gate_inp.weight": tensor.F32, "blk.2.ffn_gate_exps.weight": tensor.Q4_K,
		"blk.0.ffn_down_exps.weight": tensor.Q6_K, "blk.1.ffn_down_exps.weight": tensor.Q4_K, "blk.3.ffn_down_exps.weight": tensor.Q6_K,
		"blk.7.ffn_down_exps.weight": tensor.Q6_K,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	got = types(t, model(t, "llama", experts, decoder(8, 256, true)...), "MXFP4_MOE")
	for name, want := range map[string]tensor.Type{
		"blk.2.attn_v.weight": tensor.Q8_0, "blk.2.ffn_gate_exps.weight": tensor.MXFP4, "output.weight": tensor.Q8_0, "token_embd.weight": tensor.Q8_0,
	} {
		if got[name] != want {
			t.Errorf("MXFP4: %s is %v, want %v", name, got[name], want)
		}
	}

	dense := map[string]int{"block_count": 1, "attention.head_count": 4, "attention.head_count_kv": 4}
	for _, tt := range []struct {
		mix               string
		width             int
		table, q, v, down tensor.Type
	}{
		{"Q4_K_M", 256, tensor.Q6_K, tensor.Q4_K, tensor.Q6_K, tensor.Q6_K}, // the table is the head
		{"Q4_K_M", 96, tensor.Q8_0, tensor.Q5_0, tensor.Q8_0, tensor.Q8_0},
		{"Q5_K_S", 96, tensor.Q8_0, tensor.Q5_1, tensor.Q5_1, tensor.Q5_1},
		{"Q6_K", 96, tensor.Q8_0, tensor.Q8_0, tensor.Q8_0, tensor.Q8_0},
		{"Q2_K", 96, tensor.Q8_0, tensor.Q4_0, tensor.Q4_0, tensor.Q4_0},
		{"IQ4_XS", 96, tensor.Q8_0, tensor.IQ4_NL, tensor.IQ4_NL, tensor.IQ4_NL},
		{"Q4_0", 96, tensor.Q8_0, tensor.Q4_0, tensor.Q4_0, tensor.Q4_0},
		{"Q4_K_M", 40, tensor.F16, tensor.F16, tensor.F16, tensor.F16},
	} {
		t.Run(fmt.Sprint(tt.mix, tt.width), func(t *testing.T) {
			tensors := slices.DeleteFunc(decoder(1, tt.width, false), func(v tensor.View) bool { return v.Name == "output.weight" })
			got := types(t, model(t, "llama", dense, tensors...), tt.mix)
			for name, want := range map[string]tensor.Type{
				"token_embd.weight": tt.table, "blk.0.attn_q.weight": tt.q, "blk.0.attn_v.weight": tt.v, "blk.0.ffn_down.weight": tt.down,
			} {
				if got[name] != want {
					t.Errorf("%s is %v, want %v", name, got[name], want)
				}
			}
		})
	}
}

// TestDocumented: the manual and the help name every mix, the manual and README.md every weight type.
func TestDocumented(t *testing.T) {
	types := strings.Fields(strings.Trim(fmt.Sprint(tensor.Types()), "[]"))
	for file, names := range map[string][]string{
		"docs/cli.md":          append(Names(), types...),
		"cmd/grove/convert.go": Names(),
		"README.md":            types,
	} {
		text, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !regexp.MustCompile(`\b` + name + `\b`).Match(text) {
				t.Errorf("%s does not name %s", file, name)
			}
		}
	}
}

// wave fills a tensor with values of either sign.
func wave(v tensor.View) tensor.View {
	x := make([]float32, v.Elems())
	for i := range x {
		x[i] = float32(math.Cos(float64(i) * 0.37))
	}
	v.Data = make([]byte, v.Bytes())
	if err := tensor.Pack(v.Type, v.Data, x); err != nil {
		panic(err)
	}
	return v
}

// write writes a file under a mix and parses it.
func write(t *testing.T, f *gguf.File, name string, threads int) []byte {
	t.Helper()
	pool := par.New(threads)
	defer pool.Close()
	j, err := New(f, name, true)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	last := int64(0)
	err = j.Write(context.Background(), &b, pool, func(done int64) {
		if done < last || done > j.Size() {
			t.Errorf("progress goes from %d to %d of %d", last, done, j.Size())
		}
		last = done
	})
	if err != nil || last != j.Size() {
		t.Fatalf("%v, %d of %d bytes", err, last, j.Size())
	}
	return b.Bytes()
}

// TestWrite expects the bytes that packing a tensor at once gives, whatever the threads and batches.
func TestWrite(t *testing.T) {
	f := model(t, "llama", map[string]int{"block_count": 1},
		wave(f32("token_embd.weight", 3000, 2560)), wave(f32("output_norm.weight", 64)), wave(f32("blk.0.attn_q.weight", 7, 256)))
	one := write(t, f, "Q4_0", 1)
	if !bytes.Equal(one, write(t, f, "Q4_0", 3)) {
		t.Error("one and three threads differ")
	}
	g, err := gguf.Parse(one)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range g.Tensors {
		x := make([]float32, v.Elems())
		if err := tensor.Unpack(tensor.F32, x, f.Tensors[i].Data); err != nil {
			t.Fatal(err)
		}
		want := make([]byte, v.Bytes())
		if err := tensor.Pack(v.Type, want, x); err != nil || !bytes.Equal(v.Data, want) {
			t.Errorf("tensor %s of type %v differs, %v", v.Name, v.Type, err)
		}
	}
	if n, _, _ := g.Uint("general.file_type"); n != 2 {
		t.Errorf("general.file_type is %d", n)
	}
	if _, split := g.Lookup("split.count"); split {
		t.Error("split.count is still there")
	}
	kept, err := gguf.Parse(write(t, g, Keep, 2))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range kept.Tensors {
		if v.Type != g.Tensors[i].Type || !bytes.Equal(v.Data, g.Tensors[i].Data) {
			t.Errorf("tensor %s changed", v.Name)
		}
	}
	if n, _, _ := kept.Uint("general.file_type"); n != 18 { // the table is the head, and most of the weights
		t.Errorf("kept: general.file_type is %d", n)
	}
}

func TestErrors(t *testing.T) {
	counts := map[string]int{"block_count": 1}
	spoilt := func(at int, x float32) tensor.View {
		v := wave(f32("blk.0.attn_q.weight", 300, 256))
		if err := tensor.Pack(tensor.F32, v.Data[4*at:4*at+4], []float32{x}); err != nil {
			t.Fatal(err)
		}
		return v
	}
	packed := tensor.View{Name: "blk.0.attn_q.weight", Type: tensor.Q8_0, Shape: []int{2, 256}}
	ints := tensor.View{Name: "blk.0.attn_q.weight", Type: tensor.I32, Shape: []int{2, 256}}
	tests := []struct {
		name, mix string
		view      tensor.View
		want      string
	}{
		{"unknown mix", "Q9", packed, `quantize: type "Q9" is not known; the types are F32, F16`},
		{"quantised already", "Q4_0", packed, `quantize: blk.0.attn_q.weight: type Q8_0 is quantized already, and to quantize it again loses more; 'grove quantize --allow-requantize' does so, or start from a model of floats`},
		{"integers", "Q4_0", ints, `quantize: blk.0.attn_q.weight: type I32 has no codec; use a file of another type, such as F16`},
		{"NaN", "Q8_0", spoilt(700, float32(math.NaN())), `quantize: blk.0.attn_q.weight: row 2: element 188 is NaN; Q8_0 holds values within ±`},
		{"infinity", "BF16", spoilt(256*299, float32(math.Inf(-1))), `quantize: blk.0.attn_q.weight: row 299: element 0 is -Inf; BF16 holds values within ±`},
		{"beyond F16", "F16", spoilt(1, 65520), `quantize: blk.0.attn_q.weight: row 0: element 1 is 65520; F16 holds values within ±`},
		{"beyond BF16", "BF16", spoilt(1, math.MaxFloat32), `quantize: blk.0.attn_q.weight: row 0: element 1 is 3.4028235e+38; BF16 holds values within ±`},
		{"beyond a scale", "Q8_0", spoilt(5, 1e30), `quantize: blk.0.attn_q.weight: row 0: Q8_0: elements 0 to 31 are too large for the scale of a block`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, err := New(model(t, "llama", counts, tt.view), tt.mix, false)
			if err == nil {
				pool := par.New(2)
				defer pool.Close()
				err = j.Write(context.Background(), io.Discard, pool, nil)
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}

	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("why")
		cancel(why)
		j, err := New(model(t, "llama", counts, wave(f32("w.weight", 2, 32))), "Q8_0", false)
		if err != nil {
			t.Fatal(err)
		}
		pool := par.New(1)
		defer pool.Close()
		if err := j.Write(ctx, io.Discard, pool, nil); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("layers that are text", func(t *testing.T) {
		var b bytes.Buffer
		metadata := []gguf.KV{{Key: "general.architecture", Value: gguf.Of("x")}, {Key: "x.block_count", Value: gguf.Of("many")}}
		if err := gguf.Write(&b, metadata, nil); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(f, "F16", false); err == nil || !strings.Contains(err.Error(), `key "x.block_count": want an integer, found string`) {
			t.Errorf("got %v", err)
		}
	})
}
