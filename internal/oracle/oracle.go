// Package oracle computes small models in float64, as their papers describe them. Tests compare architectures
// with it where no other reference exists. It reads a GGUF file's tensors and hyperparameters and shares no code
// with the packages that it checks. It computes a text as a whole, without a cache.
package oracle

import (
	"fmt"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Model is a model file whose weights are converted to float64 when they are first used. One goroutine at a time may use it.
type Model struct {
	Long   bool   // rotates by the long ones of two sets of factors
	Source []int  // what an encoder-decoder has read
	Prefix int    // tokens at the beginning of a decoder's text that see each other
	Full   []bool // layers of a decoder in which all tokens see each other; nil: none
	Half   bool   // looks GELU up in a table of half floats, as llama.cpp does; of gemma3n and gemma4

	Canvas      int         // tokens at the end of a text that are a canvas; of diffusion-gemma
	Prior       [][]float64 // logits of these that a pass before gave; nil: none
	Temperature float64     // of the prior

	predictor *predictor // whose layer is computed in place of the model's own; nil: none

	file    *gguf.File
	arch    string
	tensors map[string]Weights // that were used
}

// forwards are the architectures. Each returns the logits of every token of a text, or its final stream where the
// model is an encoder.
var forwards = map[string]func(m *Model, ids []int) [][]float64{
	"bert":      (*Model).bert,
	"blockffn":  (*Model).blockFFN,
	"unixcoder": (*Model).bert,
	"codegen2":  (*Model).codeGen2,
	"deepseek2": (*Model).deepseek2,

	"diffusion-gemma": (*Model).gemma4,

	"gemma":    (*Model).decoder,
	"gemma2":   (*Model).decoder,
	"gemma3n":  (*Model).gemma3n,
	"gemma4":   (*Model).gemma4,
	"gpt-oss":  (*Model).gptOSS,
	"llama4":   (*Model).llama4,
	"mimo2":    (*Model).windowedMixture,
	"mistral4": (*Model).deepseek2,
	"olmo2":    (*Model).decoder,
	"phi3":     (*Model).decoder,
	"phimoe":   (*Model).phiMoE,
	"qwen2":    (*Model).decoder,
	"qwen3":    (*Model).decoder,
	"step3":    (*Model).step3,
	"step35":   (*Model).windowedMixture,

	"eurobert":        (*Model).normedBefore,
	"gemma-embedding": (*Model).normedBefore,
	"jina-bert-v2":    (*Model).normedBehind,
	"jina-bert-v3":    (*Model).normedBehind,
	"modern-bert":     (*Model).normedBefore,
	"neo-bert":        (*Model).normedBefore,
	"nomic-bert":      (*Model).normedBehind,
	"nomic-bert-moe":  (*Model).normedBehind,
	"t5":              (*Model).t5,
	"t5gemma":         (*Model).t5Gemma,
}

// New makes the oracle of a file. It returns an error for an architecture that has no entry.
func New(f *gguf.File) (*Model, error) {
	arch, _, err := f.String("general.architecture")
	if err != nil {
		return nil, err
	}
	if forwards[arch] == nil {
		return nil, fmt.Errorf("oracle: architecture %q is not known", arch)
	}
	return Of(f), nil
}

// Of returns the hyperparameters and the tensors of any file; Forward computes those that New takes.
func Of(f *gguf.File) *Model {
	arch, _, _ := f.String("general.architecture")
	return &Model{file: f, arch: arch, tensors: map[string]Weights{}}
}

// Forward computes a text and returns for each token its logits, or for an encoder its final stream. It
// panics where the file lacks a tensor or a hyperparameter: tests make their files.
func (m *Model) Forward(ids []int) [][]float64 { return forwards[m.arch](m, ids) }

// Weights is a tensor in float64: rows of in values, its last dimension.
type Weights struct {
	In int
	V  []float64
}

// Tensor returns a tensor, which callers do not change.
func (m *Model) Tensor(format string, args ...any) Weights {
	name := fmt.Sprintf(format, args...)
	if w, ok := m.tensors[name]; ok {
		return w
	}
	view, ok := m.file.Tensor(name)
	if !ok {
		panic("oracle: no tensor " + name)
	}
	f := make([]float32, view.Elems())
	if err := tensor.Unpack(view.Type, f, view.Data); err != nil {
		panic(err)
	}
	w := Weights{In: view.Shape[len(view.Shape)-1], V: make([]float64, len(f))}
	for i, x := range f {
		w.V[i] = float64(x)
	}
	m.tensors[name] = w
	return w
}

// Has reports whether the file has a tensor.
func (m *Model) Has(format string, args ...any) bool {
	_, ok := m.file.Tensor(fmt.Sprintf(format, args...))
	return ok
}

// Row returns row i of a matrix, or of a stack seen as one tall matrix.
func (w Weights) Row(i int) []float64 { return w.V[i*w.In : (i+1)*w.In] }

// rows returns n rows from row i on as a matrix of their own.
func (w Weights) rows(i, n int) Weights { return Weights{w.In, w.V[i*w.In : (i+n)*w.In]} }

// Mul returns the product of the matrix and a vector.
func (w Weights) Mul(x []float64) []float64 {
	if len(x) != w.In {
		panic(fmt.Sprintf("oracle: a product of %d inputs and %d values", w.In, len(x)))
	}
	out := make([]float64, len(w.V)/w.In)
	for o := range out {
		out[o] = dot(w.Row(o), x)
	}
	return out
}

// Count returns the whole number ARCH.name, which the file has.
func (m *Model) Count(name string) int {
	n, ok, err := m.file.Uint(m.arch + "." + name)
	if err != nil || !ok {
		panic(fmt.Sprintf("oracle: %s.%s: %v", m.arch, name, err))
	}
	return n
}

// counts returns an array of whole numbers, one for each layer.
func (m *Model) counts(name string) []int {
	n, ok, err := m.file.Ints(m.arch + "." + name)
	if err != nil || !ok {
		panic(fmt.Sprintf("oracle: %s.%s: %v", m.arch, name, err))
	}
	return n
}

// bools returns an array of bools, one for each layer.
func (m *Model) bools(name string) []bool {
	v, _ := m.file.Lookup(m.arch + "." + name)
	return v.Any().([]bool)
}

// CountOr returns the whole number ARCH.name, or another where the file has none.
func (m *Model) CountOr(name string, other int) int {
	if _, ok := m.file.Lookup(m.arch + "." + name); ok {
		return m.Count(name)
	}
	return other
}

// array returns an array of bools or numbers.
func (m *Model) array(name string) ([]int, bool) {
	v, ok := m.file.Lookup(m.arch + "." + name)
	if !ok {
		return nil, false
	}
	var out []int
	switch x := v.Any().(type) {
	case []bool:
		for _, b := range x {
			out = append(out, map[bool]int{true: 1}[b])
		}
	case []uint32:
		for _, n := range x {
			out = append(out, int(n))
		}
	case []int32:
		for _, n := range x {
			out = append(out, int(n))
		}
	}
	return out, out != nil
}

// countOf returns a number that may be given for each layer.
func (m *Model) countOf(name string, l int) int {
	if all, ok := m.array(name); ok {
		return all[l]
	}
	return m.Count(name)
}

// periodOr returns the period of windows, where the file has one instead of an array.
func (m *Model) periodOr(other int) int {
	if _, ok := m.array("attention.sliding_window_pattern"); ok {
		return other
	}
	return m.CountOr("attention.sliding_window_pattern", other)
}

func (m *Model) floats(name string) ([]float64, bool) {
	values, ok, err := m.file.Floats(m.arch + "." + name)
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out, ok && err == nil
}

// FloatOr returns the number ARCH.name, or another where the file has none.
func (m *Model) FloatOr(name string, other float64) float64 {
	if v, ok, err := m.file.Float(m.arch + "." + name); ok && err == nil {
		return v
	}
	return other
}

// BoolOr returns the truth value ARCH.name, or another where the file has none.
func (m *Model) BoolOr(name string, other bool) bool {
	if v, ok, err := m.file.Bool(m.arch + "." + name); ok && err == nil {
		return v
	}
	return other
}
