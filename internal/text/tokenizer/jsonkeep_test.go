package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"grove/internal/text/token"
	"grove/internal/weights/gguf"
)

// TestKeptParts compares tokenizers whose pre-tokenizers have no name in GGUF files, as files and as the metadata that keeps their parts, with the ids of
// Hugging Face's tokenizers 0.23, which has trained them and made testdata/parts.json.
func TestKeptParts(t *testing.T) {
	b, err := os.ReadFile("testdata/parts.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name  string
		File  json.RawMessage
		Texts []string
		IDs   [][]token.ID
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 4 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			plain, err := ParseJSON(c.File, nil)
			if err != nil {
				t.Fatal(err)
			}
			metadata, err := MetadataFromJSON(c.File, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			f, err := gguf.New("", metadata, nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := FromGGUF(f)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range c.Texts {
				for name, k := range map[string]*Tokenizer{"the file": plain, "its metadata": kept} {
					got, err := k.Encode(nil, text, Options{Special: true})
					if err != nil || !slices.Equal(got, c.IDs[i]) {
						t.Errorf("%s: %q: %v, want %v; %v", name, text, got, c.IDs[i], err)
					}
				}
			}
		})
	}
}

// TestKeptPartsRefused: damaged parts are errors.
func TestKeptPartsRefused(t *testing.T) {
	v := Vocab{Model: "gpt2", Tokens: []string{"a"}, Types: []int{1}, BOS: token.None, EOS: token.None}
	for _, parts := range []string{"", "{", `{"added_tokens":[{"id":7,"content":"x"}]}`, `{"normalizer":{"type":"Klingon"}}`, `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"}}`} {
		if _, err := withParts(v, parts); err == nil {
			t.Errorf("%q is taken", parts)
		}
	}
}

// TestUnused: rows of the embedding without a token print nothing.
func TestUnused(t *testing.T) {
	metadata, err := MetadataFromJSON([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}}`), nil, 4)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.New("", metadata, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, special := range []bool{false, true} {
		if text, err := k.Decode([]token.ID{0, 3, 2, 1}, special); text != "ab" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
}
