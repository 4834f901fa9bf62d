package growtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Vocabulary builds a tokenizer whose merges make the words: "llama" is a SentencePiece one, "gpt2" a byte-level one,
// "ascii" one that lacks bytes.
func Vocabulary(tb testing.TB, model string, words ...string) *tokenizer.Tokenizer {
	tb.Helper()
	v := tokenizer.Vocab{
		Model: model, Pre: "gpt-2", BOS: token.None, EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: tokenizer.NoFIM,
	}
	add := func(text string, ty tokenizer.Type) token.ID {
		if i := slices.Index(v.Tokens, text); i >= 0 {
			return token.ID(i)
		}
		v.Tokens, v.Types, v.Scores = append(v.Tokens, text), append(v.Types, int(ty)), append(v.Scores, -float32(len(v.Tokens)))
		return token.ID(len(v.Tokens) - 1)
	}
	if model == "llama" {
		v.UNK, v.BOS, v.EOS = add("<unk>", tokenizer.Unknown), add("<s>", tokenizer.Control), add("</s>", tokenizer.Control)
		v.AddBOS, v.AddSpacePrefix = true, true
		for b := range 256 {
			add(fmt.Sprintf("<0x%02X>", b), tokenizer.Byte)
		}
	} else {
		v.EOS = add("<|endoftext|>", tokenizer.Control)
		for b := range 256 {
			if model == "gpt2" || b < 128 {
				add(letter(byte(b)), tokenizer.Normal)
			}
		}
		v.Model = "gpt2"
	}
	for _, w := range words {
		whole := ""
		for _, c := range []byte(w) {
			if model == "llama" {
				break
			}
			if l := letter(c); whole == "" {
				whole = l
			} else {
				v.Merges = append(v.Merges, whole+" "+l)
				whole += l
				add(whole, tokenizer.Normal)
			}
		}
		if model == "llama" {
			for _, c := range strings.ReplaceAll(w, " ", "▁") {
				whole += string(c)
				add(whole, tokenizer.Normal)
				add(string(c), tokenizer.Normal)
			}
		}
	}
	k, err := tokenizer.New(v)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// letter is how byte-level vocabularies write a byte.
func letter(c byte) string {
	n := rune(0x100)
	for o := range int(c) + 1 {
		printed := o >= 33 && o <= 126 || o >= 161 && o <= 255 && o != 173
		if o == int(c) && printed {
			return string(rune(c))
		}
		if !printed && o < int(c) {
			n++
		}
	}
	return string(n)
}

// Filler makes vocabularies differ by more than half.
func Filler(name string) (words []string) {
	for i := range 300 {
		words = append(words, fmt.Sprintf("%s%c%c", name, 'A'+i/26, 'a'+i%26))
	}
	return words
}
