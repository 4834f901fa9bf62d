package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/internal/text/token"
)

func TestDecode(t *testing.T) {
	spm, bpe := smallSPM(), smallBPE()
	for _, c := range []struct {
		name         string
		vocab        Vocab
		tokens       string
		plain, shown string // without and with special tokens
	}{
		{"bytes", bpe, "hello Ġthe Ċ ÿ", "hello the\n\xff", "hello the\n\xff"},
		{"control", bpe, "<s> he </s> <tool> <|im_end|>", "he<tool>", "<s>he</s><tool><|im_end|>"},
		{"spm first space", spm, "▁the ▁the", "the the", "the the"},
		{"spm one space only", spm, "▁▁ he", " he", " he"},
		{"spm byte that is a space", spm, "<0x20> he", "he", "he"},
		{"spm after special", spm, "<s> ▁the </s> ▁the <tool> ▁he", "thethe<tool>he", "<s>the</s>the<tool>he"},
		{"spm bytes", spm, "▁ <0xE2> <0x82> <0xAC>", "€", "€"},
		{"spm unknown", spm, "▁the <unk>", "the", "the<unk>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := must(t, c.vocab)
			var ids []token.ID
			for text := range strings.SplitSeq(c.tokens, " ") {
				if id, ok := k.ID(text); ok {
					ids = append(ids, id)
				}
			}
			for special, want := range map[bool]string{false: c.plain, true: c.shown} {
				got, err := k.Decode(ids, special)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("special %v: error %v, -want +got\n%s", special, err, diff)
				}
			}
		})
	}
}

func TestDecodeOutside(t *testing.T) {
	k := must(t, smallSPM())
	for id, want := range map[token.ID]string{
		token.None: "tokenizer: token id -1 is outside the vocabulary of 282",
		282:        "tokenizer: token id 282 is outside the vocabulary of 282",
		1<<31 - 1:  "tokenizer: token id 2147483647 is outside the vocabulary of 282",
	} {
		_, errDecode := k.Decode([]token.ID{1, id}, true)
		_, errPiece := k.AppendPiece(nil, id, true)
		s, err := k.Stream(token.None, true)
		if err != nil {
			t.Fatal(err)
		}
		_, errNext := s.Next(id)
		for _, err := range []error{errDecode, errPiece, errNext} {
			if err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
		if k.Text(id) != "" || k.Type(id) != Undefined || k.IsEOG(id) {
			t.Errorf("id %d has text %q, type %d, ends an answer: %v", id, k.Text(id), k.Type(id), k.IsEOG(id))
		}
	}
	if _, err := k.Stream(282, true); err == nil {
		t.Error("a stream after a token outside the vocabulary")
	}
}

// TestStream: a stream's output is the whole text with each byte that is not UTF-8 replaced, and
// every part of it is whole characters.
func TestStream(t *testing.T) {
	for _, v := range []Vocab{smallBPE(), smallSPM()} {
		k := must(t, v)
		t.Run(v.Model, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				// Bytes that begin, go on with and break characters, and any token.
				parts := rapid.SliceOf(rapid.OneOf(
					rapid.SampledFrom([]string{"€", "\xe2", "\x82", "\xac", "\xf0\x9f", "🦙", "\xff", "a", " the", "\xed\xa0\x80", "\xc3", "é", "\xf4\x90"}),
					rapid.Custom(func(t *rapid.T) string {
						return k.Text(token.ID(rapid.IntRange(0, k.Size()-1).Draw(t, "id")))
					}))).Draw(t, "parts")
				ids, err := k.Encode(nil, strings.Join(parts, ""), Options{})
				if err != nil {
					t.Fatal(err)
				}
				special := rapid.Bool().Draw(t, "special")
				whole, err := k.Decode(ids, special)
				if err != nil {
					t.Fatal(err)
				}
				s, err := k.Stream(token.None, special)
				if err != nil {
					t.Fatal(err)
				}
				var got strings.Builder
				for _, id := range ids {
					text, err := s.Next(id)
					if err != nil || !utf8.ValidString(text) {
						t.Fatalf("Next(%d) = %q, %v", id, text, err)
					}
					got.WriteString(text)
					if held := string(s.held); len(held) >= utf8.UTFMax || utf8.FullRuneInString(held) && held != "" {
						t.Fatalf("holds back %q", held)
					}
				}
				got.WriteString(s.Flush())
				if diff := cmp.Diff(string([]rune(whole)), got.String()); diff != "" {
					t.Fatalf("-whole +stream\n%s", diff)
				}
				if s.Flush() != "" {
					t.Fatal("flushes twice")
				}
			})
		})
	}
}

func TestStreamGoesOn(t *testing.T) {
	k := must(t, smallSPM())
	the, _ := k.ID("▁the")
	for prev, want := range map[token.ID]string{token.None: "the", k.BOS(): "the", the: " the"} {
		s, err := k.Stream(prev, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Next(the); got != want || err != nil {
			t.Errorf("after %d: %q, %v, want %q", prev, got, err, want)
		}
	}
}

// TestNoAllocation: encoding words that are remembered, and decoding, allocate nothing a token.
func TestNoAllocation(t *testing.T) {
	k := must(t, smallSPM())
	dst, err := k.Encode(nil, strings.Repeat(" the hell", 100), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := k.Stream(token.None, true)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 1<<12)
	if n := testing.AllocsPerRun(10, func() {
		buf = buf[:0]
		for _, id := range dst {
			buf, _ = k.AppendPiece(buf, id, true)
			_, _ = s.Next(id)
		}
	}); n != 0 {
		t.Errorf("decoding %d tokens allocates %v times", len(dst), n)
	}
	text := strings.Repeat(" the hell", 1000)
	dst = make([]token.ID, 0, len(text))
	if n := testing.AllocsPerRun(10, func() { dst, _ = k.Encode(dst[:0], text, Options{}) }); n > 20 {
		t.Errorf("encoding %d tokens allocates %v times", len(dst), n)
	}
}
