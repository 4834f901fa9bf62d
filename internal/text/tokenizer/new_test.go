package tokenizer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
)

func TestNewRefuses(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	for _, c := range []struct {
		name string
		from func() Vocab
		edit func(v *Vocab)
		want string
	}{
		{"model", smallBPE, func(v *Vocab) { v.Model = "rwkv" }, `model "rwkv" is not supported; known: gpt2, llama, t5, bert`},
		{"no tokens", smallBPE, func(v *Vocab) { v.Tokens = nil }, "the vocabulary is empty"},
		{"too many tokens", smallBPE, func(v *Vocab) { v.Tokens = make([]string, maxTokens+1) },
			"a vocabulary of 16777217 tokens is more than 16777216"},
		{"few types", smallBPE, func(v *Vocab) { v.Types = v.Types[:5] }, "5 token types for 273 tokens"},
		{"few scores", smallSPM, func(v *Vocab) { v.Scores = v.Scores[:5] }, "5 scores for 282 tokens"},
		{"many scores", smallBPE, func(v *Vocab) { v.Scores = make([]float32, 500) }, "500 scores for 273 tokens"},
		{"no scores", smallSPM, func(v *Vocab) { v.Scores = nil }, "a SentencePiece vocabulary needs scores"},
		{"NaN score", smallSPM, func(v *Vocab) { v.Scores[7] = float32(math.NaN()) }, "the score of token 7 is not a number"},
		{"type", smallBPE, func(v *Vocab) { v.Types[3] = 7 }, "token 3 has type 7, which is not one of 0 to 6"},
		{"negative type", smallBPE, func(v *Vocab) { v.Types[3] = -1 }, "token 3 has type -1, which is not one of 0 to 6"},
		{"begin", smallBPE, func(v *Vocab) { v.BOS = 273 }, "the begin token is 273, outside the vocabulary of 273"},
		{"end", smallBPE, func(v *Vocab) { v.EOS = math.MaxInt32 }, "the end token is 2147483647, outside the vocabulary of 273"},
		{"turn", smallBPE, func(v *Vocab) { v.EOT = -2 }, "the end-of-turn token is -2, outside the vocabulary of 273"},
		{"message", smallBPE, func(v *Vocab) { v.EOM = 1000 }, "the end-of-message token is 1000, outside the vocabulary of 273"},
		{"unknown", smallSPM, func(v *Vocab) { v.UNK = 282 }, "the unknown token is 282, outside the vocabulary of 282"},
		{"no begin", smallBPE, func(v *Vocab) { v.BOS = token.None }, "a begin token is to be added, and the vocabulary names none"},
		{"no end", smallBPE, func(v *Vocab) { v.EOS = token.None }, "an end token is to be added, and the vocabulary names none"},
		{"duplicate", smallBPE, func(v *Vocab) { v.Tokens[9] = "a" }, `tokens 9 and 97 are both "a"`},
		{"duplicate of 10 MB", smallSPM, func(v *Vocab) { v.Tokens[300-20], v.Tokens[281] = long, long },
			`tokens 280 and 281 are both "` + long[:40] + `"`},
		{"byte token", smallSPM, func(v *Vocab) { v.Tokens[5] = "<0x2>" }, `byte token 5 is "<0x2>", not of the form <0x0A>`},
		{"byte token not hexadecimal", smallSPM, func(v *Vocab) { v.Tokens[5] = "<0xZZ>" }, `byte token 5 is "<0xZZ>", not of the form <0x0A>`},
		{"empty byte token", smallBPE, func(v *Vocab) { v.Tokens[5], v.Types[5] = "", int(Byte) }, `byte token 5 is "", not of the form <0x0A>`},
		{"merge without a space", smallBPE, func(v *Vocab) { v.Merges[3] = "ab" }, `merge 3 is "ab", not two pieces with a space between`},
		{"merge of one", smallBPE, func(v *Vocab) { v.Merges[3] = "ab " }, `merge 3 is "ab ", not two pieces with a space between`},
		{"merge of three", smallBPE, func(v *Vocab) { v.Merges[3] = "a b c" }, `merge 3 is "a b c", not two pieces with a space between`},
		{"empty merge", smallBPE, func(v *Vocab) { v.Merges[0] = "" }, `merge 0 is "", not two pieces with a space between`},
		{"10 MB merge", smallBPE, func(v *Vocab) { v.Merges[0] = long }, `merge 0 is "` + long[:40] + `", not two pieces with a space between`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.from()
			c.edit(&v)
			_, err := New(v)
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff("tokenizer: "+c.want, err.Error()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestNewAccepts: unusual vocabularies that are valid encode as they define.
func TestNewAccepts(t *testing.T) {
	long := strings.Repeat("a", 10<<20)
	for _, c := range []struct {
		name string
		from func() Vocab
		edit func(v *Vocab)
		text string
		want string
	}{
		{"no types", smallBPE, func(v *Vocab) { v.Types = nil }, "hello</s>", "hello < / s >"},
		{"no merges", smallBPE, func(v *Vocab) { v.Merges = nil }, "hell", "h e l l"},
		{"the first of equal merges", smallBPE, func(v *Vocab) { v.Merges = append(v.Merges, v.Merges[0]) }, "he", "he"},
		{"merges in a circle", smallBPE, func(v *Vocab) { v.Merges = []string{"aa a", "a aa", "a a", "aa aa"} }, "aaaaa", "a a a aa"},
		{"merge to no token", smallBPE, func(v *Vocab) { v.Merges = append(v.Merges, "q q", "qq q") }, "qqqq", "q q q q"},
		{"merge of other characters", smallBPE, func(v *Vocab) { v.Merges = append(v.Merges, "中 中") }, "中中", "ä ¸ Ń ä ¸ Ń"},
		{"empty tokens", smallBPE, func(v *Vocab) { v.add("", Control); v.add("", UserDefined); v.add("", Normal) }, "he", "he"},
		{"token of other characters", smallBPE, func(v *Vocab) { v.add("中", Normal) }, "中", "ä ¸ Ń"},
		{"10 MB token", smallBPE, func(v *Vocab) { v.add(long, Normal); v.add(long+"b", Control) }, "aaa", "aa a"},
		{"spm no types", smallSPM, func(v *Vocab) { v.Types = nil }, "the\n", "▁the <0x0A>"},
		{"spm equal scores", smallSPM, func(v *Vocab) { clear(v.Scores) }, "aaaaa", "▁a aaaa"},
		{"spm infinite score", smallSPM, func(v *Vocab) { v.Scores[slices.Index(v.Tokens, "▁a")] = float32(math.Inf(1)) }, "aaa", "▁a aa"},
		{"spm minus zero", smallSPM, func(v *Vocab) {
			clear(v.Scores)
			v.Scores[v.add("el", Normal)] = float32(math.Copysign(0, -1))
		}, "ahell", "▁a hell"},
		{"spm word border in a token", smallSPM, func(v *Vocab) {
			v.add("a▁", Normal)
			v.Scores[v.add("a▁l", Normal)] = 2
			v.Scores[len(v.Scores)-2] = 1
		}, "a a l", "▁ a▁ a▁l"},
		{"spm 10 MB token", smallSPM, func(v *Vocab) { v.add(long, Normal) }, "aa", "▁ aa"},
		{"spm two tokens of one byte", smallSPM, func(v *Vocab) { v.add("<0x0a>", Byte) }, "\n", "▁ <0x0a>"},
		{"spm token with a space", smallSPM, func(v *Vocab) { v.add(" the", Normal); v.add("h e", UserDefined) }, "the th e", "▁the ▁t h e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.from()
			c.edit(&v)
			k := must(t, v)
			ids, err := k.Encode(nil, c.text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, k.texts(ids)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestNested: special tokens that are prefixes of each other are found in bounded memory.
func TestNested(t *testing.T) {
	v := smallBPE()
	for n := 2; n <= 501; n++ {
		v.add(strings.Repeat("@", n), Control)
	}
	k := must(t, v)
	ids, err := k.Encode(nil, strings.Repeat("@", 10_007), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Repeat([]int{501}, 19)
	want = append(want, 488)
	var got []int
	for _, id := range ids {
		got = append(got, len(k.Text(id)))
	}
	if !slices.Equal(want, got) {
		t.Errorf("lengths %v, want %v", got, want)
	}
}

func TestAccessors(t *testing.T) {
	v := smallBPE()
	v.EOT, v.EOM = v.add("[turn]", Control), v.add("[message]", Control)
	k := must(t, v)
	var eog []string
	for id := range token.ID(k.Size()) {
		if k.IsEOG(id) {
			eog = append(eog, k.Text(id))
		}
	}
	if diff := cmp.Diff([]string{"</s>", "<|im_end|>", "[turn]", "[message]"}, eog); diff != "" {
		t.Errorf("tokens that end an answer: -want +got\n%s", diff)
	}
	if k.BOS() != v.BOS || k.EOS() != v.EOS || k.Size() != len(v.Tokens) {
		t.Errorf("begin %d, end %d, size %d", k.BOS(), k.EOS(), k.Size())
	}
	id, ok := k.ID("<|im_end|>")
	if !ok || k.Type(id) != Control || k.Type('a') != Normal {
		t.Errorf("<|im_end|> is %d, %v, type %d", id, ok, k.Type(id))
	}
	if _, ok := k.ID(""); ok {
		t.Error("an empty text has an id")
	}
}
