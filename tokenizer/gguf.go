package tokenizer

import (
	"errors"
	"fmt"

	"grove/gguf"
	"grove/token"
)

// ErrNone is the error for a file that holds no vocabulary.
var ErrNone = errors.New("tokenizer: the file holds no vocabulary (tokenizer.ggml.model)")

// FromGGUF builds the tokenizer of a file, which may hold a vocabulary and no tensors. It keeps
// nothing of the file. Its errors are ErrNone, those of [New], and those of values of the wrong type.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	r := reader{f: f}
	v := Vocab{
		Model:  read(&r, f.String, "tokenizer.ggml.model", ""),
		Pre:    read(&r, f.String, "tokenizer.ggml.pre", ""),
		Name:   read(&r, f.String, "general.name", ""),
		Tokens: read(&r, f.Strings, "tokenizer.ggml.tokens", nil),
		Scores: read(&r, f.Floats, "tokenizer.ggml.scores", nil),
		Types:  read(&r, f.Ints, "tokenizer.ggml.token_type", nil),
		Merges: read(&r, f.Strings, "tokenizer.ggml.merges", nil),
	}
	if r.err == nil && v.Model == "" {
		return nil, ErrNone
	}
	if r.err == nil && v.Model == "gpt2" && v.Merges == nil {
		return nil, fmt.Errorf("tokenizer: the file holds no merges (tokenizer.ggml.merges)")
	}
	r.ids(&v)
	if r.err != nil {
		return nil, r.err
	}
	return New(v)
}

// ids reads the ids of special tokens and whether they are added, with the defaults of the kind.
func (r *reader) ids(v *Vocab) {
	bos, eos, unk := token.None, token.None, token.None
	if v.Model == "llama" && len(v.Tokens) > 2 {
		unk, bos, eos = 0, 1, 2
	}
	v.BOS = r.id(v, "tokenizer.ggml.bos_token_id", bos)
	v.EOS = r.id(v, "tokenizer.ggml.eos_token_id", eos)
	v.EOT = r.id(v, "tokenizer.ggml.eot_token_id", token.None)
	v.EOM = r.id(v, "tokenizer.ggml.eom_token_id", token.None)
	v.UNK = r.id(v, "tokenizer.ggml.unknown_token_id", unk)
	add := v.Model == "llama"
	if p, err := findPre(v.Pre); !add && err == nil {
		add = p.addBOS
	}
	v.AddBOS = read(r, r.f.Bool, "tokenizer.ggml.add_bos_token", add && v.BOS != token.None)
	v.AddEOS = read(r, r.f.Bool, "tokenizer.ggml.add_eos_token", false)
	v.AddSpacePrefix = read(r, r.f.Bool, "tokenizer.ggml.add_space_prefix", v.Model == "llama")
}

// reader reads metadata and remembers the first error.
type reader struct {
	f   *gguf.File
	err error
}

func read[T any](r *reader, value func(key string) (T, bool, error), key string, otherwise T) T {
	v, ok, err := value(key)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("tokenizer: %w", err)
	}
	if !ok {
		return otherwise
	}
	return v
}

func (r *reader) id(v *Vocab, key string, otherwise token.ID) token.ID {
	n := read(r, r.f.Uint, key, int(otherwise))
	if n >= len(v.Tokens) && r.err == nil {
		r.err = fmt.Errorf("tokenizer: %s is %d, outside the vocabulary of %d", key, n, len(v.Tokens))
	}
	return token.ID(n)
}
