package tokenizer

import (
	"encoding/json"
	"fmt"

	"grove/internal/text/token"
	"grove/internal/weights/gguf"
)

// keyParts is the key of the parts of a tokenizer.json that no key of GGUF has: its normalizers, pre-tokenizers and added tokens, as JSON. A
// byte-level file with it needs no name of a pre-tokenizer (tokenizer.ggml.pre).
const keyParts = "grove.tokenizer.parts"

// partsEntry returns the entry of keyParts.
func (d *document) partsEntry() (gguf.KV, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(d.text, &all); err != nil {
		return gguf.KV{}, err
	}
	kept := map[string]any{"model": map[string]any{"type": d.file.Model.Type, "ignore_merges": d.file.Model.IgnoreMerges}}
	for _, name := range []string{"normalizer", "pre_tokenizer", "decoder", "added_tokens"} {
		if part, ok := all[name]; ok {
			kept[name] = part
		}
	}
	b, err := json.Marshal(kept)
	return gguf.KV{Key: keyParts, Value: gguf.Of(string(b))}, err
}

// withParts builds the tokenizer of a byte-level vocabulary by the parts of its tokenizer.json.
func withParts(v Vocab, parts string) (*Tokenizer, error) {
	d := &document{vocab: v, ids: make(map[string]token.ID, len(v.Tokens))}
	if err := json.Unmarshal([]byte(parts), &d.file); err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", keyParts, err)
	}
	for id, text := range v.Tokens {
		d.ids[text] = token.ID(id)
	}
	for _, a := range d.file.AddedTokens {
		if a.ID < 0 || a.ID >= len(v.Tokens) || a.Content == "" {
			return nil, fmt.Errorf("tokenizer: %s: added token %.40q has id %d", keyParts, a.Content, a.ID)
		}
	}
	d.pipe.whole = d.file.Model.IgnoreMerges
	if err := d.parts(); err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", keyParts, err)
	}
	if v.AddBOS && v.BOS != token.None {
		d.pipe.begin = []token.ID{v.BOS}
	}
	if v.AddEOS && v.EOS != token.None {
		d.pipe.end = []token.ID{v.EOS}
	}
	return d.tokenizer()
}
