package tokenizer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/text/token"
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
	if _, err := must(t, v).EncodeFIM(nil, "a", "b", nil); err != ErrNoFIM {
		t.Errorf("error %v", err)
	}
	for _, texts := range [][3]string{
		{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}, {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}, {"<PRE>", "<SUF>", "<MID>"},
		{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
	} {
		v := smallBPE()
		for _, text := range texts {
			v.add(text, Normal)
		}
		k := must(t, v)
		ids, err := k.EncodeFIM(nil, "he</s>", "ll", nil)
		want := strings.Join([]string{"<s>", texts[0], "he < / s >", texts[1], "ll", texts[2]}, " ")
		if diff := cmp.Diff(want, k.texts(ids)); diff != "" || err != nil {
			t.Errorf("error %v, -want +got\n%s", err, diff)
		}
	}
	v = smallSPM()
	v.FIM = FIM{v.add("▁<PRE>", Normal), v.add("▁<SUF>", Normal), v.add("[M]", Control), token.None, token.None}
	k := must(t, v)
	var parts []token.ID
	if _, err := k.EncodeFIM(nil, "the", "", func(ids []token.ID) error { parts = append(parts, ids...); return nil }); err != nil {
		t.Fatal(err)
	}
	ids, err := k.EncodeFIM(nil, "the", "", nil)
	if !slices.Equal(ids, parts) {
		t.Errorf("ids %v, in parts %v", ids, parts)
	}
	if diff := cmp.Diff("<s> ▁<PRE> ▁the ▁<SUF> [M]", k.texts(ids)); diff != "" || err != nil {
		t.Errorf("error %v, -want +got\n%s", err, diff)
	}
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

// TestFIMFiles: files go before the prefix, behind the tokens that the vocabulary has for them.
func TestFIMFiles(t *testing.T) {
	marks := []string{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}
	files := []File{{"a.c", "he"}, {"b<s>", "<|file_sep|>"}}
	for _, tt := range []struct {
		name  string
		marks []string
		want  string
	}{
		{"none", nil, "<s>\n\n--- snippet ---\n\nhe\n\n--- snippet ---\n\n<|file_sep|>"},
		{"files", []string{"<|file_sep|>"}, "<s>[<|file_sep|>]a.c\nhe[<|file_sep|>]b<s>\n<|file_sep|>[<|file_sep|>]filename\n"},
		{"repository", []string{"<|file_sep|>", "<|repo_name|>"}, "<s>[<|repo_name|>]myproject\n[<|file_sep|>]a.c\nhe[<|file_sep|>]b<s>\n<|file_sep|>[<|file_sep|>]filename\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := smallBPE()
			for _, text := range slices.Concat(marks, tt.marks) {
				v.add(text, Normal)
			}
			k := must(t, v)
			ids, err := k.EncodeFIM(nil, "h", "l", nil, files...)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for i, id := range ids {
				piece, err := k.AppendPiece(nil, id, true)
				if err != nil {
					t.Fatal(err)
				}
				if k.Type(id) == Control && i > 0 {
					piece = []byte("[" + string(piece) + "]")
				}
				got.Write(piece)
			}
			if diff := cmp.Diff(tt.want+"[<|fim_prefix|>]h[<|fim_suffix|>]l[<|fim_middle|>]", got.String()); diff != "" {
				t.Error(diff)
			}
		})
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
