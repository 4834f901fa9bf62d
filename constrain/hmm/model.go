package hmm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// ErrFile means that a file holds no hidden Markov model, or a damaged one.
var ErrFile = errors.New("not a hidden Markov model that can be used")

// The bounds of a model.
const (
	MaxStates = 1 << 12
	maxCells  = 1 << 29 // emissions
)

// Model is a hidden Markov model of token sequences: a state is drawn, and emits a token; then the next state is drawn.
// It is immutable and safe for concurrent use.
type Model struct {
	states, vocab int
	start         []float32 // by state
	move          []float32 // by state, of each next one
	emit          []float32 // by token, of each state
}

// New returns the model of the given probabilities, which it keeps: start by state, move by state and next state, emit
// by token and state. Each state's are not negative and sum to 1, within a thousandth.
func New(start, move, emit []float32) (*Model, error) {
	n := len(start)
	if n == 0 || n > MaxStates {
		return nil, fmt.Errorf("hmm: %d states; from 1 to %d: %w", n, MaxStates, ErrFile)
	}
	m := &Model{states: n, vocab: len(emit) / n, start: start, move: move, emit: emit}
	if len(move) != n*n || len(emit) == 0 || len(emit)%n != 0 || len(emit) > maxCells {
		return nil, fmt.Errorf("hmm: %d states with %d moves and %d emissions: %w", n, len(move), len(emit), ErrFile)
	}
	sums := make([]float64, n)
	if err := checkSum("start", sum(start)); err != nil {
		return nil, err
	}
	for z := range n {
		if err := checkSum(fmt.Sprintf("moves of state %d", z), sum(move[z*n:(z+1)*n])); err != nil {
			return nil, err
		}
	}
	for i, p := range emit {
		sums[i%n] += float64(p)
		if !(p >= 0) {
			return nil, fmt.Errorf("hmm: token %d: an emission is %v: %w", i/n, p, ErrFile)
		}
	}
	for z, s := range sums {
		if err := checkSum(fmt.Sprintf("emissions of state %d", z), s); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// sum returns the sum of probabilities, or NaN where one is none.
func sum(p []float32) (s float64) {
	for _, v := range p {
		if !(v >= 0) {
			return math.NaN()
		}
		s += float64(v)
	}
	return s
}

func checkSum(what string, s float64) error {
	if !(math.Abs(s-1) < 1e-3) {
		return fmt.Errorf("hmm: %s sum to %v; probabilities sum to 1: %w", what, s, ErrFile)
	}
	return nil
}

// States returns the number of hidden states.
func (m *Model) States() int { return m.states }

// Vocabulary returns the number of tokens.
func (m *Model) Vocabulary() int { return m.vocab }

// architecture is what a file says that it holds.
const architecture = "hmm"

// Write writes the model as a GGUF file: tensors start, move and emit in float32, and the name of the language model.
func (m *Model) Write(w io.Writer, of string) error {
	n := uint32(m.states)
	view := func(name string, p []float32, shape ...int) tensor.View {
		data := make([]byte, 0, 4*len(p))
		for _, v := range p {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		return tensor.View{Name: name, Type: tensor.F32, Shape: shape, Data: data}
	}
	return gguf.Write(w, []gguf.KV{
		{Key: "general.architecture", Value: gguf.Of(architecture)},
		{Key: "general.name", Value: gguf.Of("a hidden Markov model of " + of)},
		{Key: "hmm.states", Value: gguf.Of(n)},
	}, []tensor.View{
		view("start", m.start, m.states),
		view("move", m.move, m.states, m.states),
		view("emit", m.emit, m.vocab, m.states),
	})
}

// Parse reads the bytes of a file of [Model.Write]. Errors are [ErrFile], or those of package gguf.
func Parse(data []byte) (*Model, error) {
	f, err := gguf.Parse(data)
	if err != nil {
		return nil, err
	}
	return Read(f)
}

// Open reads the file of [Model.Write] at a path. Errors are those of the file, [ErrFile], or those of package gguf.
func Open(path string) (*Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f)
}

// Read is [Parse] for a file that is open; the model keeps nothing of it.
func Read(f *gguf.File) (*Model, error) {
	if kind, _, err := f.String("general.architecture"); err != nil || kind != architecture {
		return nil, fmt.Errorf("hmm: the architecture is %.40q, not %q: %w", kind, architecture, ErrFile)
	}
	read := func(name string) []float32 {
		t, ok := f.Tensor(name)
		if !ok || t.Type != tensor.F32 {
			return nil
		}
		p := make([]float32, len(t.Data)/4)
		for i := range p {
			p[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		}
		return p
	}
	return New(read("start"), read("move"), read("emit"))
}
