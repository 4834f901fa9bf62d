package find

import (
	"math"
	"slices"
	"strings"

	"grove/internal/mmap"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Description describes a model by the header of its file.
type Description struct {
	Arch    string
	Params  int
	Bytes   int64       // of the file, of all parts where it is split
	Type    tensor.Type // of most weights
	Context int         // tokens that the model was trained for; 0: the file does not say

	// Capabilities are what the header says that the model can do: embedding, or else completion, chat (it has a template), tools
	// (its template shows them), thinking (its template has a marker of thoughts), insert (its vocabulary has tokens for that).
	Capabilities []string
}

// Describe reads the header of the model. open opens its path. It returns an error for a file that open refuses or that shrinks
// while it is read.
func (m Model) Describe(open func(path string) (*gguf.File, error)) (d Description, err error) {
	f, err := open(m.Path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	return DescribeFile(f)
}

// DescribeFile is [Model.Describe] of an open file.
func DescribeFile(f *gguf.File) (d Description, err error) {
	err = mmap.Catch(func() error { return d.read(f) })
	return d, err
}

func (d *Description) read(f *gguf.File) (err error) {
	d.Bytes = f.Size()
	byType := map[tensor.Type]int{}
	for _, t := range f.Tensors {
		d.Params += t.Elems()
		byType[t.Type] += t.Elems()
		if n := byType[t.Type]; n > byType[d.Type] || n == byType[d.Type] && t.Type < d.Type {
			d.Type = t.Type
		}
	}
	if d.Arch, _, err = f.String("general.architecture"); err != nil {
		return err
	}
	if d.Context, _, err = f.Uint(d.Arch + ".context_length"); err != nil {
		return err
	}
	d.Capabilities, err = capabilities(f, d.Arch)
	return err
}

// thoughtMarkers are parts of the templates of models that think.
var thoughtMarkers = []string{"</think>", "enable_thinking", "reasoning_content", "<|channel|>", "[THINK]", "<|START_THINKING|>", "<seed:think>"}

// OfTemplate returns the capabilities that a chat template gives a model: chat, tools, thinking.
func OfTemplate(template string) []string {
	all := []string{"chat"}
	if strings.Contains(template, "tools") {
		all = append(all, "tools")
	}
	if slices.ContainsFunc(thoughtMarkers, func(m string) bool { return strings.Contains(template, m) }) {
		all = append(all, "thinking")
	}
	return all
}

// unset is the id or pooling that some programs write for none.
const unset = math.MaxUint32

// capabilities returns what the header of a model says that it can do.
func capabilities(f *gguf.File, arch string) (all []string, err error) {
	if pooling, found, err := f.Uint(arch + ".pooling_type"); err != nil || found && pooling != 0 && int64(pooling) != unset {
		return []string{"embedding"}, err
	}
	all = []string{"completion"}
	template, found, err := f.String("tokenizer.chat_template")
	if err != nil {
		return nil, err
	}
	if found {
		all = append(all, OfTemplate(template)...)
	}
	for _, key := range []string{"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"} {
		if id, found, err := f.Uint(key); err != nil {
			return nil, err
		} else if found && int64(id) != unset {
			return append(all, "insert"), nil
		}
	}
	return all, nil
}
