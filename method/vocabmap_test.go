package method_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/compute"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/method"
)

// vocabulary is one under construction.
type vocabulary struct{ tokenizer.Vocab }

func (v *vocabulary) add(text string, ty tokenizer.Type) token.ID {
	v.Tokens, v.Types, v.Scores = append(v.Tokens, text), append(v.Types, int(ty)), append(v.Scores, 0)
	return token.ID(len(v.Tokens) - 1)
}

// pieces is a SentencePiece vocabulary: <unk>, <s>, </s>, the bytes, and pieces that merge in order.
func pieces(bytes bool, pieces ...string) *vocabulary {
	v := &vocabulary{tokenizer.Vocab{
		Model: "llama", EOT: token.None, EOM: token.None, SEP: token.None, FIM: tokenizer.NoFIM, AddBOS: true, AddSpacePrefix: true,
	}}
	v.UNK, v.BOS, v.EOS = v.add("<unk>", tokenizer.Unknown), v.add("<s>", tokenizer.Control), v.add("</s>", tokenizer.Control)
	for b := range 256 {
		if bytes {
			v.add(fmt.Sprintf("<0x%02X>", b), tokenizer.Byte)
		}
	}
	for i, s := range pieces {
		v.Scores[v.add(s, tokenizer.Normal)] = -float32(i)
	}
	return v
}

// byteLevel is a byte-level vocabulary: the bytes as their letters, what merges give, and an end.
func byteLevel(merges ...string) *vocabulary {
	v := &vocabulary{tokenizer.Vocab{
		Model: "gpt2", Pre: "gpt-2", BOS: token.None, EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: tokenizer.NoFIM,
	}}
	for b := range 256 {
		v.add(letters(string([]byte{byte(b)})), tokenizer.Normal)
	}
	for _, m := range merges {
		l, r, _ := strings.Cut(m, "|")
		v.add(letters(l+r), tokenizer.Normal)
		v.Merges = append(v.Merges, letters(l)+" "+letters(r))
	}
	v.EOS = v.add("<|endoftext|>", tokenizer.Control)
	return v
}

// letters writes bytes as byte-level vocabularies do: those that are printed by themselves, all others as the
// characters from U+0100 on.
func letters(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		n := rune(0x100)
		for o := range 256 {
			printed := o >= 33 && o <= 126 || o >= 161 && o <= 255 && o != 173
			switch {
			case o == int(c) && printed:
				b.WriteByte(0)
				n = rune(o)
			case o == int(c):
			case !printed && o < int(c):
				n++
			}
		}
		b.WriteRune(n)
	}
	return strings.ReplaceAll(b.String(), "\x00", "")
}

