package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/internal/text/token"
)

func TestEncode(t *testing.T) {
	llama := func(v Vocab) Vocab { v.Pre = "llama-bpe"; return v }
	phi3 := func(v Vocab) Vocab { v.Name = "Phi-3 mini"; return v }
	noPrefix := func(v Vocab) Vocab { v.AddSpacePrefix = false; return v }
	orphan := smallBPE()
	orphan.add(written("xyz"), Normal) // no merges lead to it
	for _, c := range []struct {
		name  string
		vocab Vocab
		text  string
		o     Options
		want  string
	}{
		{"empty", smallBPE(), "", Options{}, ""},
		{"empty special", smallBPE(), "", Options{Special: true}, "<s> </s>"},
		{"merges", smallBPE(), "hello the12", Options{}, "hello Ġthe 12"},
		{"leftmost first", smallBPE(), "aaaaaaa", Options{}, "aaaa aa a"},
		{"special", smallBPE(), "he", Options{Special: true}, "<s> he </s>"},
		{"parsed", smallBPE(), "he</s>he", Options{}, "he </s> he"},
		{"plain", smallBPE(), "</s>", Options{Plain: true}, "< / s >"},
		{"user-defined in plain", smallBPE(), "<tool></s>", Options{Plain: true}, "<tool> < / s >"},
		{"longest first", smallBPE(), "<tool<tool><s><s><s>", Options{}, "<tool <tool> <s><s> <s>"},
		{"control by its text", smallBPE(), "<|im_end|>", Options{}, "<|im_end|>"},
		{"control by its text, plain", smallBPE(), "<|im_end|>", Options{Plain: true}, "< | i m _ e n d | >"},
		{"whole word ignored", orphan, "xyz", Options{}, "x y z"},
		{"whole word", llama(orphan), "xyz", Options{}, "xyz"},
		{"merges of bytes", smallBPE(), "€", Options{}, "âĤ¬"},
		{"not UTF-8", smallBPE(), "\xff\xe2\x82", Options{}, "ÿ âĤ"},
		{"white after special kept", smallBPE(), "</s> \n1", Options{}, "</s> Ġ Ċ 1"},
		{"white after special of phi-3", phi3(smallBPE()), "</s> \n1<s> 1", Options{}, "</s> 1 <s> Ġ 1"},

		{"spm empty", smallSPM(), "", Options{}, ""},
		{"spm special", smallSPM(), "the", Options{Special: true}, "<s> ▁the"},
		{"spm prefix", smallSPM(), "the the  he", Options{}, "▁the ▁the ▁▁ he"},
		{"spm no prefix", noPrefix(smallSPM()), "the", Options{}, "t he"},
		{"spm prefix after special", smallSPM(), "<s>the</s><tool>he", Options{}, "<s> ▁the </s> <tool> ▁he"},
		{"spm highest score first", smallSPM(), "ahell aaaaa", Options{}, "▁a hell ▁ aaaa a"},
		{"spm bytes", smallSPM(), "€é", Options{}, "▁ <0xE2> <0x82> <0xAC> é"},
		{"spm not UTF-8", smallSPM(), "\xe2a", Options{}, "▁ <0xE2> a"},
		{"spm plain", smallSPM(), "<s>", Options{Plain: true}, "▁ <0x3C> <0x73> <0x3E>"},
		{"spm written space", smallSPM(), "▁the", Options{}, "▁ ▁the"},
		{"spm byte token in text", smallSPM(), "<0x41>", Options{}, "▁ <0x3C> <0x30> <0x78> <0x34> <0x31> <0x3E>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := must(t, c.vocab)
			ids, err := k.Encode(nil, c.text, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, k.texts(ids)); diff != "" {
				t.Errorf("Encode(%q): -want +got\n%s", c.text, diff)
			}
		})
	}
}

