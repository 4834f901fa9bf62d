package hf

import (
	"encoding/json"
	"path/filepath"
)

// uniXcoder is RoBERTa, which generates too where the vocabulary has tokens for the modes of UniXcoder. A folder that says how sentence-transformers pool is of a model that
// was trained without them.
func uniXcoder(f *FolderBuilder) {
	b, arch := &encodersBuilder{f}, "bert"
	if b.modal() && len(b.OptionalConfig(filepath.Join(b.Dir, "1_Pooling", ConfigName)).Values) == 0 {
		b.Config.Only("hidden_act", "gelu")
		arch = "unixcoder"
	}
	b.robertaAs(arch)
}

// modal reports whether the vocabulary has the tokens of the modes. What is wrong with the file is said where it is read whole.
func (b *encodersBuilder) modal() bool {
	text, err := ReadFile(filepath.Join(b.Dir, "tokenizer.json"))
	if err != nil {
		return false
	}
	var f struct {
		Model struct {
			Vocab map[string]json.RawMessage `json:"vocab"`
		} `json:"model"`
		Added []struct {
			Content string `json:"content"`
		} `json:"added_tokens"`
	}
	if json.Unmarshal(text, &f) != nil {
		return false
	}
	known := map[string]bool{}
	for _, a := range f.Added {
		known[a.Content] = true
	}
	for _, mode := range []string{"<encoder-only>", "<decoder-only>", "<encoder-decoder>"} {
		if _, ok := f.Model.Vocab[mode]; !ok && !known[mode] {
			return false
		}
	}
	return true
}
