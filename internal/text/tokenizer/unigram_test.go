package tokenizer

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/internal/text/token"
)

// smallUnigram is a unigram vocabulary of a few pieces.
func smallUnigram() Vocab {
	v := Vocab{
		Model: "t5", BOS: token.None, EOT: token.None, EOM: token.None, SEP: token.None, FIM: NoFIM,
		AddEOS: true, AddSpacePrefix: true, MergeSpaces: true, Types: []int{}, Scores: []float32{},
	}
	v.add("<pad>", Control)
	v.EOS = v.add("</s>", Control)
	v.UNK = v.add("<unk>", Unknown)
	for text, score := range map[string]float32{"▁": -2, "▁the": -3, "t": -5, "h": -5, "e": -4, "he": -4.5, "re": -4.5, "there": -9, "▁there": -6, "é": -7} {
		v.Scores[v.add(text, Normal)] = score
	}
	v.add("<extra>", UserDefined)
	return v
}

func TestUnigram(t *testing.T) {
	bytes := func(v Vocab) Vocab {
		for b := range 256 {
			v.add("<0x"+strings.ToUpper(string("0123456789abcdef"[b>>4])+string("0123456789abcdef"[b&15]))+">", Byte)
		}
		return v
	}
	asIs := func(v Vocab) Vocab { v.MergeSpaces = false; return v }
	for _, c := range []struct {
		name  string
		vocab Vocab
		text  string
		o     Options
		want  string
	}{
		{"empty", smallUnigram(), "", Options{}, ""},
		{"end", smallUnigram(), "the", Options{Special: true}, "▁the </s>"},
		{"likeliest", smallUnigram(), "there the", Options{}, "▁there ▁the"},
		{"spaces merge", smallUnigram(), "  the   there ", Options{}, "▁the ▁there"},
		{"spaces stay", asIs(smallUnigram()), "the  the ", Options{}, "▁the ▁ ▁the ▁"},
		{"only spaces", smallUnigram(), "  ", Options{}, ""},
		{"unknown characters are one", smallUnigram(), "the中文x the", Options{}, "▁the <unk> ▁the"},
		{"unknown at the start", smallUnigram(), "中e", Options{}, "▁ <unk> e"},
		{"bytes", bytes(smallUnigram()), "the中", Options{}, "▁the <0xE4> <0xB8> <0xAD>"},
		{"no UTF-8", bytes(smallUnigram()), "\xffe", Options{}, "▁ <0xFF> e"},
		{"special", smallUnigram(), "the</s>the<extra>the", Options{}, "▁the </s> ▁the <extra> ▁the"},
		{"plain", smallUnigram(), "</s>", Options{Plain: true}, "▁ <unk>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := must(t, c.vocab)
			for range 2 { // the second time from memory
				ids, err := k.Encode(nil, c.text, c.o)
				if diff := cmp.Diff(c.want, k.texts(ids)); diff != "" || err != nil {
					t.Errorf("error %v, -want +got\n%s", err, diff)
				}
			}
		})
	}
	k := must(t, smallUnigram())
	ids, _ := k.Encode(nil, "the there</s>the", Options{})
	if got, err := k.Decode(ids, true); got != "the there</s>the" || err != nil {
		t.Errorf("decodes to %q, %v", got, err)
	}
}

// TestUnigramLikeliest: the pieces of a word have the greatest sum of scores of all that spell it.
func TestUnigramLikeliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Vocab{Model: "t5", BOS: -1, EOS: -1, EOT: -1, EOM: -1, SEP: -1, FIM: NoFIM, UNK: 0}
		scores := map[string]float64{}
		pieces := rapid.SliceOfNDistinct(rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 2, 4, -1), 1, 20, rapid.ID[string]).Draw(t, "tokens")
		for _, s := range append([]string{"<unk>", "a", "b", "é"}, pieces...) {
			score := -float32(rapid.IntRange(1, 20).Draw(t, "score"))
			v.Tokens, v.Scores, v.Types = append(v.Tokens, s), append(v.Scores, score), append(v.Types, int(Normal))
			scores[s] = float64(score)
		}
		v.Types[0] = int(Unknown)
		k, err := New(v)
		if err != nil {
			t.Fatal(err)
		}
		word := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 1, 12, -1).Draw(t, "word")
		best := make([]float64, len(word)+1) // of what is left, from each place
		for i := len(word) - 1; i >= 0; i-- {
			best[i] = math.Inf(-1)
			for s, score := range scores {
				if strings.HasPrefix(word[i:], s) {
					best[i] = max(best[i], score+best[i+len(s)])
				}
			}
		}
		ids, err := k.Encode(nil, word, Options{})
		if err != nil {
			t.Fatal(err)
		}
		sum, text := 0.0, ""
		for _, id := range ids {
			sum += scores[k.Text(id)]
			text += k.Text(id)
		}
		if text != word || sum != best[0] {
			t.Fatalf("%q: %s with %v, the greatest sum is %v", word, k.texts(ids), sum, best[0])
		}
	})
}

// smallWordPiece is a WordPiece vocabulary of a few pieces.
func smallWordPiece() Vocab {
	v := Vocab{
		Model: "bert", EOS: token.None, EOT: token.None, EOM: token.None, FIM: NoFIM,
		AddBOS: true, AddEOS: true, Lowercase: true, StripAccents: true, Types: []int{},
	}
	v.add("[PAD]", Control)
	v.UNK = v.add("[UNK]", Unknown)
	v.BOS = v.add("[CLS]", Control)
	v.SEP = v.add("[SEP]", Control)
	for _, text := range []string{"▁un", "▁a", "aff", "able", "▁hello", "▁,", "▁中", "s", "▁e", "▁!"} {
		v.add(text, Normal)
	}
	return v
}

