package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
	"grove/internal/weights/gguf"
)

// padScore is the score of the tokens that fill up a unigram vocabulary. It keeps them out of every text.
const padScore = -10000

// MetadataFromJSON returns the GGUF metadata of the tokenizer of a tokenizer.json and tokenizer_config.json: the keys of
// tokenizer.ggml, without chat templates. size is the number of tokens of the model, which may be more than the vocabulary
// names; 0: the number of the vocabulary.
//
// The ids of a text are the same, except where the format has no place for a setting: Unicode normalisation of byte-level models
// is lost; SentencePiece models put the space prefix after special tokens too and make each unknown character a token;
// overlapping special tokens are taken the longest first; flags of added tokens and the longest word of WordPiece are lost.
// Other settings that GGUF cannot hold are refused by name.
func MetadataFromJSON(tokenizerJSON, tokenizerConfig []byte, size int) ([]gguf.KV, error) {
	d, err := parseDocument(tokenizerJSON, tokenizerConfig)
	if err != nil {
		return nil, err
	}
	kvs, err := d.metadata(size)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: as GGUF metadata: %w", err)
	}
	return kvs, nil
}

func (d *document) metadata(size int) ([]gguf.KV, error) {
	if err := d.surrounds(); err != nil {
		return nil, err
	}
	if named := len(d.vocab.Tokens); size != 0 && size < named {
		return nil, fmt.Errorf("the vocabulary has %d tokens and the model %d", named, size)
	} else if size > maxTokens {
		return nil, fmt.Errorf("a vocabulary of %d tokens is more than %d", size, maxTokens)
	}
	export := map[string]func() ([]gguf.KV, error){"gpt2": d.byteMetadata, "llama": d.spaceMetadata, "t5": d.unigramMetadata, "bert": d.wordMetadata}
	own, err := export[d.vocab.Model]()
	if err != nil {
		return nil, err
	}
	kvs := append(d.commonMetadata(size), own...)
	if d.vocab.Scores != nil {
		kvs = append(kvs, entries("scores", d.vocab.Scores))
	}
	return kvs, nil
}

func entry[T gguf.Basic](key string, v T) gguf.KV {
	return gguf.KV{Key: "tokenizer.ggml." + key, Value: gguf.Of(v)}
}

func entries[T gguf.Basic](key string, v []T) gguf.KV {
	return gguf.KV{Key: "tokenizer.ggml." + key, Value: gguf.ArrayOf(v)}
}

// surrounds sets the begin and the end token from the tokens around a text, and refuses others.
func (d *document) surrounds() error {
	v, p := &d.vocab, &d.pipe
	last := &v.EOS
	if v.Model == "bert" {
		last = &v.SEP
	}
	for _, s := range []struct {
		ids  []token.ID
		id   *token.ID
		add  *bool
		name string
	}{{p.begin, &v.BOS, &v.AddBOS, "begins"}, {p.end, last, &v.AddEOS, "ends"}} {
		*s.add = len(s.ids) > 0
		if len(s.ids) > 1 {
			return fmt.Errorf("a text that %s with %d tokens is not supported", s.name, len(s.ids))
		} else if !*s.add {
			continue
		}
		if *s.id != token.None && *s.id != s.ids[0] && s.name == "ends" {
			return fmt.Errorf("a text that ends with %.40q, which is not the end token, is not supported", v.Tokens[s.ids[0]])
		}
		*s.id = s.ids[0]
	}
	if v.Model == "bert" && !(v.AddBOS && v.AddEOS) {
		return errors.New("WordPiece without a token before and one behind a text is not supported")
	}
	return nil
}

func (d *document) commonMetadata(size int) []gguf.KV {
	v := &d.vocab
	types := make([]int32, 0, max(size, len(v.Types)))
	for _, ty := range v.Types {
		types = append(types, int32(ty))
	}
	tokens := slices.Clone(v.Tokens)
	for i := len(tokens); i < size; i++ {
		tokens, types = append(tokens, fmt.Sprintf("[PAD%d]", i)), append(types, int32(Unused))
	}
	for i := len(v.Scores); i < len(tokens) && v.Scores != nil; i++ {
		v.Scores = append(v.Scores, padScore)
	}
	kvs := []gguf.KV{entry("model", v.Model), entries("tokens", tokens), entries("token_type", types)}
	pad, ok := d.ids[string(d.config.PAD)]
	if !ok {
		pad = token.None
	}
	for _, named := range []struct {
		key string
		id  token.ID
	}{
		{"bos_token_id", v.BOS}, {"eos_token_id", v.EOS}, {"unknown_token_id", v.UNK}, {"seperator_token_id", v.SEP}, {"padding_token_id", pad},
	} {
		if named.id != token.None {
			kvs = append(kvs, entry(named.key, uint32(named.id)))
		}
	}
	return append(kvs, entry("add_bos_token", v.AddBOS), entry("add_eos_token", v.AddEOS && v.Model != "bert"))
}

// only refuses normalizers other than those named.
func (d *document) only(types ...string) error {
	for _, p := range d.file.Normalizer.Flat() {
		if !slices.Contains(types, p.Type) {
			return fmt.Errorf("normalizer %s with model %s is not supported", p.Type, d.file.Model.Type)
		}
	}
	return nil
}

func (d *document) byteMetadata() ([]gguf.KV, error) {
	merges := entries("merges", d.vocab.Merges)
	name, whole, ok := pretoken.Matching(d.pipe.cuts, d.pipe.whole)
	if d.only("NFC") != nil || d.pipe.spaced != nil || !ok {
		parts, err := d.partsEntry()
		return []gguf.KV{parts, merges}, err
	}
	if whole != d.pipe.whole {
		if err := d.mergesReach(); err != nil {
			return nil, err
		}
	}
	return []gguf.KV{entry("pre", name), merges}, nil
}

