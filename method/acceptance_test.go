package method

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/weights/safetensors"
)

// one is a tensor of a file that a test writes.
type one struct {
	name  string
	kind  string
	shape []int
	v     []float32
}

// file returns a safetensors file.
func file(tensors ...one) []byte {
	header, data := map[string]any{}, []byte(nil)
	for _, t := range tensors {
		from := len(data)
		for _, v := range t.v {
			switch bits := math.Float32bits(v); t.kind {
			case "BF16":
				data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
			default:
				data = binary.LittleEndian.AppendUint32(data, bits)
			}
		}
		header[t.name] = map[string]any{"dtype": t.kind, "shape": t.shape, "data_offsets": []int{from, len(data)}}
	}
	text, _ := json.Marshal(header) // of strings and numbers
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), data...)
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "head.safetensors")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// random returns a tensor of random values, which BF16 has too.
func random(rng *rand.Rand, name string, shape ...int) one {
	n := 1
	for _, d := range shape {
		n *= d
	}
	t := one{name, "F32", shape, nil}
	for range n {
		t.v = append(t.v, float32(rng.IntN(65)-32)/64)
	}
	return t
}

// TestAccepted holds the arithmetic to the formula in float64, for heads of any number of blocks and for widths of all remainders by 8.
func TestAccepted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for blocks := range 4 {
		for width := 1; width < 20; width++ {
			var all []one
			for i := range blocks {
				at := fmt.Sprintf("model.%d.linear.", i)
				all = append(all, random(rng, at+"weight", width, width), random(rng, at+"bias", width))
			}
			last := fmt.Sprintf("model.%d.", blocks)
			all = append(all, random(rng, last+"weight", 2, width), random(rng, last+"bias", 2))
			h, err := ReadAcceptance(write(t, file(all...)), width)
			if err != nil {
				t.Fatal(err)
			}
			r, state := h.Reader(), random(rng, "", width).v
			got := float64(r.Accepted(state))
			if want := slow(h, state); math.Abs(got-want) > 1e-6 {
				t.Fatalf("%d blocks, width %d: %v, want %v", blocks, width, got, want)
			}
			if n := testing.AllocsPerRun(5, func() { r.Accepted(state) }); n > 0 {
				t.Errorf("%v allocations", n)
			}
		}
	}
}

// slow is Accepted by the formula.
func slow(h *AcceptanceHead, state []float32) float64 {
	x := make([]float64, h.Width)
	for i, v := range state {
		x[i] = float64(v)
	}
	times := func(w []float32) (sum float64) {
		for i, v := range x {
			sum += float64(w[i]) * v
		}
		return sum
	}
	for _, b := range h.Blocks {
		next := make([]float64, h.Width)
		for i := range next {
			z := times(b.Weight[i*h.Width:(i+1)*h.Width]) + float64(b.Bias[i])
			next[i] = x[i] + z/(1+math.Exp(-z))
		}
		x = next
	}
	rejected, accepted := math.Exp(times(h.Weight[0])+float64(h.Bias[0])), math.Exp(times(h.Weight[1])+float64(h.Bias[1]))
	return accepted / (rejected + accepted)
}

// TestShared: a block that is stored once stands for all, under the number of any of them, in any type.
func TestShared(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	w, b, s := random(rng, "model.0.linear.weight", 4, 4), random(rng, "model.0.linear.bias", 4), random(rng, "model.3.weight", 2, 4)
	all := []one{s}
	for i := range 3 {
		w, b := w, b
		w.name, b.name = fmt.Sprintf("model.%d.linear.weight", i), fmt.Sprintf("model.%d.linear.bias", i)
		all = append(all, w, b)
	}
	state := random(rng, "", 4).v
	whole, err := ReadAcceptance(write(t, file(all...)), 4)
	if err != nil {
		t.Fatal(err)
	}
	want := whole.Reader().Accepted(state)
	for i := range 3 {
		for _, kind := range []string{"F32", "BF16"} {
			w, b, s := all[1+2*i], all[2+2*i], s
			w.kind, b.kind, s.kind = kind, kind, kind
			h, err := ReadAcceptance(write(t, file(w, b, s)), 4)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Reader().Accepted(state); got != want || len(h.Blocks) != 3 {
				t.Errorf("block %d alone, %s: %v, want %v", i, kind, got, want)
			}
		}
	}
}

func TestReadErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	scores, block := func(m int) one { return random(rng, fmt.Sprintf("model.%d.weight", m), 2, 4) }, func(i int) (w, b one) {
		return random(rng, fmt.Sprintf("model.%d.linear.weight", i), 4, 4), random(rng, fmt.Sprintf("model.%d.linear.bias", i), 4)
	}
	w0, b0 := block(0)
	w1, b1 := block(1)
	nan, whole := scores(0), scores(0)
	nan.v[5] = float32(math.NaN())
	whole.kind = "I32"
	for want, data := range map[string][]byte{
		"shape [2 3]; it must be F32, F16 or BF16 of shape [2 4]": file(random(rng, "model.0.weight", 2, 3)),
		"shape [2 2]":                   file(scores(1), random(rng, "model.0.linear.weight", 2, 2)),
		"has type I32":                  file(whole),
		`"model.0.weight": value 5 is`:  file(nan),
		`"lm_head.weight" is none of`:   file(scores(0), random(rng, "lm_head.weight", 2, 4)),
		`"model.10.weight" is none of`:  file(random(rng, "model.10.weight", 2, 4)),
		"at most 8 blocks":              file(scores(9)),
		"model.M.weight is missing":     file(w0, b0),
		"both give scores":              file(scores(0), random(rng, "model.1.bias", 2)),
		"block 0 needs both":            file(scores(1), w0),
		"has the blocks []; it needs":   file(scores(2)),
		"has the blocks [0 1]":          file(scores(3), w0, b0, w1, b1),
		"has the blocks [1]; it needs":  file(scores(1), w1, b1),
		"has the blocks [0]; it needs ": file(scores(0), w0, b0),
		"safetensors":                   []byte("no file"),
	} {
		if h, err := ReadAcceptance(write(t, data), 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v, want an error with %q", h, err, want)
		}
	}
	if _, err := ReadAcceptance("nothere.safetensors", 4); err == nil {
		t.Error("a file that is not there is read")
	}
	if h, err := ReadAcceptance("", 4); h != nil || err != nil {
		t.Errorf("no file: %v, %v", h, err)
	}
}

// FuzzParse expects hostile files to give an error or a head that gives a probability.
func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 8))
	f.Add(file(random(rng, "model.0.weight", 2, 2), random(rng, "model.0.bias", 2)))
	f.Add(file(random(rng, "model.2.weight", 2, 2), random(rng, "model.0.linear.weight", 2, 2), random(rng, "model.0.linear.bias", 2)))
	f.Add(file(random(rng, "model.1.weight", 2, 3)))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := safetensors.Parse(data)
		if err != nil {
			return
		}
		h, err := parse(tensors, 2)
		if err != nil {
			return
		}
		if p := h.Reader().Accepted([]float32{1, -1}); !(p >= 0 && p <= 1) && !math.IsNaN(float64(p)) {
			t.Fatalf("%v is no probability", p)
		}
	})
}
