// Package bench measures the steps of a model and single kernels against the limits of the machine, methods against plain
// decoding, and how well models predict a text. A run measures its figures in turns, so that a change of the machine's speed
// changes all of them. Figures are medians with their spread.
package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"grove"
	"grove/internal/engine"
	"grove/internal/model"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Model is a model opened for measuring.
type Model struct {
	Path   string
	file   *gguf.File
	pool   *par.Pool
	model  model.Model
	config engine.Config
	engine *engine.Engine
}

// Options says how a model is opened for measuring.
type Options struct {
	Threads   int // 0: all
	Context   int // tokens of a text; 0: the model's own, 4096 at most
	CacheType tensor.Type
	Rows      int // of the largest step
	NoRepack  bool

	Progress func(done, all int64) // is told the bytes of weights that are loaded, as of [grove.Options]
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
	if m.model, err = model.Open(m.file, m.pool, model.Options{NoRepack: o.NoRepack, Progress: o.Progress}); err != nil {
		return err
	}
	m.config = engine.Config{Context: o.Context, CacheType: o.CacheType, Chunk: o.Rows}
	m.engine, err = engine.New(m.model, m.pool, m.config)
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

// Progress gets the number of parts of a measurement that are done, and of all parts; nil: it is not reported.
type Progress func(done, all int)

func (p Progress) show(done, all int) {
	if p != nil {
		p(done, all)
	}
}

// WriteLines writes values as JSON, one a line.
func WriteLines[T any](w io.Writer, lines []T) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, line := range lines {
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// Title describes the model in one line.
func (m *Model) Title() string {
	i := m.model.Info()
	return fmt.Sprintf("%s, %s %v, %.2f GB, %.2f G weights, %d threads", filepath.Base(m.Path), i.Arch, i.Type,
		float64(i.Bytes)/1e9, float64(i.Params)/1e9, m.pool.Threads())
}