// mergesReach refuses a vocabulary with a token that is a word which the merges turn into other tokens: ignore_merges changes
// its ids.
func (d *document) mergesReach() error {
	t, err := d.tokenizer()
	if err != nil {
		return err
	}
	t.whole = false
	s := t.scratch.New().(*scratch)
	for i, ty := range t.types {
		if ty != Normal || t.stages[0].Cut(t.raw[i]) < len(t.raw[i]) {
			continue
		}
		if ids, err := t.mergeWord(nil, t.raw[i], s); err != nil || len(ids) != 1 {
			return fmt.Errorf("ignore_merges counts for token %.40q, and the pre-tokenizer's name does not say so", t.tokens[i])
		}
	}
	return nil
}

func (d *document) spaceMetadata() ([]gguf.KV, error) {
	for _, p := range d.file.Normalizer.Flat() {
		s := p.Pattern.String
		if !(p.Type == "Prepend" && p.Prepend == space || p.Type == "Replace" && s != nil && *s == " " && p.Content == space) {
			return nil, fmt.Errorf("normalizer %s with model BPE is supported for spaces only", p.Type)
		}
	}
	scores, err := d.scores()
	if err != nil {
		return nil, err
	}
	for i := range d.vocab.Tokens {
		if d.vocab.Types[i] == int(Unused) {
			scores[i] = padScore
		}
	}
	d.vocab.Scores = scores
	return []gguf.KV{entry("pre", "default"), entry("add_space_prefix", d.pipe.strip != stripNever)}, nil
}

func (d *document) unigramMetadata() ([]gguf.KV, error) {
	if err := d.only("Precompiled", "Replace", "Strip"); err != nil {
		return nil, err
	}
	var charsmap []byte
	merge := len(d.file.PreTokenizer.Flat()) > 1 // WhitespaceSplit
	for _, p := range d.file.Normalizer.Flat() {
		switch {
		case p.Type == "Precompiled":
			charsmap = p.Charsmap
		case p.Type == "Strip" && !isTrue(p.StripLeft, true):
		case p.Type == "Replace" && p.Pattern.Regex != nil && (p.Content == " " || p.Content == space):
			merge = true
		default:
			return nil, fmt.Errorf("normalizer %s with model Unigram is supported for spaces only", p.Type)
		}
	}
	kvs := []gguf.KV{
		entry("pre", "default"), entry("add_space_prefix", d.pipe.strip != stripNever),
		entry("remove_extra_whitespaces", merge),
	}
	if len(charsmap) > 0 {
		kvs = append(kvs, entries("precompiled_charsmap", charsmap))
	}
	return kvs, nil
}

func (d *document) wordMetadata() ([]gguf.KV, error) {
	norms, cuts := d.file.Normalizer.Flat(), d.file.PreTokenizer.Flat()
	if len(norms) != 1 || norms[0].Type != "BertNormalizer" || len(cuts) != 1 || cuts[0].Type != "BertPreTokenizer" {
		return nil, errors.New("WordPiece without BertNormalizer and BertPreTokenizer is not supported")
	}
	n := norms[0]
	if !isTrue(n.CleanText, true) || !isTrue(n.Ideographs, true) {
		return nil, errors.New("BertNormalizer without clean_text and handle_chinese_chars is not supported")
	}
	lower := isTrue(n.Lowercase, true)
	return []gguf.KV{
		entry("pre", "default"), entry("cls_token_id", uint32(d.vocab.BOS)),
		entry("normalizer.lowercase", lower), entry("normalizer.strip_accents", isTrue(n.StripAccents, lower)),
	}, nil
}

// scores returns scores of a SentencePiece model with the order of the file's merges: the earlier a merge, the higher the score of
// its token. The merges must be all pairs of tokens that spell a token, and the merges of one token must follow each other;
// others cannot be written as scores and are refused. Of overlapping pairs of the same token, scores merge the left one first,
// as SentencePiece does; ranks merge the one that is listed first.
func (d *document) scores() ([]float32, error) {
	made := map[string]int{} // tokens by their order
	pairs := map[[2]string]bool{}
	last := ""
	for _, m := range d.vocab.Merges {
		l, r, _ := strings.Cut(m, " ")
		if _, ok := made[l+r]; !ok {
			made[l+r] = len(made)
		} else if last != l+r {
			return nil, fmt.Errorf("the merges that make %.40q do not follow each other", l+r)
		}
		last = l + r
		pairs[[2]string{l, r}] = true
	}
	scores := make([]float32, len(d.vocab.Tokens))
	for i := range scores {
		scores[i] = -float32(len(made)) - 1
	}
	for text, order := range made {
		scores[d.ids[text]] = -float32(order)
	}
	return scores, d.complete(pairs)
}

// complete refuses a vocabulary in which two tokens spell a third one and are not a merge.
func (d *document) complete(pairs map[[2]string]bool) error {
	plain := func(text string) bool {
		id, ok := d.ids[text]
		return ok && d.vocab.Types[id] == int(Normal)
	}
	for _, text := range d.vocab.Tokens {
		if !plain(text) {
			continue
		}
		for i := range text {
			if i > 0 && !pairs[[2]string{text[:i], text[i:]}] && plain(text[:i]) && plain(text[i:]) {
				return fmt.Errorf("tokens %.40q and %.40q make a token and are not a merge", text[:i], text[i:])
			}
		}
	}
	return nil
}
