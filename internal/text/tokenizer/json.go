package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
)

// ParseJSON builds the tokenizer of a tokenizer.json of Hugging Face. Its tokenizer_config.json, which may be empty, names the
// special tokens. ParseJSON keeps no memory of either. It refuses by name the settings that it cannot follow; it ignores
// truncation and padding, which concern batches.
func ParseJSON(tokenizerJSON, tokenizerConfig []byte) (*Tokenizer, error) {
	d, err := parseDocument(tokenizerJSON, tokenizerConfig)
	if err != nil {
		return nil, err
	}
	return d.tokenizer()
}

// document is a tokenizer.json and its configuration.
type document struct {
	file   SchemaFile
	config SchemaConfig
	vocab  Vocab
	pipe   pipeline
	ids    map[string]token.ID
	text   []byte // the tokenizer.json
}

// pipeline is the part of a tokenizer.json that a Vocab cannot hold: the steps from text to ids.
type pipeline struct {
	specials, inner specials
	controls        specials
	normalize       []normalizer
	spaced          normalizer
	stages          []pretoken.Stage
	cuts            string // the names of the stages' cutters; "" where one has none
	begin, end      []token.ID
	strip           strip
	whole, fuse     bool
	chop            int
	scores          []float64
}

func (p *pipeline) apply(t *Tokenizer) {
	t.specials, t.inner, t.controls, t.normalize, t.spaced = p.specials, p.inner, p.controls, p.normalize, p.spaced
	t.begin, t.end, t.strip = p.begin, p.end, p.strip
	t.whole, t.fuse, t.chop = p.whole, p.fuse, p.chop
	if p.stages != nil {
		t.stages = p.stages
	}
	for k, piece := range t.lexiconPieces {
		if p.scores != nil {
			t.scores[k] = p.scores[piece]
		}
	}
}

func parseDocument(tokenizerJSON, tokenizerConfig []byte) (*document, error) {
	d := &document{text: tokenizerJSON}
	if err := json.Unmarshal(tokenizerJSON, &d.file); err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	if len(tokenizerConfig) > 0 {
		if err := json.Unmarshal(tokenizerConfig, &d.config); err != nil {
			return nil, fmt.Errorf("tokenizer: tokenizer_config.json: %w", err)
		}
	}
	for _, read := range []func() error{d.model, d.added, d.special, d.parts, d.template} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
		}
	}
	return d, nil
}

func (d *document) tokenizer() (*Tokenizer, error) { return build(d.vocab, &d.pipe) }

// model reads the vocabulary of the model.
func (d *document) model() error {
	m := &d.file.Model
	if m.Type == "" { // left out by old versions
		switch {
		case m.Merges != nil:
			m.Type = "BPE"
		case m.MaxInputChars > 0:
			m.Type = "WordPiece"
		case len(m.Vocab) > 0 && m.Vocab[0] == '[':
			m.Type = "Unigram"
		}
	}
	if m.Dropout != nil && *m.Dropout != 0 {
		return fmt.Errorf("model %s with dropout %v is not supported", m.Type, *m.Dropout)
	}
	if m.Suffix != nil && *m.Suffix != "" || m.Type == "BPE" && m.Prefix != nil && *m.Prefix != "" {
		return fmt.Errorf("model %s with continuing_subword_prefix or end_of_word_suffix is not supported", m.Type)
	}
	d.pipe.fuse, d.pipe.whole = m.FuseUnk, m.IgnoreMerges
	switch m.Type {
	case "BPE":
		d.vocab.Model = "gpt2"
		if !d.byteLevel() {
			d.vocab.Model = "llama"
		}
		if err := d.texts(); err != nil {
			return err
		}
		return d.merges()
	case "Unigram":
		d.vocab.Model = "t5"
		return d.pieces()
	case "WordPiece":
		d.vocab.Model = "bert"
		d.pipe.chop = m.MaxInputChars
		if d.pipe.chop == 0 {
			d.pipe.chop = 100
		}
		return d.texts()
	}
	return fmt.Errorf("model %.40q is not supported; known: BPE, Unigram, WordPiece", m.Type)
}

// byteLevel reports whether words reach the model in the byte alphabet.
func (d *document) byteLevel() bool {
	return slices.ContainsFunc(d.file.PreTokenizer.Flat(), func(p *SchemaPart) bool { return p.Type == "ByteLevel" })
}

// texts reads a vocabulary that maps texts to ids.
func (d *document) texts() error {
	var ids map[string]int
	if err := json.Unmarshal(d.file.Model.Vocab, &ids); err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	size := 0
	for text, id := range ids {
		if id < 0 || id >= maxTokens {
			return fmt.Errorf("model.vocab: token %.40q has id %d", text, id)
		}
		size = max(size, id+1)
	}
	if err := d.grow(size, len(ids)); err != nil {
		return err
	}
	for text, id := range ids {
		if d.vocab.Types[id] != int(Unused) {
			return fmt.Errorf("model.vocab: tokens %.40q and %.40q have id %d", min(text, d.vocab.Tokens[id]), max(text, d.vocab.Tokens[id]), id)
		}
		d.set(token.ID(id), text, Normal)
	}
	return nil
}

// pieces reads a vocabulary that lists texts and scores.
func (d *document) pieces() error {
	var list []json.RawMessage
	if err := json.Unmarshal(d.file.Model.Vocab, &list); err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	if err := d.grow(len(list), len(list)); err != nil {
		return err
	}
	d.pipe.scores = make([]float64, len(list))
	for i, item := range list {
		var text string
		pair := []any{&text, &d.pipe.scores[i]}
		if err := json.Unmarshal(item, &pair); err != nil {
			return fmt.Errorf("model.vocab: item %d: %w", i, err)
		} else if len(pair) != 2 || text == "" {
			return fmt.Errorf("model.vocab: item %d is not a text and a score", i)
		}
		d.set(token.ID(i), text, Normal)
	}
	return nil
}

