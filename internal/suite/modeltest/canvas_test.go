package modeltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/oracle"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// canvasSpec is a model whose canvases begin as random tokens: six layers of eight have a window that the texts here outgrow.
var canvasSpec = Spec{Arch: "diffusion-gemma", Window: 30}

// canvasTemperature is that of the priors here.
const canvasTemperature = 0.7

// randomCanvas is a prompt, a canvas and, for each of its places, logits of a pass before.
type randomCanvas struct {
	prompt, canvas []token.ID
	priors         []forest.Prior
}

func newRandomCanvas(rng *rand.Rand, prompt, canvas, vocabulary int) (c randomCanvas) {
	c.prompt, c.canvas = randomIDs(rng, prompt, vocabulary), randomIDs(rng, canvas, vocabulary)
	for range canvas {
		logits := make([]float32, vocabulary)
		for i := range logits {
			logits[i] = float32(3 * rng.NormFloat64())
		}
		c.priors = append(c.priors, forest.Prior{Logits: logits, Temperature: canvasTemperature})
	}
	return c
}

// addCanvas adds the rows of a canvas behind a row of a sequence.
func (r *Runner) addCanvas(s forest.Seq, parent forest.Node, block int, c *randomCanvas, priors bool) {
	r.tb.Helper()
	for i, id := range c.canvas {
		row := forest.Row{Seq: s, Parent: parent, ID: id, Block: block, Want: logits}
		if priors {
			row.Prior = &c.priors[i]
		}
		parent = r.Add(row)
	}
}

// runCanvas reads the prompt in steps of chunk rows and runs the canvas behind it.
func (r *Runner) runCanvas(c *randomCanvas, chunk int, priors bool) []Bits {
	r.tb.Helper()
	s := r.NewSeq("")
	defer r.Close(s)
	r.Prefill(s, c.prompt, chunk)
	r.addCanvas(s, forest.Trunk, 1, c, priors)
	r.Forward()
	return r.take(len(c.canvas))
}

// TestRandomCanvas compares the logits of a canvas with the oracle, without a pass before and behind one, of prompts shorter and longer than the window.
func TestRandomCanvas(t *testing.T) {
	file := canvasSpec.File(t)
	r := New(t, file, Config{CacheType: tensor.F32})
	for _, prompt := range []int{1, 20, 75} {
		for _, priors := range []bool{false, true} {
			t.Run(fmt.Sprint(prompt, priors), func(t *testing.T) {
				c := newRandomCanvas(rand.New(rand.NewPCG(5, uint64(prompt))), prompt, 40, r.Model.Info().Vocabulary)
				o, err := oracle.New(file)
				if err != nil {
					t.Fatal(err)
				}
				o.Canvas, o.Temperature = len(c.canvas), canvasTemperature
				for i := 0; i < len(c.priors) && priors; i++ {
					row := make([]float64, len(c.priors[i].Logits))
					for v, l := range c.priors[i].Logits {
						row[v] = float64(l)
					}
					o.Prior = append(o.Prior, row)
				}
				var ids []int
				for _, id := range slices.Concat(c.prompt, c.canvas) {
					ids = append(ids, int(id))
				}
				want, got := o.Forward(ids)[prompt:], r.runCanvas(&c, 16, priors)
				var worst, scale float64
				for i, row := range want {
					for v, x := range row {
						worst, scale = max(worst, math.Abs(x-float64(got[i][v]))), max(scale, math.Abs(x))
					}
				}
				t.Logf("largest difference %.2g of largest value %.3g", worst, scale)
				if !(worst <= 1e-4*scale) {
					t.Errorf("values differ by %g; the largest is %g", worst, scale)
				}
			})
		}
	}
}

