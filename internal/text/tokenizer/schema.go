// schema.go has the types of the JSON of a tokenizer.json and a tokenizer_config.json of Hugging Face: the fields that
// ids depend on.

package tokenizer

import "encoding/json"

// SchemaFile is a tokenizer.json.
type SchemaFile struct {
	AddedTokens   []SchemaAdded `json:"added_tokens"`
	Normalizer    *SchemaPart   `json:"normalizer"`
	PreTokenizer  *SchemaPart   `json:"pre_tokenizer"`
	PostProcessor *SchemaPart   `json:"post_processor"`
	Decoder       *SchemaPart   `json:"decoder"`
	Model         SchemaModel   `json:"model"`
}

// SchemaAdded is a token that is added to the vocabulary.
type SchemaAdded struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// SchemaModel is the model that turns words into ids.
type SchemaModel struct {
	Type          string          `json:"type"`
	Vocab         json.RawMessage `json:"vocab"`
	Merges        json.RawMessage `json:"merges"`
	UnkToken      *string         `json:"unk_token"`
	UnkID         *int            `json:"unk_id"`
	Dropout       *float64        `json:"dropout"`
	Prefix        *string         `json:"continuing_subword_prefix"`
	Suffix        *string         `json:"end_of_word_suffix"`
	FuseUnk       bool            `json:"fuse_unk"`
	ByteFallback  bool            `json:"byte_fallback"`
	IgnoreMerges  bool            `json:"ignore_merges"`
	MaxInputChars int             `json:"max_input_chars_per_word"`
}

// SchemaConfig is a tokenizer_config.json.
type SchemaConfig struct {
	BOS    SchemaNamed `json:"bos_token"`
	EOS    SchemaNamed `json:"eos_token"`
	UNK    SchemaNamed `json:"unk_token"`
	SEP    SchemaNamed `json:"sep_token"`
	CLS    SchemaNamed `json:"cls_token"`
	PAD    SchemaNamed `json:"pad_token"`
	AddBOS *bool       `json:"add_bos_token"`
	AddEOS *bool       `json:"add_eos_token"`
}

// SchemaNamed is the text of a token, in JSON a string or an object with the field content.
type SchemaNamed string

// UnmarshalJSON implements json.Unmarshaler.
func (n *SchemaNamed) UnmarshalJSON(b []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if len(b) > 0 && b[0] == '{' {
		err := json.Unmarshal(b, &object)
		*n = SchemaNamed(object.Content)
		return err
	}
	return json.Unmarshal(b, (*string)(n))
}

// SchemaPart is a normalizer, pre-tokenizer, post-processor or decoder, or a sequence of them.
type SchemaPart struct {
	Type          string        `json:"type"`
	Normalizers   []*SchemaPart `json:"normalizers"`
	PreTokenizers []*SchemaPart `json:"pretokenizers"`
	Processors    []*SchemaPart `json:"processors"`
	Decoders      []*SchemaPart `json:"decoders"`

	Pattern struct {
		String *string
		Regex  *string
	} `json:"pattern"`
	Content   string `json:"content"`
	Prepend   string `json:"prepend"`
	Behavior  string `json:"behavior"`
	Invert    bool   `json:"invert"`
	Charsmap  []byte `json:"-"`
	CharsText string `json:"precompiled_charsmap"`

	AddPrefixSpace *bool   `json:"add_prefix_space"`
	UseRegex       *bool   `json:"use_regex"`
	Replacement    string  `json:"replacement"`
	PrependScheme  string  `json:"prepend_scheme"`
	Split          *bool   `json:"split"`
	Individual     bool    `json:"individual_digits"`
	Lowercase      *bool   `json:"lowercase"`
	StripAccents   *bool   `json:"strip_accents"`
	CleanText      *bool   `json:"clean_text"`
	Ideographs     *bool   `json:"handle_chinese_chars"`
	StripLeft      *bool   `json:"strip_left"`
	StripRight     *bool   `json:"strip_right"`
	Start          int     `json:"start"`
	Stop           int     `json:"stop"`
	Prefix         *string `json:"prefix"`

	Single  []SchemaPiece `json:"single"`
	Special map[string]struct {
		IDs []int `json:"ids"`
	} `json:"special_tokens"`
	SEP json.RawMessage `json:"sep"`
	CLS json.RawMessage `json:"cls"`
}

// SchemaPiece is one part of a template.
type SchemaPiece struct {
	Sequence *struct {
		ID string `json:"id"`
	} `json:"Sequence"`
	SpecialToken *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
}

// Flat returns the parts of a sequence in order, with the sequences within it replaced by their parts. nil has no parts.
func (p *SchemaPart) Flat() []*SchemaPart {
	if p == nil {
		return nil
	}
	if p.Type != "Sequence" {
		return []*SchemaPart{p}
	}
	var out []*SchemaPart
	for _, parts := range [][]*SchemaPart{p.Normalizers, p.PreTokenizers, p.Processors, p.Decoders} {
		for _, q := range parts {
			out = append(out, q.Flat()...)
		}
	}
	return out
}

// Scheme returns the prepend scheme of a Metaspace: always, first or never.
func (p *SchemaPart) Scheme() string {
	if p.AddPrefixSpace != nil && !*p.AddPrefixSpace {
		return "never"
	}
	if p.PrependScheme == "" {
		return "always"
	}
	return p.PrependScheme
}
