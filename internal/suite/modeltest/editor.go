package modeltest

import (
	"bytes"
	"fmt"
	"strings"

	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/weights/gguf"
)

// Texts that an editor is asked for and that it answers, in prose and in code. The first has a ligature that the normaliser takes apart.
const (
	EditorSource = "fix: The colour of our neighbour house is grey, and its centre looks ﬁne."
	EditorAnswer = "fix: The color of our neighbor house is gray, and its center looks fine."
	EditorCode   = "def colour(grey): return centre"
	EditedCode   = "def color(gray): return center"
)

// editorEdits are the spellings that an editor changes, as pieces of its two vocabularies.
var editorEdits = map[string]string{"▁colour": "▁color", "bour": "bor", "▁grey": "▁gray", "▁centre": "▁center", "Ġcolour": "Ġcolor", "grey": "gray", "Ġcentre": "Ġcenter"}

// editorPadding is how many tokens the model has that the vocabulary does not name, as published models have.
const editorPadding = 28

// Editor returns the folder of an encoder-decoder that copies its source with American spelling ([synthetic.Copier]): of Flan-T5's kind, with a unigram
// vocabulary, or with code of CodeT5+'s kind, with byte pairs.
func Editor(code bool) (*hftest.Folder, error) {
	words := &hftest.Folder{Config: map[string]any{}}
	ids := map[string]int{}
	c := synthetic.Copier{Context: 600, Start: 0, End: 1, Like: 1, Edits: map[int]int{}}
	sentinels := 10
	if code {
		words.RoBERTa([]string{"def", "Ġcolour", "Ġcolor", "grey", "gray", "):", "Ġreturn", "Ġcentre", "Ġcenter"}, sentinels)
		ids = words.Tokenizer["model"].(map[string]any)["vocab"].(map[string]int)
		c.End, c.Like = 2, 1
		c.Vocab = len(ids) + sentinels + editorPadding
	} else {
		pieces, scores := EditorPieces()
		words.Unigram(pieces, scores, sentinels, map[string]string{"ﬁ": "fi", "\t": " ", "\n": " ", "\u3000": " ", "Ａ": "A", "½": "1/2"})
		for i, text := range pieces {
			ids[text] = i + 3
		}
		c.Vocab = 3 + len(pieces) + sentinels + editorPadding
	}
	for from, to := range editorEdits {
		if a, ok := ids[from]; ok {
			c.Edits[a] = ids[to]
		}
	}
	metadata, tensors, err := c.Parts()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, tensors); err != nil {
		return nil, err
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		return nil, err
	}
	h := hftest.FromT5(f)
	h.Tokenizer, h.Names = words.Tokenizer, words.Names
	for key, v := range words.Config {
		h.Config[key] = v
	}
	return h, nil
}

// EditorPieces returns the pieces of the unigram vocabulary and their scores: letters and signs, parts of words, the words of [EditorSource], and
// those of [EditorWords].
func EditorPieces() (pieces []string, scores []float64) {
	add := func(score float64, texts ...string) {
		for i, text := range texts {
			pieces, scores = append(pieces, text), append(scores, score-float64(i)/64) // no two equal
		}
	}
	add(-3, "▁", "e", "s", "t", "a", "o", "i", "n", "r", "l", "h", "d", "u", "c", "m", "f", "g", "p", "b", "y", "k", "T", "A", ":", ",", ".", "1", "/", "2")
	add(-5, "▁t", "th", "he", "▁c", "ol", "our", "bo", "ou", "▁a", "nd", "▁its", "re", "en", "ce", "lo", "ok", "ks", "▁f", "in", "ne", "▁h", "is", "gr")
	add(-6.5, "▁fix", "▁The", "▁colour", "▁color", "▁of", "▁our", "▁neigh", "bour", "bor", "▁house", "▁is", "▁grey", "▁gray", "▁and", "▁it", "▁centre", "▁center", "▁looks", "▁fine")
	for i, word := range EditorWords() {
		add(-8-float64(i)/256, "▁"+word)
	}
	return pieces, scores
}

// EditorWords returns words that the unigram vocabulary has, no two equal.
func EditorWords() (words []string) {
	for _, a := range strings.Split("ba de fi go hu ka le mi no pu", " ") {
		for _, b := range strings.Split("ra se ti vo zu ga le my no pa", " ") {
			words = append(words, fmt.Sprint(a, b, "n"), fmt.Sprint(a, b, "st"))
		}
	}
	return words
}
