package tokenizer

import (
	"errors"
	"fmt"
	"math"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
	"grove/internal/weights/gguf"
)

// ErrNone is the error for a file that holds no vocabulary.
var ErrNone = errors.New("tokenizer: the file holds no vocabulary (tokenizer.ggml.model)")

// FromGGUF builds the tokenizer of a file, which may hold a vocabulary and no tensors. It keeps no memory of the file. Errors:
// ErrNone, those of [New], values of the wrong type.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	r := reader{f: f}
	v := Vocab{
		Model:  read(&r, f.String, "tokenizer.ggml.model", ""),
		Pre:    read(&r, f.String, "tokenizer.ggml.pre", ""),
		Name:   read(&r, f.String, "general.name", ""),
		Tokens: read(&r, f.Strings, "tokenizer.ggml.tokens", nil),
		Scores: read(&r, f.Floats, "tokenizer.ggml.scores", nil),
		Types:  read(&r, f.Ints, "tokenizer.ggml.token_type", nil),
	}
	if v.Model == "gpt2" {
		v.Merges = read(&r, f.Strings, "tokenizer.ggml.merges", nil)
	}
	if r.err == nil && v.Model == "" {
		return nil, ErrNone
	}
	if r.err == nil && v.Model == "gpt2" && v.Merges == nil {
		return nil, fmt.Errorf("tokenizer: the file holds no merges (tokenizer.ggml.merges)")
	}
	parts := read(&r, f.String, keyParts, "")
	if r.err == nil && v.Model == "gpt2" && v.Pre == "" && parts == "" {
		v.Pre = preOf(f)
	}
	r.ids(&v)
	r.flags(&v)
	if r.err != nil {
		return nil, r.err
	}
	if v.Model == "gpt2" && v.Pre == "" && parts != "" {
		return withParts(v, parts)
	}
	return New(v)
}

// defaultIDs are the begin, end, unknown and separator token of a file of a kind, which need not name them.
var defaultIDs = map[string][4]token.ID{
	"gpt2":  {token.None, token.None, token.None, token.None},
	"llama": {1, 2, 0, token.None},
	"t5":    {token.None, 1, 2, token.None},
	"bert":  {101, token.None, 100, 102},
}

// ids reads the ids of special tokens and whether they are added, with the defaults of the kind.
func (r *reader) ids(v *Vocab) {
	d := defaultIDs[v.Model]
	for i, id := range d {
		if int(id) >= len(v.Tokens) {
			d[i] = token.None
		}
	}
	v.BOS = r.id(v, "bos_token_id", d[0])
	if v.Model == "bert" {
		v.BOS = r.id(v, "cls_token_id", v.BOS)
	}
	v.EOS = r.id(v, "eos_token_id", d[1])
	v.EOT = r.id(v, "eot_token_id", token.None)
	v.EOM = r.id(v, "eom_token_id", token.None)
	v.UNK = r.id(v, "unknown_token_id", d[2])
	v.SEP = r.id(v, "seperator_token_id", d[3]) // so spelled in the format
	v.FIM.Prefix = r.id(v, "fim_pre_token_id", r.id(v, "prefix_token_id", token.None))
	v.FIM.Suffix = r.id(v, "fim_suf_token_id", r.id(v, "suffix_token_id", token.None))
	v.FIM.Middle = r.id(v, "fim_mid_token_id", r.id(v, "middle_token_id", token.None))
	v.FIM.Repository = r.id(v, "fim_rep_token_id", token.None)
	v.FIM.File = r.id(v, "fim_sep_token_id", token.None)
}

// flags reads how text is normalised and which tokens go around it, with the defaults of the kind.
func (r *reader) flags(v *Vocab) {
	addBOS := v.Model == "llama" || v.Model == "bert"
	if p, err := pretoken.Find(v.Pre); v.Model == "gpt2" && err == nil {
		addBOS = p.AddBOS
	}
	v.AddBOS = read(r, r.f.Bool, "tokenizer.ggml.add_bos_token", addBOS && v.BOS != token.None)
	v.AddEOS = read(r, r.f.Bool, "tokenizer.ggml.add_eos_token", v.Model == "t5" && v.EOS != token.None)
	v.AddSEP = read(r, r.f.Bool, "tokenizer.ggml.add_sep_token", v.Model == "t5" && v.SEP != token.None) && v.Model != "bert"
	if v.Model == "bert" {
		v.AddBOS, v.AddEOS = v.BOS != token.None, v.SEP != token.None
	}
	v.AddSpacePrefix = read(r, r.f.Bool, "tokenizer.ggml.add_space_prefix", v.Model == "llama")
	v.MergeSpaces = read(r, r.f.Bool, "tokenizer.ggml.remove_extra_whitespaces", false)
	v.Lowercase = read(r, r.f.Bool, "tokenizer.ggml.normalizer.lowercase", true)
	v.StripAccents = read(r, r.f.Bool, "tokenizer.ggml.normalizer.strip_accents", v.Lowercase)
	for _, n := range read(r, r.f.Ints, "tokenizer.ggml.precompiled_charsmap", nil) {
		v.Charsmap = append(v.Charsmap, byte(n)) // whole numbers of 8 bits, with or without a sign
	}
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

// id reads the id of a token, which is otherwise where the file has none or 2^32-1, as some programs write for none.
func (r *reader) id(v *Vocab, key string, otherwise token.ID) token.ID {
	key = "tokenizer.ggml." + key
	n := read(r, r.f.Uint, key, int(otherwise))
	if int64(n) == math.MaxUint32 {
		return otherwise
	}
	if n >= len(v.Tokens) && r.err == nil {
		r.err = fmt.Errorf("tokenizer: %s is %d, outside the vocabulary of %d", key, n, len(v.Tokens))
	}
	return token.ID(n)
}
