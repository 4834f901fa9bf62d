// Package model turns the tensors of a file into a forward pass. An architecture is one file of
// package arch: it registers a name and a function that opens it, and its Forward reads like the paper.
package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/par"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Info describes an open model.
type Info struct {
	Arch       string
	Name       string // general.name of the file
	Layers     []kv.Layer
	Width      int // of the residual stream
	Vocabulary int
	Context    int // indices that the model was trained for, as it was opened
	Bytes      int // of weights in memory

	// Identity names all that decides results: the numerics version, the hyperparameters, the rotary settings, and every
	// byte of the weights. It waits for [gguf.File.Digest]. Where weights are read from the mapped file, it returns an error once that was written.
	Identity func() (string, error)
	// SampleDigest names the hyperparameters, and the weights by the first bytes of each tensor: enough for what decides no
	// result, such as what steps cost.
	SampleDigest string

	// Check, unless it is nil, must be called after a step: weights are read from the mapped file, and Check
	// returns an error where the file has shrunk.
	Check func() error
	// Encoder reports that the tokens of a text see each other, all in one step, and that the model gives
	// embeddings and generates no text.
	Encoder bool
	Full    bool    // the model generates text, and the tokens of a text that is embedded see each other
	Source  *Source // of an encoder-decoder; nil: the model reads its own text alone
	// Diffusion is of a model that fills canvases, with masks or without; nil: it generates text by the next token.
	Diffusion *Diffusion
	Pooling   Pooling // how a text's embedding is made of its tokens' states, as the file says
	Dense     []Dense // layers behind the pooling
	Output    int     // values of an embedding; 0: Width
	Rank      *Rank   // the head of a reranker; nil: none
	Exits     []Exit  // those that have a norm or a head of their own, ascending
	// Predictors are the modules of the file that predict further tokens, in the order in which they follow each other.
	Predictors []Predictor
	LeftOut    string         // a predictor that the file has in part, and why it is left out
	Module     *forest.Module // of a draft module; nil: it is a model of its own
	Adds       *Accelerated   // what such a module adds to the first layers of the target's rows, where it consists of that; nil: nothing

	// AttentionShare is about how much of a layer's weights its attention part has, of a model that runs the two parts of a layer apart; 0: rows run
	// layers as a whole ([forest.Row.SkipAttention]).
	AttentionShare float64

	Params          int         // weights of all matrices
	Type            tensor.Type // of most weights
	IdleBytes       int         // of Bytes, those that no step multiplies: a table that is looked up, and predictors
	IdleParams      int         // of Params, the weights of these
	Experts         int         // of a layer; 0: none
	ExpertsPerToken int         // of these, for each row; where rows choose as many as they like, about as many
	ExpertBytes     int         // of one expert of one layer
	Mixtures        int         // layers with experts

	adaptable map[string]adaptable // tensors that adapters can add to
}

// Embeds reports that the model gives embeddings or ranks texts, and generates none: it is an encoder, or its file says how a text's states
// become one vector.
func (i *Info) Embeds() bool { return i.Encoder || i.Pooling > PoolNone }

// Whole reports that all tokens of a text see each other, so that it is one step.
func (i *Info) Whole() bool {
	return i.Encoder || i.Diffusion != nil && i.Diffusion.Block == 0 && i.Diffusion.Renoise == nil
}

// Source is how an encoder-decoder reads its source, the text whose states its rows see beside their own text.
type Source struct {
	Encoder Model    // gives the states of a source; it has the decoder's vocabulary
	Start   token.ID // with which the decoder's text begins
	// Read computes the keys and values of tokens of the source in a layer from their states, inside
	// [compute.Exec.ReadSource].
	Read func(x *compute.Exec, layer int, states compute.Buf)
}

// Pooling is a way to make one vector of the states of a text's tokens. The values are those of GGUF.
type Pooling int

// The poolings. PoolNone is one vector for each token.
const (
	PoolUnset Pooling = iota - 1 // the file does not say
	PoolNone
	PoolMean
	PoolFirst
	PoolLast
	PoolRank // a reranker's score, by [Info].Rank
)

var poolings = []string{"none", "mean", "cls", "last", "rank"}

