package heads

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
)

// builder is a head that is presented. All tensors are added by [builder.take], which keeps what is missing, so that a message can name all
// of it. It is for one goroutine.
type builder struct {
	*hf.FolderBuilder
	path    string
	top     *hf.FolderConfig // of the file; Config is that of the layers, which may be an object inside
	target  *gguf.File       // nil: not known
	note    func(string)
	beside  *safetensors.File // with the head's vocabulary; nil: its own file has it, if anything
	used    map[string]bool
	missing []string

	width, vocab      int  // of the target; vocab 0: nothing says it
	heads, keys, size int  // of attention
	inner             int  // of feed-forward parts; 0: not known yet
	mask              int  // the token of a block's rows
	ownTable          bool // the head has embeddings of its own
}

const (
	maxHeads  = 64      // of one file, and blocks of one head
	maxWidth  = 1 << 20 // of a state, as folders of models have it
	maxRows   = 1 << 24 // of a vocabulary
	maxShown  = 24      // names in one message
	maxTokens = 1 << 24 // of a context
)

// newBuilder opens the files of a head.
func newBuilder(form form, target *gguf.File, note func(string)) (*builder, error) {
	b := &builder{FolderBuilder: hf.NewFolder(form.path), path: form.path, target: target, note: note, used: map[string]bool{}}
	var err error
	b.Config, err = hf.ReadConfig(form.config)
	if errors.Is(err, fs.ErrNotExist) {
		b.Config = &hf.FolderConfig{Path: form.config + ": ", Err: new(error)}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	b.top = b.Config
	b.Weights, err = form.open()
	return b, err
}

// Fail keeps an error, unless there is one.
func (b *builder) Fail(format string, args ...any) {
	if b.Err == nil {
		b.Err = fmt.Errorf("heads: "+b.path+": "+format, args...)
	}
}

// take adds a tensor of the file under its name of GGUF. Vectors become float32. One that is missing is kept for the message that names
// all; another shape is refused.
func (b *builder) take(to, from string, shape ...int) {
	if b.check(from, shape...) {
		b.Copy(to, from, shape...)
	}
}

// check reports whether a tensor of the file is there, of a shape, and nothing has failed, as [builder.take] does.
func (b *builder) check(from string, shape ...int) bool {
	t, ok := b.Weights.Tensor(from)
	if !ok {
		b.missing = append(b.missing, from)
		return false
	}
	b.used[from] = true
	_, float := safetensors.FloatTypes[t.Type]
	switch {
	case !slices.Equal(t.Shape, shape):
		b.Fail("%s: shape is %v; the other tensors and the settings ask for %v", tensor.Label(from), t.Shape, shape)
	case !float:
		b.Fail("%s: type is %s; it must be F32, F16 or BF16", tensor.Label(from), t.Type)
	case len(shape) > 0 && slices.Min(shape) < 1:
		b.Fail("%s: shape is %v; a tensor of a head has values", tensor.Label(from), t.Shape)
	}
	return b.OK()
}

// takeIf is take for a tensor that may be missing, and reports whether it is there.
func (b *builder) takeIf(to, from string, shape ...int) bool {
	_, ok := b.Weights.Tensor(from)
	if ok {
		b.take(to, from, shape...)
	}
	return ok
}

// drop leaves out a tensor that the target has too.
func (b *builder) drop(name, why string) {
	if t, ok := b.Weights.Tensor(name); ok {
		b.used[name] = true
		b.note(fmt.Sprintf("%s %v is left out: %s", name, t.Shape, why))
	}
}

// matrix returns the rows and columns of a matrix, 0 where there is none of that name.
func (b *builder) matrix(name string) (rows, cols int) {
	t, ok := b.Weights.Tensor(name)
	if !ok || len(t.Shape) != 2 || slices.Min(t.Shape) < 1 || slices.Max(t.Shape) > maxRows {
		return 0, 0
	}
	return t.Shape[0], t.Shape[1]
}

// has reports whether a tensor has a name that begins with prefix.
func (b *builder) has(prefix string) bool {
	return slices.ContainsFunc(b.Weights.Tensors, func(t safetensors.Tensor) bool { return strings.HasPrefix(t.Name, prefix) })
}

// rowsOf returns the rows of the first of some matrices that is there, 0 where none is.
func (b *builder) rowsOf(names ...string) int {
	for _, name := range names {
		if rows, _ := b.matrix(name); rows > 0 {
			return rows
		}
	}
	return 0
}

// setWidth adds the width of the target's states: that of a tensor, n, or where that is missing that of config.json. They must agree.
func (b *builder) setWidth(n int) {
	if n == 0 {
		n = b.Config.CountOr("hidden_size", 0, 1, maxWidth)
	}
	if n < 1 || n > maxWidth {
		b.Fail("the width is %d by the tensors' shapes and config.json; it must be from 1 to %d", n, maxWidth)
		return
	}
	if said := b.Config.CountOr("hidden_size", n, 1, maxWidth); said != n && b.OK() {
		b.Fail("hidden_size is %d in config.json; the tensors have width %d", said, n)
	}
	b.width = n
	b.SetCount(".embedding_length", n)
	b.SetCount(".context_length", b.Config.CountOr("max_position_embeddings", 4096, 1, maxTokens))
}

// setVocabulary adds the size of the target's vocabulary: that of the tensors, n, or where they do not say it that of config.json.
func (b *builder) setVocabulary(n int) {
	if n == 0 {
		n = b.Config.CountOr("vocab_size", 0, 1, maxRows)
	}
	if b.vocab = n; n > 0 {
		b.SetCount("heads.target.vocabulary", n)
	}
}

// numbered returns the numbers that names of the file have in the places of the pattern's groups, by the order of the file.
func (b *builder) numbered(pattern string) (all [][]int) {
	expr := regexp.MustCompile(pattern)
	for _, t := range b.Weights.Tensors {
		m := expr.FindStringSubmatch(t.Name)
		if m == nil {
			continue
		}
		numbers := make([]int, len(m)-1)
		for i, text := range m[1:] {
			n, err := strconv.Atoi(text)
			if err != nil || n >= maxHeads || strconv.Itoa(n) != text {
				b.Fail("%s: number %.20s; at most %d are supported, counted from 0", tensor.Label(t.Name), text, maxHeads)
			}
			numbers[i] = n
		}
		all = append(all, numbers)
	}
	return all
}

// leftOver names all tensors that are missing, else all that have no place.
func (b *builder) leftOver() {
	if len(b.missing) > 0 {
		b.Err = nil // shapes that are at odds with those of a missing tensor
		b.Fail("tensors are missing: %s", listed(b.missing))
	}
	var left []string
	for _, t := range b.Weights.Tensors {
		if !b.used[t.Name] && !strings.HasSuffix(t.Name, "rotary_emb.inv_freq") {
			left = append(left, t.Name)
		}
	}
	if len(left) > 0 {
		b.Fail("%s heads have no such tensors: %s", b.Arch, listed(left))
	}
}

// listed joins names for a message.
func listed(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	more := ""
	if len(names) > maxShown {
		more = fmt.Sprintf(" and %d others", len(names)-maxShown)
		names = names[:maxShown]
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = tensor.Label(name)
	}
	return strings.Join(shown, ", ") + more
}
