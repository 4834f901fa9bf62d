package tokenizer_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// unigramReference encodes a text as T5 does, by trying every way to spell each word: characters are normalised, each word gets U+2581 before it, and
// a run of characters without a piece is one unknown token. Sentinels are cut out first; it returns the ids with the end of the text.
func unigramReference(text string, pieces []string, scores []float64, sentinels int) (ids []token.ID) {
	const pad, end, unknown = 0, 1, 2
	first := len(pieces) + 3
	var plain func(text string)
	plain = func(text string) {
		for i := range sentinels {
			name := "<extra_id_" + string(rune('0'+i)) + ">"
			if before, after, ok := strings.Cut(text, name); ok {
				plain(before)
				ids = append(ids, token.ID(first+sentinels-1-i))
				plain(after)
				return
			}
		}
		for _, word := range strings.Fields(norm.NFKC.String(strings.ReplaceAll(text, "½", "1/2"))) {
			ids = append(ids, spell([]rune("▁"+word), pieces, scores, unknown)...)
		}
	}
	plain(text)
	return append(ids, end)
}

// spell returns the likeliest spelling of a word, of all.
func spell(word []rune, pieces []string, scores []float64, unknown token.ID) []token.ID {
	lowest := slices.Min(scores) - 10
	best, sum := []token.ID{}, math.Inf(-1)
	var try func(at int, ids []token.ID, score float64)
	try = func(at int, ids []token.ID, score float64) {
		if at == len(word) {
			if score > sum {
				best, sum = slices.Clone(ids), score
			}
			return
		}
		alone := false
		for i, p := range pieces {
			if n := len([]rune(p)); strings.HasPrefix(string(word[at:]), p) {
				alone = alone || n == 1
				try(at+n, append(ids, token.ID(i+3)), score+scores[i])
			}
		}
		if !alone {
			try(at+1, append(ids, unknown), score+lowest)
		}
	}
	try(0, nil, 0)
	return slices.CompactFunc(best, func(a, b token.ID) bool { return a == unknown && b == unknown })
}

// TestT5Reference compares the ids of T5's tokenizer, read from a folder and from GGUF metadata, with a reference that tries every spelling.
func TestT5Reference(t *testing.T) {
	h, err := modeltest.Editor(false)
	if err != nil {
		t.Fatal(err)
	}
	file, _ := json.Marshal(h.Tokenizer)
	config, _ := json.Marshal(h.Names)
	folder, err := tokenizer.ParseJSON(file, config)
	if err != nil {
		t.Fatal(err)
	}
	kvs, err := tokenizer.MetadataFromJSON(file, config, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.New("t5", append(kvs, gguf.KV{Key: "general.architecture", Value: gguf.Of("t5")}), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	pieces, scores := modeltest.EditorPieces()
	for _, text := range []string{
		"", " ", "fix", modeltest.EditorSource, "The  house\tis　Ａ½", "neighbours others, looking", "the <extra_id_0> of <extra_id_1>.", "<extra_id_9><extra_id_0>a",
		"漢字 and 漢", "colourgreycentre", "</s", "a</s>b"[:1], "ﬁﬁ ﬁx", "x y z", "a\n\nb\n", strings.Join(modeltest.EditorWords()[:30], " "),
	} {
		want := unigramReference(text, pieces, scores, 10)
		for name, k := range map[string]*tokenizer.Tokenizer{"tokenizer.json": folder, "GGUF": stored} {
			got, err := k.Encode(nil, text, tokenizer.Options{Special: true})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q is %v, want %v (%v)", name, text, got, want, err)
			}
		}
	}
	if id, ok := folder.ID("<extra_id_0>"); !ok || int(id) != len(pieces)+3+9 {
		t.Errorf("<extra_id_0> is token %d; it must be the last of the sentinels", id)
	}
}
