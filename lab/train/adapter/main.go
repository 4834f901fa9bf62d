// Command _adapter trains a LoRA adapter for a gopher on texts, by forward passes alone (MeZO, Malladi et al. 2023): it perturbs all
// factors along a random direction, compares the losses of both sides on the same windows of text, and steps along the direction.
//
//	go run ./lab/train/adapter -minutes 5 -out internal/gopher/testdata/adapter/prose.gguf docs/*.md
//
// One text in four is held out; their loss before and after is the figure that counts.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

const (
	rank    = 2
	window  = 192 // tokens
	windows = 4   // of a step
	probe   = 1e-2
)

// targets are the tensors that the adapter adds to.
var targets = []string{"blk.2.ffn_down.weight", "blk.3.ffn_down.weight"}

func main() {
	minutes := flag.Float64("minutes", 5, "time to train")
	rate := flag.Float64("rate", 0.01, "usual change of a factor's value in a step, at the beginning")
	out := flag.String("out", "adapter.gguf", "file to write")
	flag.Parse()
	if err := run(*minutes, *rate, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "_adapter:", err)
		os.Exit(1)
	}
}

// trainer is the adapter, its model and the texts.
type trainer struct {
	m      *grove.Model
	file   string // of the adapter, while it is trained
	shapes [][2]int
	theta  []float32 // A and B of each target in turn
	train  [][]token.ID
	held   [][]token.ID
	rng    *rand.Rand
	usual  float64 // the square of a slope, in the mean of late steps
}

func run(minutes, rate float64, out string, paths []string) error {
	m, err := grove.Open(gopher.Name, grove.Options{Context: window + 8, Parallel: 1, Forget: true})
	if err != nil {
		return err
	}
	defer m.Close()
	dir, err := os.MkdirTemp("", "adapter")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &trainer{m: m, file: filepath.Join(dir, "a.gguf"), rng: rand.New(rand.NewPCG(1, 2))}
	if err := t.prepare(paths); err != nil {
		return err
	}
	before, err := t.loss(nil, t.held)
	if err != nil {
		return err
	}
	best, bestLoss := slices.Clone(t.theta), before
	fmt.Printf("%d parameters; held out: %.4f nats a token\n", len(t.theta), before)
	start := time.Now()
	for step := 1; time.Since(start).Minutes() < minutes; step++ {
		decay := 1 - time.Since(start).Minutes()/minutes
		if err := t.step(rate * decay); err != nil {
			return err
		}
		if step%100 == 0 {
			l, err := t.loss(t.theta, t.held)
			if err != nil {
				return err
			}
			if fmt.Printf("step %d: held out %.4f\n", step, l); l < bestLoss {
				best, bestLoss = slices.Clone(t.theta), l
			}
		}
	}
	fmt.Printf("held out: %.4f before, %.4f after\n", before, bestLoss)
	return t.write(out, best)
}

// prepare cuts the texts into windows and makes the factors: A of small random values, B zero.
func (t *trainer) prepare(paths []string) error {
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		ids, err := t.m.Tokenize(string(text), false, false)
		if err != nil {
			return err
		}
		for cut := range slices.Chunk(ids, window) {
			if len(cut) == window && i%4 == 3 {
				t.held = append(t.held, cut)
			} else if len(cut) == window {
				t.train = append(t.train, cut)
			}
		}
	}
	if len(t.train) == 0 || len(t.held) == 0 {
		return fmt.Errorf("%d texts; four of some hundred words are needed", len(paths))
	}
	t.held = t.held[:min(len(t.held), 40)]
	base, err := gguf.Parse(gopher.Model())
	if err != nil {
		return err
	}
	for _, name := range targets {
		v, _ := base.Tensor(name)
		out, in := v.Shape[0], v.Shape[1]
		t.shapes = append(t.shapes, [2]int{out, in})
		for range rank * in {
			t.theta = append(t.theta, float32(t.rng.NormFloat64()/math.Sqrt(float64(in))))
		}
		t.theta = append(t.theta, make([]float32, out*rank)...)
	}
	return nil
}

// step moves the factors along a random direction.
func (t *trainer) step(rate float64) error {
	var batch [][]token.ID
	for range windows {
		batch = append(batch, t.train[t.rng.IntN(len(t.train))])
	}
	z := make([]float32, len(t.theta))
	for i := range z {
		z[i] = float32(t.rng.NormFloat64())
	}
	moved := func(by float64) []float32 {
		p := slices.Clone(t.theta)
		for i := range p {
			p[i] += float32(by) * z[i]
		}
		return p
	}
	up, err := t.loss(moved(probe), batch)
	if err != nil {
		return err
	}
	down, err := t.loss(moved(-probe), batch)
	if err != nil {
		return err
	}
	slope := (up - down) / (2 * probe)
	if t.usual == 0 {
		t.usual = slope * slope
	}
	t.usual += 0.05 * (slope*slope - t.usual)
	if t.usual > 0 {
		t.theta = moved(-rate * max(-2, min(2, slope/math.Sqrt(t.usual))))
	}
	return nil
}

// loss returns the nats a token of windows with the factors; nil: without an adapter.
func (t *trainer) loss(theta []float32, all [][]token.ID) (sum float64, err error) {
	if theta != nil {
		if err := t.write(t.file, theta); err != nil {
			return 0, err
		}
		if _, err := t.m.LoadAdapter(grove.AdapterFile{Path: t.file, Name: "a", Scale: 1}); err != nil {
			return 0, err
		}
		defer t.m.UnloadAdapter("a")
	}
	n := 0
	for _, ids := range all {
		at := 0
		err := t.m.Logprobs(context.Background(), ids, func(row grove.LogprobRow) error {
			if at++; at < len(ids) {
				sum -= float64(row.Of(ids[at]))
				n++
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return sum / float64(n), nil
}

// write writes the factors as an adapter of GGUF.
func (t *trainer) write(path string, theta []float32) error {
	metadata := []gguf.KV{
		{Key: "general.type", Value: gguf.Of("adapter")}, {Key: "general.architecture", Value: gguf.Of("llama")},
		{Key: "adapter.type", Value: gguf.Of("lora")}, {Key: "adapter.lora.alpha", Value: gguf.Of(float32(rank))}, {Key: "general.name", Value: gguf.Of("prose")},
	}
	var tensors []tensor.View
	add := func(name string, shape ...int) error {
		v := tensor.View{Name: name, Type: tensor.F32, Shape: shape}
		v.Data = make([]byte, v.Bytes())
		values := theta[:v.Elems()]
		theta = theta[v.Elems():]
		tensors = append(tensors, v)
		return tensor.Pack(tensor.F32, v.Data, values)
	}
	for i, name := range targets {
		if err := add(name+".lora_a", rank, t.shapes[i][1]); err != nil {
			return err
		}
		if err := add(name+".lora_b", t.shapes[i][0], rank); err != nil {
			return err
		}
	}
	return gguf.WriteFile(path, metadata, tensors)
}
