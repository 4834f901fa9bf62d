package tokenizer

import (
	"testing"

	"pgregory.net/rapid"

	"grove/internal/text/token"
)

// TestInside encodes texts that continue others: Encode puts no space before them and keeps their own.
func TestInside(t *testing.T) {
	asIs := func(v Vocab) Vocab { v.MergeSpaces = false; return v }
	for _, c := range []struct {
		name, text, want string
		vocab            Vocab
	}{
		{"piece", "he", "he", smallSPM()},
		{"own space", " he", "▁he", smallSPM()},
		{"two own spaces", "  he", "▁▁ he", smallSPM()},
		{"written space", "▁he", "▁he", smallSPM()},
		{"after a special token", "<tool>he", "<tool> ▁he", smallSPM()},
		{"unigram", "the", "t he", asIs(smallUnigram())},
		{"unigram, own space", " the", "▁the", asIs(smallUnigram())},
		{"merged spaces", "the  there", "t he ▁there", smallUnigram()},
		{"merged own spaces", "   the", "▁the", smallUnigram()},
		{"bytes", " the", " the", smallBPE()},
		{"empty", "", "", smallSPM()},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := must(t, c.vocab)
			ids, err := k.Encode(nil, c.text, Options{Inside: true})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for i, id := range ids {
				if i > 0 {
					got += " "
				}
				text := k.Text(id)
				if c.vocab.Model == "gpt2" {
					text = k.raw[id]
				}
				got += text
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestPiecesAreTheText joins pieces as Decode does.
func TestPiecesAreTheText(t *testing.T) {
	for name, v := range map[string]Vocab{"bytes": smallBPE(), "pieces": smallSPM()} {
		k := must(t, v)
		rapid.Check(t, func(t *rapid.T) {
			ids := rapid.SliceOf(rapid.Map(rapid.IntRange(0, k.Size()-1), func(i int) token.ID { return token.ID(i) })).Draw(t, "ids")
			special := rapid.Bool().Draw(t, "special")
			var got []byte
			prev := token.None
			for _, id := range ids {
				var err error
				if got, err = k.AppendPieceAfter(got, prev, id, special); err != nil {
					t.Fatal(err)
				}
				prev = id
			}
			if want, err := k.Decode(ids, special); string(got) != want || err != nil {
				t.Fatalf("%s: %q, %v, want %q", name, got, err, want)
			}
		})
		if _, err := k.AppendPieceAfter(nil, 0, token.ID(k.Size()), false); err == nil {
			t.Error("an id outside the vocabulary is no error")
		}
		if _, err := k.AppendPieceAfter(nil, token.ID(k.Size()), 0, false); err == nil {
			t.Error("an id outside the vocabulary before it is no error")
		}
	}
}
