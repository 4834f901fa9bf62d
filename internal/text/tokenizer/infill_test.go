package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// vocabulary makes a tokenizer of ASCII, its begin and end tokens, and some more tokens.
func vocabulary(t *testing.T, ends bool, more ...string) *Tokenizer {
	t.Helper()
	v := Vocab{Model: "gpt2", Pre: "gpt-2", EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: NoFIM, AddBOS: ends, AddEOS: ends}
	for c := '!'; c <= '~'; c++ {
		v.Tokens = append(v.Tokens, string(c))
	}
	v.Tokens = append(v.Tokens, "Ġ", "Ċ", "<s>", "</s>")
	v.BOS, v.EOS = token.ID(len(v.Tokens)-2), token.ID(len(v.Tokens)-1)
	v.Tokens = append(v.Tokens, more...)
	k, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// show writes ids as the texts of their tokens, those with more than a character in brackets.
func show(k *Tokenizer, ids []token.ID) string {
	var b strings.Builder
	for _, id := range ids {
		if text := k.Text(id); len(text) > 1 && text != "Ġ" && text != "Ċ" {
			b.WriteString("[" + text + "]")
		} else {
			b.WriteString(strings.NewReplacer("Ġ", " ", "Ċ", "\n").Replace(text))
		}
	}
	return b.String()
}

// forms are vocabularies, and the prompt of each for the prefix ab<mask_1> and the suffix cd.
var forms = []struct {
	name   string
	ends   bool
	tokens []string
	source bool
	want   string
	stop   string
	whole  bool
}{
	{name: "prefix, suffix, middle", tokens: []string{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}, want: "[<fim_prefix>]ab<mask_1>[<fim_suffix>]cd[<fim_middle>]"},
	{name: "CodeGen 2", tokens: []string{"<|endoftext|>", "<mask_1>", "<sep>", "<eom>"}, want: "ab<mask_1>[<mask_1>]cd[<|endoftext|>][<sep>][<mask_1>]", stop: "<eom>"},
	{name: "CodeGen 2, around", ends: true, tokens: []string{"<|endoftext|>", "<mask_1>", "<sep>", "<eom>"}, want: "[<s>]ab<mask_1>[<mask_1>]cd[<|endoftext|>][<sep>][<mask_1>]", stop: "<eom>"},
	{name: "UniXcoder", ends: true, tokens: []string{"<encoder-only>", "<decoder-only>", "<encoder-decoder>", "<mask0>"},
		want: "[<s>][<encoder-decoder>][</s>]ab<mask_1>[<mask0>]cd[</s>]", whole: true},
	{name: "T5", ends: true, tokens: []string{"<extra_id_0>", "<extra_id_1>"}, source: true, want: "[<s>]ab<mask_1>[<extra_id_0>]cd[</s>]", stop: "<extra_id_1>"},
	{name: "T5's tokens of a decoder", tokens: []string{"<extra_id_0>", "<extra_id_1>"}},
	{name: "CodeGen 2's tokens of an encoder-decoder", tokens: []string{"<|endoftext|>", "<mask_1>", "<sep>", "<eom>"}, source: true},
	{name: "no end of a gap", tokens: []string{"<|endoftext|>", "<mask_1>", "<sep>"}},
	{name: "a gap without modes", ends: true, tokens: []string{"<encoder-decoder>", "<mask0>"}},
	{name: "none"},
}

// TestForms expects the prompt of each form, with special tokens in the parts as plain text, and [ErrNoInfill] of other vocabularies.
func TestForms(t *testing.T) {
	for _, c := range forms {
		t.Run(c.name, func(t *testing.T) {
			k := vocabulary(t, c.ends, c.tokens...)
			f, err := InfillOf(k, c.source)
			if c.want == "" {
				if !errors.Is(err, ErrNoInfill) {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ids, err := f.Encode(nil, "ab<mask_1>", "cd", nil)
			if got := show(k, ids); got != c.want || err != nil {
				t.Errorf("prompt %s, %v, want %s", got, err, c.want)
			}
			if got := show(k, f.Ends); got != strings.ReplaceAll("["+c.stop+"]", "[]", "") || f.Whole != c.whole {
				t.Errorf("ends %s, whole %v", got, f.Whole)
			}
			var parts []token.ID
			if _, err := f.Encode(nil, "ab<mask_1>", "cd", func(ids []token.ID) error { parts = append(parts, ids...); return nil }); err != nil || !slices.Equal(ids, parts) {
				t.Errorf("in parts %s, %v", show(k, parts), err)
			}
		})
	}
}

// TestFiles: files go before the prefix, behind the tokens that the vocabulary has for them.
func TestFiles(t *testing.T) {
	files := []InfillFile{{"a.c", "he"}, {"b<s>", "<|file_sep|>"}}
	for _, tt := range []struct {
		name  string
		marks []string
		want  string
	}{
		{"none", nil, "\n\n--- snippet ---\n\nhe\n\n--- snippet ---\n\n<|file_sep|>"},
		{"files", []string{"<|file_sep|>"}, "[<|file_sep|>]a.c\nhe[<|file_sep|>]b<s>\n<|file_sep|>[<|file_sep|>]filename\n"},
		{"repository", []string{"<|file_sep|>", "<|repo_name|>"}, "[<|repo_name|>]myproject\n[<|file_sep|>]a.c\nhe[<|file_sep|>]b<s>\n<|file_sep|>[<|file_sep|>]filename\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := vocabulary(t, true, append([]string{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}, tt.marks...)...)
			f, err := InfillOf(k, false)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := f.Encode(nil, "h", "l", nil, files...)
			if want := "[<s>]" + tt.want + "[<|fim_prefix|>]h[<|fim_suffix|>]l[<|fim_middle|>]"; show(k, ids) != want || err != nil {
				t.Errorf("%s, %v, want %s", show(k, ids), err, want)
			}
		})
	}
}
