// folder_builder.go reads the parts of a folder of Hugging Face (settings, tensors, the tokenizer) and collects from them what a
// GGUF file has. folder_builder.go says, family by family, what that is.

package hf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
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
	if err := originalForm(dir); err != nil {
		return nil, err
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

// originalForm returns an error for a folder whose weights are in the form of its maker's own programs alone: consolidated files, of Mistral and Meta.
func originalForm(dir string) error {
	for _, pattern := range []string{"consolidated*.safetensors", "consolidated*.pth"} {
		if files, _ := filepath.Glob(filepath.Join(dir, pattern)); len(files) > 0 {
			return fmt.Errorf("hf: %s: %s holds the weights in the form of the maker's own programs, which is not supported; download the files of the form of Hugging Face too (config.json, model*.safetensors, tokenizer.json)",
				dir, filepath.Base(files[0]))
		}
	}
	return nil
}

// FolderBuilder collects the metadata and tensors of a model in the names and layout of GGUF, in the order in which they are added. A family adds them from
// lists, never from maps, so that a folder gives the same bytes each time. It keeps the first error; the config
// keeps its own. It is for one goroutine.
type FolderBuilder struct {
	Dir     string
	Config  *FolderConfig // of the part for text, where there are others
	Whole   *FolderConfig // config.json
	Weights *safetensors.File

	Arch     string
	Metadata []gguf.KV
	Tensors  []tensor.View
	Ignored  func(name string) bool // tensors of the folder that are left out
	Vocab    int                    // rows of the embedding table
	Err      error
	Sources  *[]Source // where matrices come from; nil: nobody asks
	Dry      bool      // there is no folder; see [Dry]

	made  []func() ([]byte, error) // for each tensor, nil where it is a view
	parts []part                   // folders inside the model's
	used  map[string]bool          // tensors of the folder that are presented
}

// ConfigName is the name of the file of settings.
const ConfigName = "config.json"

// GPT2Table is the name of the embedding table in folders of GPT-2 with a head.
const GPT2Table = "transformer.wte.weight"

// NewFolder makes a builder of a folder.
func NewFolder(dir string) *FolderBuilder { return &FolderBuilder{Dir: dir, used: map[string]bool{}} }

// Load makes the bytes of tensor i.
func (b *FolderBuilder) Load(i int) ([]byte, error) { return b.made[i]() }

// Fail keeps an error, unless there is one.
func (b *FolderBuilder) Fail(format string, args ...any) {
	if b.Err == nil {
		b.Err = fmt.Errorf("hf: "+b.Dir+": "+format, args...)
	}
}

// FirstError returns the first error.
func (b *FolderBuilder) FirstError() error {
	if *b.Config.Err != nil {
		return *b.Config.Err
	}
	return b.Err
}

// OK reports whether nothing has failed.
func (b *FolderBuilder) OK() bool { return b.FirstError() == nil }

// FolderSet adds a key; one that begins with a dot belongs to the architecture.
func FolderSet[T gguf.Basic](b *FolderBuilder, key string, v T) { b.SetValue(key, gguf.Of(v)) }

// SetValue adds a key; one that begins with a dot belongs to the architecture.
func (b *FolderBuilder) SetValue(key string, v gguf.Value) {
	if key[0] == '.' {
		key = b.Arch + key
	}
	b.Metadata = append(b.Metadata, gguf.KV{Key: key, Value: v})
}

// SetCount adds a number as GGUF spells hyper-parameters.
func (b *FolderBuilder) SetCount(key string, n int) { FolderSet(b, key, uint32(n)) }

// SetFloat adds a number that may have a fraction.
func (b *FolderBuilder) SetFloat(key string, x float64) { FolderSet(b, key, float32(x)) }

// LeftOver refuses tensors that are not presented: without them the model would be another one.
func (b *FolderBuilder) LeftOver() {
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

// Source says where a folder keeps what is a matrix of GGUF, one expert of a stack, or some rows of a matrix.
type Source struct {
	To, From   string // the tensors' names in GGUF and in the folder
	Rows       int    // of the matrix of GGUF
	Shape      []int  // of the folder's, as [out, in]
	Expert     int    // the place in the stack
	Stack      bool   // To is a stack
	Transposed bool   // the folder has it as [in, out]

	Row    func(i int) int     // the row of the folder that is row i of GGUF; nil: i
	Column func(i int) int     // the same of columns
	Factor func(i int) float32 // by which row i of GGUF is multiplied; nil: 1

	Problem string // why nothing can be added to the matrix; "": it can
}

// FolderTurnRow returns the row of a folder that is row i of GGUF, where heads of size rows have pairs side by side in GGUF.
func FolderTurnRow(i, size int) int {
	h, j := i/size, i%size
	return h*size + j%2*size/2 + j/2
}

// Note keeps where a matrix comes from, if somebody asks and it is the weight of a module.
func (b *FolderBuilder) Note(s Source) {
	if b.Sources != nil && strings.HasSuffix(s.From, ".weight") && (s.Problem != "" || strings.HasSuffix(s.To, ".weight")) {
		*b.Sources = append(*b.Sources, s)
	}
}

// noteRows keeps where the rows of a matrix, of a folder's shape, come from.
func (b *FolderBuilder) noteRows(to, from string, folder, shape []int, row func(i int) int) {
	s := Source{To: to, From: from, Shape: folder, Rows: shape[0], Row: row}
	switch {
	case len(folder) != 2:
		return
	case len(shape) != 2:
		s.Problem = "the model has this matrix in another form"
	}
	b.Note(s)
}