// String returns the name that users give a pooling.
func (p Pooling) String() string {
	if p < 0 || int(p) >= len(poolings) {
		return "unset"
	}
	return poolings[p]
}

// ParsePooling returns the pooling of a name.
func ParsePooling(name string) (Pooling, error) {
	if i := slices.Index(poolings[:PoolRank], name); i >= 0 {
		return Pooling(i), nil
	}
	return PoolUnset, fmt.Errorf("model: pooling %q is not known; %s are", name, strings.Join(poolings[:PoolRank], ", "))
}

// Model is an architecture with its weights. It is read-only after it is opened: several executors may
// use it at a time.
type Model interface {
	// Info describes the model. The caller does not change it.
	Info() *Info
	// Forward runs the rows of x's step through the layers, inside [compute.Exec.Run].
	Forward(x *compute.Exec)
}

// Architecture opens a model from a file whose general.architecture is its name. The loader keeps its errors.
type Architecture func(l *Loader) Model

var architectures = map[string]Architecture{}

// Register adds an architecture. It panics on a name that is taken.
func Register(name string, open Architecture) {
	if _, taken := architectures[name]; taken {
		panic("model: architecture " + name + " is registered twice")
	}
	architectures[name] = open
}

// Names returns the registered architectures, sorted.
func Names() []string { return slices.Sorted(maps.Keys(architectures)) }

// Options describes how a model is opened.
type Options struct {
	NoRepack bool // leave weights as the file has them; see [weight.Store]
	Context  int  // the longest text, in tokens: chooses the rotation of models with one for long texts

	// Progress, where it is not nil, is told the bytes of weights that are loaded, of all of the file's. At the end both are
	// equal. It is called by the goroutine of Open.
	Progress func(done, all int64)
}

// Open opens the model of a GGUF file. The file must stay open as long as the model is used. It
// returns a *LoadError where the file lacks something, contradicts itself, or names an architecture that
// is not registered.
func Open(f *gguf.File, pool *par.Pool, o Options) (Model, error) {
	l := newLoader(f, pool)
	open, ok := architectures[l.info.Arch]
	if l.err == nil && !ok {
		if modules[l.info.Arch] != nil {
			l.fail("%q is a family of draft modules; such a file is opened beside its target, with --heads", l.info.Arch)
		}
		l.fail("architecture %q is not supported; supported: %s", l.info.Arch, strings.Join(Names(), ", "))
	}
	return l.open(o, open)
}

// open loads what an architecture or a family of modules makes of the file.
func (l *Loader) open(o Options, open Architecture) (Model, error) {
	l.weights.Keep, l.context, l.progress = o.NoRepack, o.Context, o.Progress
	for _, t := range l.file.Tensors {
		l.all += int64(t.Bytes())
	}
	if l.err != nil {
		return nil, l.err
	}
	l.info.Pooling = l.pooling()
	m := open(l)
	l.exits()
	l.leftOver()
	if l.err != nil {
		return nil, l.err
	}
	l.identify()
	if err := l.file.Check(); err != nil {
		return nil, err
	}
	l.info.Bytes = l.weights.Bytes()
	l.loaded(l.all) // with what the architecture does not use
	if o.NoRepack {
		l.info.Check = l.file.Check
	}
	if s := l.info.Source; s != nil {
		e := s.Encoder.Info()
		e.Identity, e.SampleDigest, e.Check = l.info.Identity, l.info.SampleDigest+"encoder", l.info.Check
	}
	return m, nil
}

// LoadError reports a file that cannot be opened as a model: what is missing, contradictory or not
// supported.
type LoadError struct {
	Problem string
	Err     error // of a lower package: then it is the whole message; nil: none
}

// Error names the problem on one line.
func (e *LoadError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return "model: " + e.Problem
}

// Unwrap returns the error of a lower package, or nil.
func (e *LoadError) Unwrap() error { return e.Err }

func (l *Loader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = &LoadError{Problem: fmt.Sprintf(format, args...)}
	}
}

func (l *Loader) wrap(err error) {
	if l.err == nil {
		l.err = &LoadError{Err: err}
	}
}