// TestMissingBytes: a byte without a token is refused in byte-level vocabularies; in SentencePiece vocabularies its character is one
// unknown token.
func TestMissingBytes(t *testing.T) {
	v := smallBPE()
	v.Tokens['x'] = "[was x]"
	dst, err := must(t, v).Encode(nil, "1x", Options{})
	if got, want := err, "tokenizer: the vocabulary has no token for byte 0x78"; got == nil || got.Error() != want {
		t.Errorf("error %v, want %s", got, want)
	}
	if !slices.Equal(dst, []token.ID{'1'}) {
		t.Errorf("ids %v, want those before the byte", dst)
	}
	v = smallSPM()
	for i, ty := range v.Types {
		if ty == int(Byte) {
			v.Types[i] = int(Unused)
			v.Tokens[i] = "[was " + v.Tokens[i] + "]"
		}
	}
	k := must(t, v)
	ids, err := k.Encode(nil, "a€b", Options{})
	if diff := cmp.Diff("▁a <unk> <unk>", k.texts(ids)); diff != "" || err != nil {
		t.Errorf("error %v, -want +got\n%s", err, diff)
	}
	v.UNK = token.None
	if _, err := must(t, v).Encode(nil, "€", Options{}); err == nil {
		t.Error("no error without an unknown token")
	}
}

// naive merges one pair at a time, the best and of equals the leftmost, over plain strings.
func naive(word []string, rank func(l, r string) (float64, bool)) []string {
	for {
		at, best := -1, 0.0
		for i := range len(word) - 1 {
			if r, ok := rank(word[i], word[i+1]); ok && (at < 0 || r < best) {
				at, best = i, r
			}
		}
		if at < 0 {
			return word
		}
		word = slices.Concat(word[:at], []string{word[at] + word[at+1]}, word[at+2:])
	}
}

// TestMergeBPE: ids are those of the merges applied one by one, for random merges and text.
func TestMergeBPE(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Vocab{Model: "gpt2", Pre: "gpt-2", BOS: -1, EOS: -1, EOT: -1, EOM: -1, UNK: -1, SEP: -1, FIM: NoFIM, Tokens: []string{"a", "b", "c"}}
		piece := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 1, 4, -1)
		ranks := map[[2]string]float64{}
		for range rapid.IntRange(0, 30).Draw(t, "merges") {
			l, r := piece.Draw(t, "left"), piece.Draw(t, "right")
			v.Merges = append(v.Merges, l+" "+r)
			if _, ok := ranks[[2]string{l, r}]; !ok {
				ranks[[2]string{l, r}] = float64(len(v.Merges))
			}
			if rapid.Bool().Draw(t, "token") && !slices.Contains(v.Tokens, l+r) {
				v.Tokens = append(v.Tokens, l+r)
			}
		}
		k, err := New(v)
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 40, -1).Draw(t, "text")
		var want []string
		for _, p := range naive(strings.Split(text, ""), func(l, r string) (float64, bool) {
			rank, ok := ranks[[2]string{l, r}]
			return rank, ok
		}) {
			if slices.Contains(v.Tokens, p) {
				want = append(want, p)
			} else {
				want = append(want, strings.Split(p, "")...)
			}
		}
		for range 2 { // the second time from memory
			ids, err := k.Encode(nil, text, Options{})
			if diff := cmp.Diff(strings.Join(want, " "), k.texts(ids)); diff != "" || err != nil {
				t.Fatalf("error %v, -want +got\n%s", err, diff)
			}
		}
		sameInRounds(t, k, text)
	})
}

// sameInRounds checks that a word has the same ids where its merges do not fit the queue.
func sameInRounds(t *rapid.T, k *Tokenizer, word string) {
	if word == "" {
		return
	}
	want, err := k.mergeWord(nil, word, &scratch{most: maxQueue})
	if err != nil {
		t.Fatal(err)
	}
	got, err := k.mergeWord(nil, word, &scratch{most: 2})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("error %v, in one round and in several:\n%s", err, diff)
	}
}

