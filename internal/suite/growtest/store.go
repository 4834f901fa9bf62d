package growtest

import (
	"bytes"
	"testing"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/method/datastore"
)

// Store returns a datastore of texts in a tokenizer's tokens; nil: one of 1000 tokens.
func Store(tb testing.TB, words *tokenizer.Tokenizer, texts ...[]token.ID) *datastore.Store {
	tb.Helper()
	if words == nil {
		words = thousand(tb)
	}
	b := datastore.NewBuilder(words)
	for _, text := range texts {
		if err := b.Add(text); err != nil {
			tb.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := b.Write(&out); err != nil {
		tb.Fatal(err)
	}
	s, err := datastore.Parse(out.Bytes())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// thousand returns a tokenizer of 1000 characters.
func thousand(tb testing.TB) *tokenizer.Tokenizer {
	tb.Helper()
	v := tokenizer.Vocab{
		Model: "llama", BOS: token.None, EOS: 0, EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: tokenizer.NoFIM,
		Scores: make([]float32, 1000),
	}
	for i := range 1000 {
		v.Tokens = append(v.Tokens, string(rune(0x4e00+i)))
	}
	words, err := tokenizer.New(v)
	if err != nil {
		tb.Fatal(err)
	}
	return words
}
