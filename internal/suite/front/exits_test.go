package front_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
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
	m, err := grove.OpenBytes(b.Bytes(), threaded(grove.Options{CacheType: "f32"}))
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

// exitValues is the number of outputs of the heads of exits.
const exitValues = 5

func exitWeight(i int) float32 { return 1 + float32(i%7)/8 }
func exitShift(i int) float32  { return float32(i%5)/4 - 0.5 }
func exitHead(i int) float32   { return float32(i%11)/16 - 0.3 }

// withHeads opens a model of three layers whose exits have these heads: behind layer 1 alone, behind layer 2 with a bias and a norm before. The exit
// behind layer 3 has the model's norm.
func withHeads(t *testing.T, arch string) (m *grove.Model, width int) {
	m, err := withExits(t, arch, func(output tensor.View, bias *tensor.View) []tensor.View {
		width = output.Shape[0]
		last := output
		last.Name = "exit.3.norm.weight"
		more := []tensor.View{
			last, valued("exit.2.norm.weight", []int{width}, exitWeight), valued("exit.1.head.weight", []int{exitValues, width}, exitHead),
			valued("exit.2.head.weight", []int{exitValues, width}, exitHead), valued("exit.2.head.bias", []int{exitValues}, exitShift),
		}
		if bias != nil {
			last := *bias
			last.Name = "exit.3.norm.bias"
			more = append(more, last, valued("exit.2.norm.bias", []int{width}, exitShift))
		}
		return more
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, width
}

// TestExits reads states of exits that have norms and heads of their own, and compares them with the streams that they are made of, in
// float64. An exit behind the last layer that has the model's norm gives the model's states bit for bit.
func TestExits(t *testing.T) {
	for _, a := range []struct {
		arch       string
		rms, shift bool // its norms are RMS norms, or have a bias
	}{{"llama", true, false}, {"modern-bert", false, false}, {"starcoder2", false, true}} {
		m, width := withHeads(t, a.arch)
		read := func(o grove.EmbedOptions) (rows [][]float64) {
			t.Helper()
			o.Raw = true
			o.Pooling = cmp.Or(o.Pooling, "none")
			got, err := m.EmbedTokens(t.Context(), "func main() { println(1) }", o)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range got {
				rows = append(rows, nil)
				for _, v := range row {
					rows[len(rows)-1] = append(rows[len(rows)-1], float64(v))
				}
			}
			return rows
		}
		// headed returns what the heads give for streams behind a function.
		headed := func(streams [][]float64, bias float64, of func(row []float64) []float64) (rows [][]float64) {
			for _, stream := range streams {
				row := make([]float64, exitValues)
				for o := range row {
					row[o] = bias * float64(exitShift(o))
					for i, v := range of(stream) {
						row[o] += v * float64(exitHead(o*width+i))
					}
				}
				rows = append(rows, row)
			}
			return rows
		}
		norm := func(row []float64) []float64 {
			return normed(row, a.rms, func(i int) float64 { return float64(exitWeight(i)) }, func(i int) float64 {
				if a.shift {
					return float64(exitShift(i))
				}
				return 0
			})
		}
		first := read(grove.EmbedOptions{Exit: 1})
		mean := make([]float64, 4)
		for _, row := range first {
			for o := range mean {
				mean[o] += row[o] / float64(len(first))
			}
		}
		for _, tt := range []struct {
			name   string
			o      grove.EmbedOptions
			want   [][]float64
			within float64 // of 1 and the value
		}{
			{"behind all layers", grove.EmbedOptions{Exit: 3}, read(grove.EmbedOptions{}), 0},
			{"a norm and a head", grove.EmbedOptions{Exit: 2}, headed(read(grove.EmbedOptions{Layers: []int{1}}), 1, norm), 1e-4},
			{"a head without a norm", grove.EmbedOptions{Exit: 1}, headed(read(grove.EmbedOptions{Layers: []int{0}}), 0, slices.Clone[[]float64]), 1e-4},
			{"the mean of heads", grove.EmbedOptions{Exit: 1, Pooling: "mean", Dimensions: 4}, [][]float64{mean}, 1e-5},
		} {
			near := func(got, want float64) bool { return math.Abs(got-want) <= tt.within*(1+math.Abs(want)) }
			got := read(tt.o)
			if !slices.EqualFunc(got, tt.want, func(a, b []float64) bool { return slices.EqualFunc(a, b, near) }) {
				t.Errorf("%s, %s: %d states that begin with %v, want %d with %v", a.arch, tt.name, len(got), got[0][:3], len(tt.want), tt.want[0][:3])
			}
		}
		if _, err := m.Embed(t.Context(), "x", grove.EmbedOptions{Exit: 1, Dimensions: exitValues + 1}); err == nil || !strings.Contains(err.Error(), "dimensions is 6") {
			t.Errorf("%s: more dimensions than the head has: %v", a.arch, err)
		}
	}
}

// normed returns the norm of a stream in float64.
func normed(x []float64, rms bool, weight, bias func(i int) float64) []float64 {
	mean, squares := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if rms {
		mean = 0
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v-mean)/math.Sqrt(squares+1e-5)*weight(i) + bias(i)
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