// TestMergeSPM: ids are those of the merges applied one by one to the whole text, though Encode cuts
// it into words where no token crosses a border.
func TestMergeSPM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Vocab{Model: "llama", BOS: -1, EOS: -1, EOT: -1, EOM: -1, UNK: 0, SEP: -1, FIM: NoFIM, AddSpacePrefix: true}
		scores := map[string]float64{}
		for i, s := range append([]string{"<unk>", "▁", "a"}, rapid.SliceOfNDistinct(
			rapid.StringOfN(rapid.RuneFrom([]rune("ab▁é")), 2, 5, -1), 0, 40, rapid.ID[string]).Draw(t, "tokens")...) {
			score := rapid.IntRange(-5, 5).Draw(t, "score")
			v.Tokens = append(v.Tokens, s)
			v.Scores = append(v.Scores, float32(score))
			v.Types = append(v.Types, int(Normal))
			scores[s] = -float64(score)
			if i == 0 {
				v.Types[0] = int(Unknown)
			}
		}
		k, err := New(v)
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab é")), 1, 40, -1).Draw(t, "text")
		var want []string
		for _, p := range naive(strings.Split("▁"+strings.ReplaceAll(text, " ", "▁"), ""), func(l, r string) (float64, bool) {
			rank, ok := scores[l+r]
			return rank, ok
		}) {
			if _, ok := scores[p]; !ok {
				p = "<unk>"
			}
			want = append(want, p)
		}
		ids, err := k.Encode(nil, text, Options{})
		if diff := cmp.Diff(strings.Join(want, " "), k.texts(ids)); diff != "" || err != nil {
			t.Fatalf("error %v, -want +got\n%s", err, diff)
		}
		sameInRounds(t, k, " "+text)
	})
}

// TestPartition: special tokens are cut out by the rule: for each token, the longest first, every occurrence from left to right
// in the rest of the text.
func TestPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfNDistinct(rapid.StringOfN(rapid.RuneFrom([]rune("ab<")), 1, 5, -1), 1, 12, rapid.ID[string]).Draw(t, "tokens")
		types := slices.Repeat([]Type{Control}, len(texts))
		s := newSpecials(slices.Clone(texts), types, "")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab<")), 0, 40, -1).Draw(t, "text")
		order := slices.Clone(texts)
		slices.SortStableFunc(order, func(a, b string) int { return len(b) - len(a) })
		want := []string{text}
		for _, tok := range order {
			var out []string
			for _, f := range want {
				if strings.HasPrefix(f, "=") {
					out = append(out, f)
					continue
				}
				for i, part := range strings.Split(f, tok) {
					if i > 0 {
						out = append(out, "="+tok)
					}
					out = append(out, part)
				}
			}
			want = out
		}
		want = slices.DeleteFunc(want, func(f string) bool { return f == "" })
		var got []string
		err := s.partition(text, false, &scratch{}, func(f fragment) error {
			if f.id != token.None {
				f.text = "=" + texts[f.id]
			}
			got = append(got, f.text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("want %q, got %q", want, got)
		}
	})
}

// TestLongRuns: the time of text without a break is not quadratic.
func TestLongRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("encodes megabytes")
	}
	start := time.Now()
	for _, v := range []Vocab{smallBPE(), smallSPM()} {
		k := must(t, v)
		for _, unit := range []string{"a", " ", "\n", "<", "é", "'"} {
			text := strings.Repeat(unit, 1<<19)
			ids, err := k.Encode(nil, text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if back, err := k.Decode(ids, true); back != text || err != nil {
				t.Errorf("%s %q: decodes to %.20q, %v", v.Model, unit, back, err)
			}
		}
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestConcurrent(t *testing.T) {
	for _, v := range []Vocab{smallBPE(), smallSPM()} {
		k := must(t, v)
		text := strings.Repeat("hello the 12 he\nhell aaaa<tool>", 50)
		want, err := k.Encode(nil, text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, err := k.Encode(nil, text, Options{}); err != nil || !slices.Equal(want, got) {
					t.Errorf("other ids, error %v", err)
				}
			})
		}
		wg.Wait()
	}
}

// TestForgets: a scratch caches a bounded number of words, and emptying the cache changes no ids.
func TestForgets(t *testing.T) {
	k := must(t, smallBPE())
	s := k.scratch.New().(*scratch)
	for i := range 3 * maxWords {
		word := "w" + strings.Repeat("a", i%20) + string(rune('a'+i%26)) + string(rune(0x4E00+i))
		got, err := k.appendWord(nil, word, s)
		fresh, errFresh := k.appendWord(nil, word, k.scratch.New().(*scratch))
		if err != nil || errFresh != nil || !slices.Equal(got, fresh) {
			t.Fatalf("%q: %v, %v; afresh %v, %v", word, got, err, fresh, errFresh)
		}
		if len(s.words) > maxWords || len(s.ids) > maxWords*maxRemembered {
			t.Fatalf("remembers %d words, %d ids", len(s.words), len(s.ids))
		}
	}
}