func TestWordPiece(t *testing.T) {
	cased := smallWordPiece()
	cased.Lowercase, cased.StripAccents = false, false
	for _, c := range []struct {
		name  string
		vocab Vocab
		text  string
		o     Options
		want  string
	}{
		{"empty", smallWordPiece(), "", Options{Special: true}, "[CLS] [SEP]"},
		{"around", smallWordPiece(), "hello", Options{Special: true}, "[CLS] ▁hello [SEP]"},
		{"pieces", smallWordPiece(), "unaffable hellos", Options{}, "▁un aff able ▁hello s"},
		{"a word that leads nowhere", smallWordPiece(), "unaffablex hello", Options{}, "[UNK] ▁hello"},
		{"punctuation and white space", smallWordPiece(), "Hello,\thello!!\n", Options{}, "▁hello ▁, ▁hello ▁! ▁!"},
		{"accents and case", smallWordPiece(), "ÉLLO é", Options{}, "[UNK] ▁e"},
		{"cased", cased, "Hello hello é", Options{}, "[UNK] ▁hello [UNK]"},
		{"ideographs", smallWordPiece(), "hello中hello", Options{}, "▁hello ▁中 ▁hello"},
		{"special", smallWordPiece(), "hello[SEP]hello", Options{}, "▁hello [SEP] ▁hello"},
		{"plain", smallWordPiece(), "[SEP]", Options{Plain: true}, "[UNK] [UNK] [UNK]"},
		{"control characters", smallWordPiece(), "he\x00ll\u200bo\ufffd", Options{}, "▁hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := must(t, c.vocab)
			ids, err := k.Encode(nil, c.text, c.o)
			if diff := cmp.Diff(c.want, k.texts(ids)); diff != "" || err != nil {
				t.Errorf("error %v, -want +got\n%s", err, diff)
			}
		})
	}
	v := smallWordPiece()
	k := must(t, v)
	ids, _ := k.Encode(nil, "unaffable, hello", Options{Special: true})
	if got, err := k.Decode(ids, false); got != "unaffable , hello" || err != nil {
		t.Errorf("decodes to %q, %v", got, err)
	}
	v.UNK, v.Types[1] = token.None, int(Normal)
	if _, err := must(t, v).Encode(nil, "x", Options{}); err == nil {
		t.Error("no error without an unknown token")
	}
}

func TestFIM(t *testing.T) {
	v := smallBPE()
	if _, _, _, ok := must(t, v).FIM(); ok {
		t.Error("tokens for filling in where there are none")
	}
	v = smallSPM()
	v.FIM = FIM{v.add("▁<PRE>", Normal), v.add("▁<SUF>", Normal), v.add("[M]", Control), token.None, token.None}
	k := must(t, v)
	the, _ := k.ID("▁the")
	s, err := k.Stream(v.FIM.Middle, false)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := s.Next(the)
	second, _ := s.Next(the)
	if first != " the" || second != " the" {
		t.Errorf("what is filled in reads %q, %q", first, second)
	}
}

// TestModes expects the tokens around a text in each mode, and gaps that are control tokens, of vocabularies with all of the tokens.
func TestModes(t *testing.T) {
	v := smallBPE()
	for _, text := range []string{"<decoder-only>", "<encoder-only>", "<mask0>"} {
		v.add(text, Normal)
	}
	k := must(t, v)
	ids, err := k.Encode(nil, "he", Options{Special: true, Mode: Represent})
	mask, _ := k.ID("<mask0>")
	if got := k.texts(ids); got != "<s> he </s>" || err != nil || k.Modal() || k.Type(mask) == Control {
		t.Errorf("two of three modes: %s, %v, %v", got, err, k.Modal())
	}
	v.add("<encoder-decoder>", Normal)
	k = must(t, v)
	for mode, want := range map[Mode]string{
		Continue: "<s> <decoder-only> </s> he <mask0>", Represent: "<s> <encoder-only> </s> he <mask0> </s>", Answer: "<s> <encoder-decoder> </s> he <mask0> </s>",
	} {
		ids, err := k.Encode(nil, "he<mask0>", Options{Special: true, Mode: mode})
		if got := k.texts(ids); got != want || err != nil {
			t.Errorf("mode %d: %s, %v, want %s", mode, got, err, want)
		}
	}
	if mask, _ = k.ID("<mask0>"); k.Type(mask) != Control {
		t.Errorf("<mask0> is of type %d", k.Type(mask))
	}
	v.AddEOS = false
	if must(t, v).Modal() {
		t.Error("modes where no token ends a text")
	}
}

// TestHarmony: in gpt-oss <|end|> ends a message, not the answer.
func TestHarmony(t *testing.T) {
	v := smallBPE()
	end := v.add("<|end|>", Control)
	if k := must(t, v); !k.IsEOG(end) {
		t.Error("<|end|> does not end an answer")
	}
	ret, call := v.add("<|return|>", Control), v.add("<|call|>", Control)
	if k := must(t, v); k.IsEOG(end) || !k.IsEOG(ret) || !k.IsEOG(call) {
		t.Error("gpt-oss: <|end|> ends an answer, or <|return|> or <|call|> does not")
	}
}