func build(t *testing.T, v *vocabulary) *tokenizer.Tokenizer {
	t.Helper()
	k, err := tokenizer.New(v.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// mapped returns the draft model's tokens of a text of the target, as it writes them.
func mapped(m *method.VocabMap, ids []token.ID, begins bool) (out []string) {
	_, draft := m.Tokenizers()
	for _, id := range m.Append(nil, ids, begins) {
		out = append(out, draft.Text(id))
	}
	return out
}

func TestVocabMap(t *testing.T) {
	english := []string{"▁t", "he", "▁the", "é", "a", "b", "ab", "h", "e", "t", "▁"}
	sp := pieces(true, english...)
	for _, c := range []struct {
		name          string
		target, draft *vocabulary
		text          []string // of the target's tokens
		way           method.Mapping
		want          []string // the draft model's
		str           string
	}{
		{"same", sp, pieces(true, english...), []string{"<s>", "▁the"}, method.SameVocabulary, []string{"<s>", "▁the"}, "same vocabulary"},
		{
			"padded", pieces(true, append(slices.Clone(english), "he▁the")...), sp, []string{"<s>", "he▁the", "a"}, method.SameVocabulary,
			[]string{"<s>", "he", "▁the", "a"}, "same vocabulary", // what the draft model lacks is written anew
		},
		{
			"other order", sp, pieces(true, "ab", "e", "▁the", "h", "t", "a", "b", "▁t", "he", "▁", "é"), []string{"<s>", "▁the", "ab", "<0x41>", "</s>"},
			method.SharedTokens, []string{"<s>", "▁the", "ab", "<0x41>", "</s>"}, "shared 100 % of tokens",
		},
		{
			"lacking", sp, pieces(true, "x", "▁t", "he", "h", "e", "t", "▁"), []string{"▁the", "ab", "é", "he", "<0xC3>", "<0xA9>"}, method.SharedTokens,
			// what stands for no token is written in bytes, its neighbour with it
			[]string{"<s>", "▁t", "he", "<0x61>", "<0x62>", "<0xC3>", "<0xA9>", "he", "<0xC3>", "<0xA9>"}, "shared 98 % of tokens",
		},
		{
			"letters and bytes", byteLevel("t|h", " |th", "th|e"), sp, []string{"t", "Ġth", "the", letters("\n"), letters("\xc3"), "<|endoftext|>", "a"},
			method.SharedTokens, []string{"<s>", "t", "▁t", "h", "t", "he", "<0x0A>", "<0xC3>", "</s>", "a"}, "shared 96 % of tokens",
		},
		{
			"bytes and letters", sp, byteLevel("t|h"), []string{"<s>", "▁the", "é", "<0x0A>", "<unk>", "a", "</s>"},
			method.SharedTokens, []string{"Ġ", "th", "e", letters("\xc3"), letters("\xa9"), letters("\n"), "a", "<|endoftext|>"}, "shared 96 % of tokens",
		},
		{"no text", sp, byteLevel(), nil, method.SharedTokens, nil, "shared 96 % of tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, draft := build(t, c.target), build(t, c.draft)
			m, err := method.NewVocabMap(target, draft)
			if err != nil {
				t.Fatal(err)
			}
			var ids []token.ID
			for _, text := range c.text {
				id, ok := target.ID(text)
				if !ok {
					t.Fatalf("no token %q", text)
				}
				ids = append(ids, id)
			}
			if m.Mapping() != c.way || m.String() != c.str {
				t.Errorf("%v: %v, want %v: %s", m.Mapping(), m, c.way, c.str)
			}
			if got := mapped(m, ids, true); !cmp.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			for id := range token.ID(target.Size()) {
				d := m.ToDraft(id)
				if d == token.None {
					continue
				}
				if a, b := spells(t, target, id), spells(t, draft, d); a != b && target.Type(id) != tokenizer.Control {
					t.Errorf("%q stands for %q", b, a)
				}
			}
		})
	}
}

func spells(t *testing.T, k *tokenizer.Tokenizer, id token.ID) string {
	b, err := k.AppendPiece(nil, id, true)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestVocabMapWays: vocabularies that share little speak through text, unless one does not keep it.
func TestVocabMapWays(t *testing.T) {
	var some, others []string
	for i := range 400 {
		some, others = append(some, fmt.Sprintf("some%d", i)), append(others, fmt.Sprintf("others%d", i))
	}
	a, b := build(t, pieces(true, some...)), build(t, pieces(true, others...))
	lower := func(words ...string) *vocabulary { // WordPiece
		v := &vocabulary{tokenizer.Vocab{
			Model: "bert", BOS: token.None, EOS: token.None, EOT: token.None, EOM: token.None, FIM: tokenizer.NoFIM, Lowercase: true, StripAccents: true,
		}}
		v.UNK, v.SEP = v.add("[UNK]", tokenizer.Unknown), v.add("[SEP]", tokenizer.Control)
		for _, w := range words {
			v.add(w, tokenizer.Normal)
		}
		return v
	}
	m, err := method.NewVocabMap(a, b)
	if err != nil || m.Mapping() != method.ThroughText || m.String() != "through text (shared 39 % of tokens)" {
		t.Errorf("%v, %v", m, err)
	}
	if m, err = method.NewVocabMap(a, build(t, lower("<0xQQ", "some1"))); err != nil || m.Mapping() != method.SharedTokens {
		t.Errorf("one token is shared, and no text: %v, %v", m, err)
	}
	for _, pair := range [][2]*tokenizer.Tokenizer{{a, build(t, lower("word"))}, {build(t, lower("word")), a}} {
		if m, err := method.NewVocabMap(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "share no tokens") {
			t.Errorf("%v, %v: want a refusal", m, err)
		}
	}
}

// TestSpread puts logits to their places.
func TestSpread(t *testing.T) {
	target, draft := build(t, pieces(false, "a", "b", "c", "d", "e")), build(t, pieces(false, "e", "x", "c", "a", "b"))
	m, err := method.NewVocabMap(target, draft)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, 10) // more than the tokenizer knows: padding
	m.Spread(dst, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	const none = compute.Masked
	if want := []float32{none, 2, 3, 7, 8, 6, none, 4, none, none}; !slices.Equal(dst, want) {
		t.Errorf("%v, want %v", dst, want)
	}
	m.Spread(dst, []float32{1, 2, 3, 4}) // a head that is smaller
	if want := []float32{none, 2, 3, none, none, none, none, 4, none, none}; !slices.Equal(dst, want) {
		t.Errorf("%v, want %v", dst, want)
	}
	if n := testing.AllocsPerRun(10, func() { m.Spread(dst, []float32{1, 2, 3, 4}) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAppendKeepsTheText appends random tokens: the bytes stay, whatever they are written in.
func TestAppendKeepsTheText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	target := build(t, byteLevel("t|h", " |th", "th|e", "\xc3|\xa9", "\xf0|\x9f", "\xf0\x9f|\x98"))
	draft := build(t, pieces(true, "▁t", "he", "th", "é", "h", "t", "😀"))
	m, err := method.NewVocabMap(target, draft)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		var ids []token.ID
		for range rng.IntN(20) {
			ids = append(ids, token.ID(rng.IntN(target.Size()-1)))
		}
		want, err := target.Decode(ids, false)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, id := range m.Append(nil, ids, false) {
			got += spells(t, draft, id)
		}
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	if got := m.Append(nil, []token.ID{token.ID(target.Size())}, false); len(got) != 0 {
		t.Errorf("an id that no tokenizer knows became %v", got)
	}
	var none *method.VocabMap
	if got := none.Append(nil, []token.ID{3, 4}, true); !slices.Equal(got, []token.ID{3, 4}) || none.String() != "same vocabulary" {
		t.Errorf("without a map: %v, %v", got, none)
	}
}
