package tokenizer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/internal/text/token"
)

// TestLiteral: special tokens in literal spans are plain text, others are not.
func TestLiteral(t *testing.T) {
	k := must(t, smallBPE())
	bos, double := k.ids["<s>"], k.ids["<s><s>"]
	for _, c := range []struct {
		name, text string // stretches stand between «»
		want       []token.ID
	}{
		{"outside", "<s>«x»<s>", []token.ID{bos, 'x', bos}},
		{"inside", "<s>«<s>»", []token.ID{bos, '<', 's', '>'}},
		{"begins outside", "<«s>»<s>", []token.ID{'<', 's', '>', bos}},
		{"ends outside", "«<s»>", []token.ID{'<', 's', '>'}},
		{"around", "<«s»>", []token.ID{'<', 's', '>'}},
		{"a longer one gives way", "<s>«<s>»<s><s>", []token.ID{bos, '<', 's', '>', double}},
		{"a shorter one stays", "<s><«s»>", []token.ID{bos, '<', 's', '>'}},
		{"user-defined ones are text anyway", "«<tool>»", []token.ID{k.ids["<tool>"]}},
		{"two", "«<s»>«<s>»<s>", []token.ID{'<', 's', '>', '<', 's', '>', bos}},
		{"not UTF-8", "\xff«<s>\xfe»<s>", []token.ID{0xff, '<', 's', '>', 0xfe, bos}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, spans := stretches(c.text)
			got, err := k.Encode(nil, text, Options{Literal: spans})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := k.Encode(nil, "\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff", Options{Literal: []Span{{0, 1}}}); err == nil {
		t.Error("no byte is left to guard with, and there is no error")
	}
}

// stretches returns text without its marks, and the spans between them.
func stretches(text string) (string, []Span) {
	var spans []Span
	for {
		before, after, ok := strings.Cut(text, "«")
		if !ok {
			return text, spans
		}
		inner, after, _ := strings.Cut(after, "»")
		spans = append(spans, Span{len(before), len(before + inner)})
		text = before + inner + after
	}
}

// TestLiteralText: with all of a text literal its ids are those of plain text, with none those of parsed text,
// and any stretches keep its bytes.
func TestLiteralText(t *testing.T) {
	k := must(t, smallBPE())
	rapid.Check(t, func(t *rapid.T) {
		var text string
		var spans []Span
		for _, p := range rapid.SliceOfN(rapid.SampledFrom([]string{"<s>", "<", "s>", "</s>", "x", "<s><s>", "<tool>"}), 1, 8).Draw(t, "parts") {
			if rapid.Bool().Draw(t, "literal") {
				spans = append(spans, Span{len(text), len(text + p)})
			}
			text += p
		}
		encode := func(o Options) []token.ID {
			ids, err := k.Encode(nil, text, o)
			if err != nil {
				t.Fatal(err)
			}
			return ids
		}
		if diff := cmp.Diff(encode(Options{Plain: true}), encode(Options{Literal: []Span{{0, len(text)}}})); diff != "" {
			t.Errorf("all of %q literal:\n%s", text, diff)
		}
		got, err := k.Decode(encode(Options{Literal: spans}), true)
		if err != nil || got != text {
			t.Errorf("%q with stretches %v decodes to %q, %v", text, spans, got, err)
		}
	})
}