// grow makes the vocabulary hold size tokens. New tokens are unused. The number of tokens that the file lists bounds the
// memory.
func (d *document) grow(size, listed int) error {
	if size > maxTokens || size > 2*listed+len(d.vocab.Tokens)+1<<12 {
		return fmt.Errorf("ids up to %d for %d tokens", size-1, listed)
	}
	if d.ids == nil {
		d.ids = make(map[string]token.ID, size)
	}
	for i := len(d.vocab.Tokens); i < size; i++ {
		d.vocab.Tokens = append(d.vocab.Tokens, fmt.Sprintf("[PAD%d]", i))
		d.vocab.Types = append(d.vocab.Types, int(Unused))
	}
	return nil
}

func (d *document) set(id token.ID, text string, ty Type) {
	d.vocab.Tokens[id], d.vocab.Types[id] = text, int(ty)
	d.ids[text] = id
}

// merges reads merges, each a text with a space between two pieces or a list of two. Both pieces and their concatenation must be
// tokens, as in Hugging Face's tokenizers.
func (d *document) merges() error {
	var list []json.RawMessage
	if err := json.Unmarshal(d.file.Model.Merges, &list); err != nil {
		return fmt.Errorf("model.merges: %w", err)
	}
	d.vocab.Merges = make([]string, len(list))
	for i, item := range list {
		var pair []string
		if len(item) > 0 && item[0] == '[' {
			if err := json.Unmarshal(item, &pair); err != nil {
				return fmt.Errorf("model.merges: %d: %w", i, err)
			}
		} else {
			var text string
			if err := json.Unmarshal(item, &text); err != nil {
				return fmt.Errorf("model.merges: %d: %w", i, err)
			}
			pair = strings.Split(text, " ")
		}
		if len(pair) != 2 || pair[0] == "" || pair[1] == "" || strings.Contains(pair[0]+pair[1], " ") {
			return fmt.Errorf("model.merges: %d is %.40q, not two pieces without a space", i, pair)
		}
		for _, text := range []string{pair[0], pair[1], pair[0] + pair[1]} {
			if _, ok := d.ids[text]; !ok {
				return fmt.Errorf("model.merges: %d needs %.40q, which is not a token", i, text)
			}
		}
		d.vocab.Merges[i] = pair[0] + " " + pair[1]
	}
	return nil
}

// added reads the added tokens, which are matched in the raw text.
func (d *document) added() error {
	size := len(d.vocab.Tokens)
	for _, a := range d.file.AddedTokens {
		if a.ID < 0 || a.ID >= maxTokens {
			return fmt.Errorf("added_tokens: token %.40q has id %d", a.Content, a.ID)
		}
		size = max(size, a.ID+1)
	}
	if err := d.grow(size, len(d.file.AddedTokens)); err != nil {
		return fmt.Errorf("added_tokens: %w", err)
	}
	for _, a := range d.file.AddedTokens {
		id := token.ID(a.ID)
		if other, ok := d.ids[a.Content]; ok && other != id {
			return fmt.Errorf("added_tokens: token %.40q has ids %d and %d", a.Content, min(id, other), max(id, other))
		} else if !ok && d.vocab.Types[id] != int(Unused) {
			return fmt.Errorf("added_tokens: tokens %.40q and %.40q have id %d", d.vocab.Tokens[id], a.Content, id)
		} else if a.Content == "" {
			return fmt.Errorf("added_tokens: token %d has no text", id)
		}
		ty := UserDefined
		if a.Special {
			ty = Control
		}
		d.set(id, a.Content, ty)
	}
	return nil
}

// special finds the tokens that have names.
func (d *document) special() error {
	v, c := &d.vocab, &d.config
	named := func(text string) token.ID {
		if id, ok := d.ids[text]; ok && text != "" {
			return id
		}
		return token.None
	}
	v.BOS, v.EOS, v.SEP = named(string(c.BOS)), named(string(c.EOS)), named(string(c.SEP))
	v.EOT, v.EOM, v.FIM = token.None, token.None, NoFIM
	if v.Model == "bert" && v.BOS == token.None {
		v.BOS = named(string(c.CLS))
	}
	v.UNK = named(string(c.UNK))
	if m := d.file.Model; m.UnkToken != nil {
		if v.UNK = named(*m.UnkToken); v.UNK == token.None && *m.UnkToken != "" {
			return fmt.Errorf("model.unk_token %.40q is not a token", *m.UnkToken)
		}
	} else if m.UnkID != nil {
		if *m.UnkID < 0 || *m.UnkID >= len(v.Tokens) {
			return fmt.Errorf("model.unk_id is %d, outside the vocabulary of %d", *m.UnkID, len(v.Tokens))
		}
		v.UNK = token.ID(*m.UnkID)
	}
	if v.UNK != token.None && v.Model != "gpt2" {
		v.Types[v.UNK] = int(Unknown)
	}
	if d.file.Model.ByteFallback {
		for i, text := range v.Tokens {
			if _, ok := parseByte(text); ok && v.Types[i] == int(Normal) {
				v.Types[i] = int(Byte)
			}
		}
	}
	if v.Model == "t5" {
		v.Scores = make([]float32, len(v.Tokens))
		d.pipe.scores = slices.Grow(d.pipe.scores, len(v.Tokens))[:len(v.Tokens)]
		for i, s := range d.pipe.scores {
			if v.Scores[i] = float32(s); math.IsInf(float64(v.Scores[i]), 0) {
				return fmt.Errorf("model.vocab: the score of token %d is %v", i, s)
			}
		}
	}
	return nil
}