// TestRandomCanvasBits expects the bits of a canvas alone, among rows of prompts and other canvases, with the prompt in one step or many, with any threads,
// weights and caches.
func TestRandomCanvasBits(t *testing.T) {
	for _, wt := range []tensor.Type{tensor.F32, tensor.Q8_0} {
		for _, cache := range []tensor.Type{tensor.F32, tensor.Q8_0} {
			t.Run(fmt.Sprintf("%v-cache-%v", wt, cache), func(t *testing.T) {
				spec := canvasSpec
				spec.Type = wt
				file := spec.File(t)
				one := New(t, file, Config{CacheType: cache, Threads: 1})
				rng := rand.New(rand.NewPCG(8, 9))
				a := newRandomCanvas(rng, 70, 33, one.Model.Info().Vocabulary)
				b := newRandomCanvas(rng, 9, 24, one.Model.Info().Vocabulary)
				want := one.runCanvas(&a, 1, true)
				for name, r := range map[string]*Runner{"2 threads": New(t, file, Config{CacheType: cache, Threads: 2}), "files' weights": New(t, file, Config{CacheType: cache, NoRepack: true})} {
					if err := equalBits(r.runCanvas(&a, 64, true), want); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				r := New(t, file, Config{CacheType: cache, Threads: 3})
				first, second := r.NewSeq(""), r.NewSeq("")
				r.Prefill(first, a.prompt, 31)
				r.Add(forest.Row{Seq: second, ID: b.prompt[0], Want: logits})
				r.addCanvas(first, forest.Trunk, 1, &a, true)
				r.addCanvas(first, forest.Trunk, 2, &b, false)
				r.addCanvas(second, r.Exec.Step.Rows()[0].Node, 1, &b, true)
				r.Forward()
				if err := equalBits(r.take(1 + len(a.canvas))[1:], want); err != nil {
					t.Errorf("among others: %v", err)
				}
			})
		}
	}
}

func equalBits(got, want []Bits) error {
	for i := range want {
		if err := got[i].Diff(want[i]); err != nil {
			return fmt.Errorf("place %d: %w", i, err)
		}
	}
	return nil
}

// TestRandomCanvasFiles: files that contradict themselves are refused by name.
func TestRandomCanvasFiles(t *testing.T) {
	for _, c := range []struct {
		key   string
		value gguf.Value
		want  string
	}{
		{"diffusion.canvas_length", gguf.Of(uint32(0)), "diffusion.canvas_length is 0; it must be 1 to 4096"},
		{"diffusion.canvas_length", gguf.Of(uint32(4097)), "diffusion.canvas_length is 4097; it must be 1 to 4096"},
		{"diffusion.canvas_length", gguf.Of(float32(8)), "diffusion.canvas_length"},
		{"diffusion.canvas_length", gguf.Value{}, "diffusion.canvas_length is missing"},
		{"diffusion.eb_max_steps", gguf.Of(uint32(0)), "diffusion.eb_max_steps is 0"},
		{"diffusion.eb_t_max", gguf.Of(float32(0.3)), "diffusion.eb_t_max is 0.3; it must be diffusion.eb_t_min (0.4) or more"},
		{"diffusion.eb_t_min", gguf.Of(float32(0)), "diffusion.eb_t_min is 0"},
		{"diffusion.eb_t_min", gguf.Of(float32(math.NaN())), "diffusion.eb_t_min is NaN"},
		{"diffusion.eb_entropy_bound", gguf.Of(float32(math.Inf(1))), "diffusion.eb_entropy_bound is +Inf"},
		{"diffusion.eb_entropy_bound", gguf.Of(float32(-1)), "diffusion.eb_entropy_bound is -1"},
		{"diffusion.eb_confidence_threshold", gguf.Of(float32(math.NaN())), "diffusion.eb_confidence_threshold is NaN"},
		{"diffusion.eb_stability_threshold", gguf.Of(int32(-1)), "diffusion.eb_stability_threshold"},
		{"diffusion-gemma.attention.causal", gguf.Of(true), "diffusion-gemma.attention.causal is true"},
		{"diffusion-gemma.attention.shared_kv_layers", gguf.Of(uint32(2)), "shared_kv_layers is 2; it must be 0"},
		{"diffusion-gemma.embedding_length_per_layer_input", gguf.Of(uint32(32)), "embedding_length_per_layer_input is 32; it must be 0"},
	} {
		m := changedCanvas(t)
		m.metadata = slices.DeleteFunc(m.metadata, func(kv gguf.KV) bool { return kv.Key == c.key })
		if c.want != "diffusion.canvas_length is missing" {
			m.metadata = append(m.metadata, gguf.KV{Key: c.key, Value: c.value})
		}
		if err := openCanvas(t, &m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	for _, name := range []string{"self_cond_gate.weight", "self_cond_down.weight", "self_cond_pre_norm.weight", "blk.2.enc_layer_output_scale.weight", "blk.2.layer_output_scale.weight"} {
		m := changedCanvas(t)
		m.tensors = slices.DeleteFunc(m.tensors, func(v tensor.View) bool { return v.Name == name })
		if err := openCanvas(t, &m); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error %v", name, err)
		}
	}
	if m := changedCanvas(t); openCanvas(t, &m) != nil {
		t.Error("the file as it is cannot be opened")
	}
}

func changedCanvas(t *testing.T) (c changed) {
	c.metadata, c.tensors = canvasSpec.Parts(t)
	return c
}

func openCanvas(t *testing.T, c *changed) error {
	pool := par.New(1)
	defer pool.Close()
	_, err := model.Open(c.file(t), pool, model.Options{})
	return err
}

// TestPriorRefused: a prior of another vocabulary, of a temperature that is none, or of a row of no block.
func TestPriorRefused(t *testing.T) {
	r := New(t, canvasSpec.File(t), Config{CacheType: tensor.F32})
	vocabulary := r.Model.Info().Vocabulary
	s := r.NewSeq("")
	row := func(p forest.Prior, block int) error {
		defer r.Exec.Step.Abort()
		if _, err := r.Exec.Step.Add(forest.Row{Seq: s, Block: block, Prior: &p, Want: logits}); err != nil {
			return err
		}
		return r.Exec.Run(t.Context(), r.Model.Forward)
	}
	for want, err := range map[string]error{
		"the prior at index 0 has 3 logits":               row(forest.Prior{Logits: make([]float32, 3), Temperature: 1}, 1),
		"a temperature of 0; it needs":                    row(forest.Prior{Logits: make([]float32, vocabulary)}, 1),
		"a temperature of NaN; it needs":                  row(forest.Prior{Logits: make([]float32, vocabulary), Temperature: float32(math.NaN())}, 1),
		"a row with a prior is resumed or of no block; a": row(forest.Prior{Logits: make([]float32, vocabulary), Temperature: 1}, 0),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
