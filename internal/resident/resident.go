// Package resident holds models in memory: the file of one, its tokenizer, weights, threads, engine and adapters, and the models and the
// data beside it that draft for it or steer it.
package resident

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"grove/internal/engine"
	"grove/internal/engine/adapters"
	"grove/internal/engine/speculate"
	"grove/internal/gopher"
	"grove/internal/kv"
	"grove/internal/machine"
	"grove/internal/mmap"
	"grove/internal/model"
	"grove/internal/options"
	"grove/internal/par"
	"grove/internal/text/chat"
	"grove/internal/text/tokenizer"
	"grove/internal/verify"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/tensor"
	"grove/method"
	"grove/method/datastore"
)

// OptionError reports options that are invalid, by themselves or for the model that was opened.
type OptionError = options.Error

// Options says how a model is brought into memory, and what is beside it. The fields are those of the same names of package grove, which
// has checked them; numbers have no defaults here.
type Options struct {
	Context   int // 0: the model's own, as memory allows
	CacheType string
	Threads   int
	Parallel  int
	Chunk     int // 0: the engine's own
	NoRepack  bool
	Queue     int
	Memory    uint64 // 0: the machine's
	Progress  func(done, all int64)
	Eager     bool
	Forget    bool

	DraftMemory uint64 // bytes that drafting may take besides weights; 0: any

	Adapters     []adapters.File
	Draft        string
	DraftThreads int
	DraftVocab   int
	DraftHead    string
	SkipAdapters string // a file of what stands for layers that texts substitute; "": none
	Heads        string // a file of heads; "": the one beside the model, if any; [NoHeads]
	Middle       string
	Guides       []string
	Judge        string
	Datastore    string
	Prefixes     engine.Prefixes
}

// Model is a model in memory. Its methods are safe for concurrent use; the fields do not change while it is open.
type Model struct {
	File      *gguf.File
	Pool      *par.Pool
	Model     model.Model
	Engine    *engine.Engine
	Tokenizer *tokenizer.Tokenizer
	Templates *chat.Templates
	Adapters  adapters.Registry

	Draft    *Model           // shares the pool, or has one of its own; nil: none
	VocabMap *method.VocabMap // relates the draft model's tokens to the model's
	Middle   *Model           // shares the pool; nil: none
	Guides   []Guide          // models that steer answers; they share the pool
	Modules  []*Model         // draft modules, which share the pool and have no tokenizer; one of the model's own file has no file
	Judge    *verify.Head     // of the rule judge; nil: none

	Datastore *datastore.Store // of the model's tokens; nil: none

	acceptHead  *method.AcceptanceHead // of the draft model; nil: none
	substitutes substitutes
	options     Options
	draftVocab  int
	drafting    speculate.MemorySize // how large it is
	methods     draftings
	spelling    words

	accelerates int // of a module that adds to the first layers of the model: the number of what it adds

	life life
}

// life is what a model keeps from [Open] to [Model.Close].
type life struct {
	asked   int    // the context that was asked for; 0: none
	counted uint64 // bytes that it adds to taken
	once    sync.Once
	err     error // of Close
}

// taken is the bytes of weights and caches of the models that are open in this process.
var taken atomic.Uint64

// Open brings the model of a file, which belongs to it from now on, into memory. Errors: an [*OptionError]; *model.LoadError or the
// tokenizer's for a model that cannot be run; those of the files of what is beside it.
func Open(f *gguf.File, o Options) (*Model, error) {
	m := &Model{File: f, Pool: par.New(o.Threads), options: o}
	m.life.asked = o.Context
	err := mmap.Catch(func() error {
		if err := o.checkFiles(); err != nil {
			return err
		}
		if err := m.read(o); err != nil {
			return err
		}
		return m.start(o)
	})
	if err != nil {
		_ = m.Close() // its error would only hide the cause
		return nil, err
	}
	m.life.counted = m.bytes()
	taken.Add(m.life.counted)
	runtime.GC()                   // what loading left behind is as large as the vocabulary
	if !o.NoRepack && !crowds(f) { // else the file is read whole only for the first session
		f.Prepare(m.Pool.Idle())
	}
	return m, nil
}

// read reads what a model has of its own: weights, tokenizer, templates.
func (m *Model) read(o Options) (err error) {
	if _, err = room(o.Memory, m.File.LayerBytes()); err != nil { // before any of it is read
		return &OptionError{Err: err}
	}
	m.Model, err = model.Open(m.File, m.Pool, model.Options{NoRepack: o.NoRepack || crowds(m.File), Context: cmp.Or(o.Context, advised(m.File)), Progress: o.Progress})
	if err == nil {
		m.Tokenizer, err = tokenizer.FromGGUF(m.File)
	}
	if err == nil {
		m.Templates, err = chat.FromGGUF(m.File, m.Tokenizer)
	}
	return gguf.InFile(append(m.File.Paths(), "")[0], err)
}

