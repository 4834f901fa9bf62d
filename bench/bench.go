// Package bench measures: steps of a model against what the machine can do, kernels by themselves, and
// the cost of steps. Figures of one run are taken in turns, so that a machine that changes its speed
// changes all of them, and are given as medians with their spread.
package bench

import (
	"fmt"
	"path/filepath"
	"slices"

	"grove"
	"grove/engine"
	"grove/internal/par"
	"grove/model"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// Model is a model opened for measuring.
type Model struct {
	Path   string
	file   *gguf.File
	pool   *par.Pool
	model  model.Model
	engine *engine.Engine
}

// Options says how a model is opened for measuring.
type Options struct {
	Threads   int // 0: all
	Context   int // indices that steps may stand at
	CacheType tensor.Type
	Rows      int // of the largest step
	NoRepack  bool
}

// Open opens a model file.
func Open(path string, o Options) (*Model, error) {
	f, err := grove.OpenFile(path)
	if err != nil {
		return nil, err
	}
	return openFile(path, f, o)
}

// OpenBytes opens a model file that is in memory, under a name.
func OpenBytes(name string, data []byte, o Options) (*Model, error) {
	f, err := gguf.Parse(data)
	if err != nil {
		return nil, err
	}
	return openFile(name, f, o)
}

func openFile(path string, f *gguf.File, o Options) (*Model, error) {
	if o.Threads == 0 {
		o.Threads = par.Threads()
	}
	m := &Model{Path: path, file: f, pool: par.New(o.Threads)}
	if err := m.load(o); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Model) load(o Options) (err error) {
	if m.model, err = model.Open(m.file, m.pool, model.Options{NoRepack: o.NoRepack}); err != nil {
		return err
	}
	m.engine, err = engine.New(m.model, m.pool, engine.Config{Context: o.Context, CacheType: o.CacheType, Chunk: o.Rows})
	if err != nil {
		return &grove.OptionError{Err: err}
	}
	return nil
}

// Close stops the model's threads and unmaps its file.
func (m *Model) Close() error {
	m.pool.Close()
	return m.file.Close()
}

// Title describes the model in a few words.
func (m *Model) Title() string {
	i := m.model.Info()
	return fmt.Sprintf("%s, %s %v, %.2f GB, %.2f G weights, %d threads", filepath.Base(m.Path), i.Arch, i.Type,
		float64(i.Bytes)/1e9, float64(i.Params)/1e9, m.pool.Threads())
}

// sample is the figures of one measurement, in seconds.
type sample []float64

// median returns the middle figure.
func (s sample) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// spread returns half the distance between the extremes, as a share of the median.
func (s sample) spread() float64 {
	if len(s) == 0 {
		return 0
	}
	return (slices.Max(s) - slices.Min(s)) / 2 / s.median()
}
