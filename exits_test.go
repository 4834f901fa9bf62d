package grove_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/model/synthetic"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// withExits opens a synthetic model of three layers that has further tensors.
func withExits(t *testing.T, arch string, add func(output tensor.View, bias *tensor.View) []tensor.View) (*grove.Model, error) {
	t.Helper()
	spec := synthetic.Spec{Arch: arch, Layers: 3, Vocabulary: true, Vocab: 300, Context: 64}
	metadata, tensors, err := spec.Parts()
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) *tensor.View {
		if i := slices.IndexFunc(tensors, func(v tensor.View) bool { return v.Name == name }); i >= 0 {
			return &tensors[i]
		}
		return nil
	}
	tensors = append(tensors, add(*find("output_norm.weight"), find("output_norm.bias"))...)
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenBytes(b.Bytes(), grove.Options{CacheType: "f32"})
	if err == nil {
		t.Cleanup(func() { m.Close() })
	}
	return m, err
}

// valued makes a tensor of values that a function gives.
func valued(name string, shape []int, value func(i int) float32) tensor.View {
	v := tensor.View{Name: name, Type: tensor.F32, Shape: shape}
	for i := range v.Elems() {
		v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(value(i)))
	}
	return v
}

// TestExits reads states of exits that have norms and heads of their own, and compares them with the streams that they are made of, in
// float64. An exit behind the last layer that has the model's norm gives the model's states bit for bit.
func TestExits(t *testing.T) {
	const wide = 5
	weight := func(i int) float32 { return 1 + float32(i%7)/8 }
	shift := func(i int) float32 { return float32(i%5)/4 - 0.5 }
	head := func(i int) float32 { return float32(i%11)/16 - 0.3 }
	for arch, rms := range map[string]bool{"llama": true, "modern-bert": false, "starcoder2": false} {
		t.Run(arch, func(t *testing.T) {
			width := 0
			m, err := withExits(t, arch, func(output tensor.View, bias *tensor.View) []tensor.View {
				width = output.Shape[0]
				last := output
				last.Name = "exit.3.norm.weight"
				more := []tensor.View{
					last, valued("exit.2.norm.weight", []int{width}, weight), valued("exit.1.head.weight", []int{wide, width}, head),
					valued("exit.2.head.weight", []int{wide, width}, head), valued("exit.2.head.bias", []int{wide}, shift),
				}
				if bias != nil {
					last := *bias
					last.Name = "exit.3.norm.bias"
					more = append(more, last, valued("exit.2.norm.bias", []int{width}, shift))
				}
				return more
			})
			if err != nil {
				t.Fatal(err)
			}
			read := func(o grove.EmbedOptions) [][]float32 {
				t.Helper()
				o.Raw = true
				if o.Pooling == "" {
					o.Pooling = "none"
				}
				rows, err := m.EmbedTokens(t.Context(), "func main() { println(1) }", o)
				if err != nil {
					t.Fatal(err)
				}
				return rows
			}
			for i, row := range read(grove.EmbedOptions{Exit: 3}) {
				if want := read(grove.EmbedOptions{})[i]; !slices.Equal(row, want) {
					t.Fatalf("token %d: the exit behind all layers gives %v, the model %v", i, row[:3], want[:3])
				}
			}
			for n, row := range read(grove.EmbedOptions{Layers: []int{1}}) {
				want := normed(row, rms, func(i int) float64 { return float64(weight(i)) }, func(i int) float64 {
					if arch == "starcoder2" {
						return float64(shift(i))
					}
					return 0
				})
				got := read(grove.EmbedOptions{Exit: 2})[n]
				for o := range wide {
					sum := float64(shift(o))
					for i, v := range want {
						sum += v * float64(head(o*width+i))
					}
					if !(math.Abs(float64(got[o])-sum) <= 1e-4*(1+math.Abs(sum))) || len(got) != wide {
						t.Fatalf("token %d, value %d of %d of the exit is %v, want %v", n, o, len(got), got[o], sum)
					}
				}
			}
			rows := read(grove.EmbedOptions{Exit: 1})
			for n, row := range read(grove.EmbedOptions{Layers: []int{0}}) {
				sum := 0.0
				for i, v := range row {
					sum += float64(v) * float64(head(i))
				}
				if got := float64(rows[n][0]); !(math.Abs(got-sum) <= 1e-4*(1+math.Abs(sum))) {
					t.Fatalf("token %d: a head without a norm gives %v, want %v", n, got, sum)
				}
			}
			mean, sum := read(grove.EmbedOptions{Exit: 1, Pooling: "mean", Dimensions: 4})[0], 0.0
			for _, row := range rows {
				sum += float64(row[3]) / float64(len(rows))
			}
			if len(mean) != 4 || !(math.Abs(float64(mean[3])-sum) <= 1e-5*(1+math.Abs(sum))) {
				t.Errorf("the mean of heads is %v, want %v as value 3", mean, sum)
			}
			if _, err := m.Embed(t.Context(), "x", grove.EmbedOptions{Exit: 1, Dimensions: wide + 1}); err == nil || !strings.Contains(err.Error(), "dimensions is 6") {
				t.Errorf("more dimensions than the head has: %v", err)
			}
		})
	}
}

// normed returns the norm of a stream in float64.
func normed(x []float32, rms bool, weight, bias func(i int) float64) []float64 {
	mean, squares := 0.0, 0.0
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	if rms {
		mean = 0
	}
	for _, v := range x {
		squares += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (float64(v)-mean)/math.Sqrt(squares+1e-5)*weight(i) + bias(i)
	}
	return out
}

// TestExitErrors opens files whose exits have other shapes, or are behind layers that there are none of.
func TestExitErrors(t *testing.T) {
	one := func(int) float32 { return 1 }
	for want, v := range map[string]tensor.View{
		`exit.2.norm.weight`: valued("exit.2.norm.weight", []int{3}, one),
		`exit.4.norm.weight`: valued("exit.4.norm.weight", []int{64}, one),
		`exit.0.norm.weight`: valued("exit.0.norm.weight", []int{64}, one),
		`exit.1.norm.bias`:   valued("exit.1.norm.bias", []int{64}, one), // of RMSNorm
		`exit.1.head.bias`:   valued("exit.1.head.bias", []int{64}, one),
		`exit.1.head.weight`: valued("exit.1.head.weight", []int{4, 3}, one),
		`exit.2.up.weight`:   valued("exit.2.up.weight", []int{4, 64}, one),
	} {
		_, err := withExits(t, "llama", func(tensor.View, *tensor.View) []tensor.View { return []tensor.View{v} })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}
