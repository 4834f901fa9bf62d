package tokenizer

import (
	"strings"
	"testing"

	"grove/internal/text/token"
)

// FuzzEncode: with special tokens shown, decoding reverses encoding, parsed or plain, for any bytes but
// those that SentencePiece conflates.
func FuzzEncode(f *testing.F) {
	bpe, spm := must(f, smallBPE()), must(f, smallSPM())
	f.Add("hello the <s>12 aaaa</s>  <tool>\xe2\x82", false)
	f.Add(" \n<|im_end|> €é", true)
	f.Fuzz(func(t *testing.T, text string, plain bool) {
		for _, k := range []*Tokenizer{bpe, spm} {
			want := text
			if k == spm {
				want = strings.ReplaceAll(text, space, " ")
			}
			ids, err := k.Encode(nil, text, Options{Plain: plain})
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.Decode(ids, true)
			if err != nil || got != want {
				t.Fatalf("%q decodes to %q, %v", text, got, err)
			}
			if len(ids) > len(text)+1+strings.Count(text, ">") {
				t.Fatalf("%d ids for %d bytes", len(ids), len(text))
			}
		}
	})
}

// FuzzNew: no vocabulary makes New or what it builds panic. Lines of the input are tokens and merges.
func FuzzNew(f *testing.F) {
	f.Add("a\nb\nab\n<s>\n\n", "a b\nab ab", []byte{1, 1, 1, 3, 4}, []byte{5, 4, 3, 2, 1}, true, "abab<s>", int32(3))
	f.Add("<unk>\n▁a\n<0x0A>\n▁", "", []byte{2, 1, 6, 1}, []byte{0, 200, 0, 9}, false, " a\n", int32(-1))
	f.Fuzz(func(t *testing.T, tokens, merges string, types, scores []byte, byteLevel bool, text string, id int32) {
		v := Vocab{
			Model: "llama", Tokens: strings.Split(tokens, "\n"), BOS: token.ID(id), EOS: 0, EOT: token.None, EOM: token.ID(id),
			UNK: token.ID(id % 3), SEP: token.None, FIM: NoFIM, AddBOS: id%2 == 0, AddSpacePrefix: id%3 == 0, Name: text,
		}
		if byteLevel {
			v.Model, v.Pre, v.Merges = "gpt2", []string{"gpt-2", "llama-bpe", "falcon", "deepseek-llm", "gpt-4o"}[uint32(id)%5], strings.Split(merges, "\n")
		}
		for _, b := range types {
			v.Types = append(v.Types, int(b))
		}
		for _, b := range scores {
			v.Scores = append(v.Scores, float32(int8(b)))
		}
		k, err := New(v)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "tokenizer: ") || strings.ContainsRune(err.Error(), '\n') {
				t.Fatalf("%q", err)
			}
			return
		}
		ids, _ := k.Encode(nil, text, Options{Special: true})
		s, err := k.Stream(token.None, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if _, err := s.Next(id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := k.Decode(ids, false); err != nil {
			t.Fatal(err)
		}
	})
}