// run makes the engine of a model that was read.
func (m *Model) run(o Options, drafting speculate.MemorySize, draftRoom int) error {
	limit, err := room(o.Memory, m.Model.Info().Bytes)
	if err == nil {
		c := o.engine(m.Model.Info(), drafting, draftRoom, limit)
		c.Substitutes = m.substitutes.layers
		m.Engine, err = engine.New(m.Model, m.Pool, c)
	}
	if err != nil {
		return &OptionError{Err: err}
	}
	return nil
}

// engine returns what the engine of a model has room for.
func (o Options) engine(info *model.Info, drafting speculate.MemorySize, draftRoom int, limit uint64) engine.Config {
	cacheType, _ := ParseCacheType(o.CacheType) // which has been checked
	if o.CacheType == "" && (info.Encoder || info.Full) {
		cacheType = tensor.F32 // keys live for one step, so that their memory is no matter
	}
	return engine.Config{
		Context: o.Context, CacheType: cacheType, Seqs: o.Parallel, Queue: o.Queue, Chunk: o.Chunk, Memory: limit,
		Drafts: drafting.Drafts, Drafting: drafting.Texts, DraftBytes: draftRoom, Prefixes: o.Prefixes,
	}
}

// ParseCacheType returns the type of cache that a name stands for; "" is F16.
func ParseCacheType(name string) (tensor.Type, error) {
	switch strings.ToLower(name) {
	case "f32":
		return tensor.F32, nil
	case "f16", "":
		return tensor.F16, nil
	case "q8_0":
		return tensor.Q8_0, nil
	}
	return 0, fmt.Errorf("grove: cache type %q is not known; f32, f16 and q8_0 are", name)
}

// OpenFile opens the file of a model: a GGUF file, a Hugging Face folder or, where no file has that name, a model of package gopher by
// its name. It loads no weights.
func OpenFile(path string) (*gguf.File, error) {
	if data := gopher.Named(path); data != nil {
		if _, err := os.Stat(path); err != nil {
			return gguf.Parse(data)
		}
	}
	return hf.OpenModel(path)
}

// room returns what a limit of memory leaves for the cache beside weights of n bytes.
func room(limit uint64, n int) (uint64, error) {
	switch {
	case limit == 0:
		return machine.Memory(), nil
	case uint64(n) >= limit:
		return 0, fmt.Errorf("grove: the weights take %.1f MiB and %.1f MiB may be used: %w", float64(n)/(1<<20), float64(limit)/(1<<20), kv.ErrMemory)
	}
	return limit - uint64(n), nil
}

// crowds reports whether a packed copy of the weights would not leave room in the machine's memory; the system can drop the file's own pages and read them again.
func crowds(f *gguf.File) bool {
	memory := float64(machine.Memory())
	return memory > 0 && float64(f.Size()) > 0.9*memory
}

// bytes returns the memory that the weights and caches of the model and of those beside it may take.
func (m *Model) bytes() uint64 {
	n := uint64(m.Model.Info().Bytes)
	if m.Engine != nil {
		n += uint64(m.Engine.CacheBytes())
	}
	for _, d := range m.others() {
		n += d.bytes()
	}
	return n
}

// Name returns the name of the model in errors.
func (m *Model) Name() string {
	if n := m.Model.Info().Name; n != "" {
		return n
	}
	return "a model of architecture " + m.Model.Info().Arch
}

// Files returns the files, and folders of files, that the model, its adapters and what is beside it were opened from.
func (m *Model) Files() []string {
	all := m.File.Paths()
	for _, a := range m.Adapters.All() {
		all = append(all, a.Path)
	}
	for _, d := range m.others() {
		if d.File != nil {
			all = append(all, d.Files()...)
		}
	}
	return append(all, m.Datastore.Paths()...)
}

// Close ends what is computed, within a layer's time, keeps what drafting has learned, stops the threads and closes the files. A further
// Close returns what the first returned.
func (m *Model) Close() error {
	m.life.once.Do(func() {
		taken.Add(-m.life.counted)
		if m.Engine != nil {
			m.Engine.Close()
		}
		m.life.err = errors.Join(m.closeBeside(), m.Datastore.Close())
		m.methods.save()
		m.Pool.Close()
		m.life.err = errors.Join(m.life.err, m.File.Close())
	})
	return m.life.err
}
