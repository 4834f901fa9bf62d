// Package folder reads the parts of a folder of Hugging Face (settings, tensors, the tokenizer) and collects from them what a
// GGUF file has. Package hf says, family by family, what that is.
package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"grove/weights/gguf"
	"grove/weights/safetensors"
	"grove/weights/tensor"
)

// OpenWeights opens the tensors of a folder.
func OpenWeights(dir string) (*safetensors.File, error) {
	const single, index = "model.safetensors", "model.safetensors.index.json"
	f, err := safetensors.Open(filepath.Join(dir, index))
	if errors.Is(err, os.ErrNotExist) {
		if _, missing := os.Stat(filepath.Join(dir, index)); missing != nil {
			f, err = safetensors.Open(filepath.Join(dir, single))
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	if shards, _ := filepath.Glob(filepath.Join(dir, "*.safetensors")); len(shards) > 0 {
		if _, missing := os.Stat(filepath.Join(dir, index)); missing != nil {
			return nil, fmt.Errorf("hf: %s: %s is missing, which lists the shards (%s and others); download it too", dir, index, filepath.Base(shards[0]))
		}
	}
	if old, _ := filepath.Glob(filepath.Join(dir, "pytorch_model*.bin")); len(old) > 0 {
		return nil, fmt.Errorf("hf: %s: %s is not supported; weights must be in safetensors files", dir, filepath.Base(old[0]))
	}
	return nil, err
}

// Builder collects the metadata and tensors of a model in the names and layout of GGUF. It keeps the first error; the config
// keeps its own. It is for one goroutine.
type Builder struct {
	Dir     string
	Config  *Config
	Weights *safetensors.File

	Arch     string
	Metadata []gguf.KV
	Tensors  []tensor.View
	Ignored  func(name string) bool // tensors of the folder that are left out
	Vocab    int                    // rows of the embedding table
	Err      error
	Sources  *[]Source // nil, or where matrices come from: then no tensor is read

	made  []func() ([]byte, error) // for each tensor, nil where it is a view
	parts []part                   // folders inside the model's
	used  map[string]bool          // tensors of the folder that are presented
}

// ConfigName is the name of the file of settings.
const ConfigName = "config.json"

// GPT2Table is the name of the embedding table in folders of GPT-2 with a head.
const GPT2Table = "transformer.wte.weight"

// New makes a builder of a folder.
func New(dir string) *Builder { return &Builder{Dir: dir, used: map[string]bool{}} }

// Load makes the bytes of tensor i.
func (b *Builder) Load(i int) ([]byte, error) { return b.made[i]() }

// Fail keeps an error, unless there is one.
func (b *Builder) Fail(format string, args ...any) {
	if b.Err == nil {
		b.Err = fmt.Errorf("hf: "+b.Dir+": "+format, args...)
	}
}

// FirstError returns the first error.
func (b *Builder) FirstError() error {
	if *b.Config.Err != nil {
		return *b.Config.Err
	}
	return b.Err
}

// OK reports whether nothing has failed.
func (b *Builder) OK() bool { return b.FirstError() == nil }

// Set adds a key; one that begins with a dot belongs to the architecture.
func Set[T gguf.Basic](b *Builder, key string, v T) { b.SetValue(key, gguf.Of(v)) }

// SetValue adds a key; one that begins with a dot belongs to the architecture.
func (b *Builder) SetValue(key string, v gguf.Value) {
	if key[0] == '.' {
		key = b.Arch + key
	}
	b.Metadata = append(b.Metadata, gguf.KV{Key: key, Value: v})
}

// SetCount adds a number as GGUF spells hyper-parameters.
func (b *Builder) SetCount(key string, n int) { Set(b, key, uint32(n)) }

// SetFloat adds a number that may have a fraction.
func (b *Builder) SetFloat(key string, x float64) { Set(b, key, float32(x)) }

// LeftOver refuses tensors that are not presented: without them the model would be another one.
func (b *Builder) LeftOver() {
	for _, p := range b.parts {
		for _, t := range p.file.Tensors {
			if !b.used[p.root+t.Name] {
				b.Fail("%s: a module of this kind has no such tensor", tensor.Label(p.root+t.Name))
			}
		}
	}
	for _, t := range b.Weights.Tensors {
		if !b.used[t.Name] && !strings.HasSuffix(t.Name, ".rotary_emb.inv_freq") && (b.Ignored == nil || !b.Ignored(t.Name)) {
			b.Fail("%s: a model of this family has no such tensor", tensor.Label(t.Name))
		}
	}
}

// Source says where folders of a family keep what is a matrix of GGUF, or one expert of a stack of them.
type Source struct {
	To, From   string // the tensors' names in GGUF and in the folder, with .weight
	Expert     int    // the place in the stack
	Stack      bool   // To is a stack
	Heads      int    // above 0: the rows of each of so many heads have another order, see [TurnRow]
	Transposed bool   // the folder has it as [in, out]
}

// TurnRow returns the row of a folder that is row i of GGUF, where heads of size rows have another order ([Source].Heads).
func TurnRow(i, size int) int {
	h, j := i/size, i%size
	return h*size + j%2*size/2 + j/2
}

// Note keeps where a matrix comes from, for [Sources].
func (b *Builder) Note(s Source) {
	if b.Sources != nil && strings.HasSuffix(s.To, ".weight") {
		*b.Sources = append(*b.Sources, s)
	}
}
