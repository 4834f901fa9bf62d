package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
)

// unknownPenalty is the difference between the lowest score of a piece and the score of a character without a piece.
const unknownPenalty = 10

// unigram builds the tables of unigram encoding.
func (t *Tokenizer) unigram(v Vocab) error {
	if v.UNK == token.None {
		return fmt.Errorf("tokenizer: a unigram vocabulary needs an unknown token")
	}
	lowest := math.Inf(1)
	for i, s := range v.Scores {
		if math.IsInf(float64(s), 0) {
			return fmt.Errorf("tokenizer: the score of token %d is not finite", i)
		}
		if t.types[i] == Normal {
			lowest = min(lowest, float64(s))
		}
	}
	m, err := pretoken.NewCharsmap(v.Charsmap)
	if err != nil {
		return err
	}
	t.spaces(v)
	t.normalize = []normalizer{always(m.Normalize), func(text string, _ bool) string { return respace(text, v) }}
	if v.MergeSpaces {
		t.strip = stripEach
	}
	t.encode, t.unknown = t.likeliest, lowest-unknownPenalty
	t.indexPieces()
	t.reach = max(t.longest, utf8.UTFMax) + 1
	t.scores = make([]float64, len(t.lexicon.texts))
	for k, p := range t.lexiconPieces {
		if t.types[p] != UserDefined {
			t.scores[k] = float64(v.Scores[p])
		}
	}
	return nil
}

// indexPieces indexes the pieces, so that those that a text begins with are found.
func (t *Tokenizer) indexPieces() {
	texts := make([]string, 0, len(t.pieces))
	for text := range t.pieces {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	t.lexicon = newLexicon(texts)
	t.lexiconPieces = make([]int32, len(texts))
	for k, text := range texts {
		t.lexiconPieces[k] = t.pieces[text]
	}
}

// respace sets the spaces of a text: one before each word, or those of the text with one before it if it has a word.
func respace(text string, v Vocab) string {
	text = strings.ReplaceAll(text, space, " ")
	if !v.MergeSpaces {
		if v.AddSpacePrefix && strings.Trim(text, " ") != "" {
			text = " " + text
		}
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 1)
	for word := range strings.SplitSeq(text, " ") {
		if word != "" {
			b.WriteByte(' ')
			b.WriteString(word)
		}
	}
	return b.String()
}

// likeliest appends the ids of the pieces with the greatest sum of scores (Viterbi); of equal sums, the first one found. Characters
// without a piece may be unknown: a run of them is one unknown token, or the tokens of its bytes if all exist. Each word is
// summed by itself, so sums are rounded as in Hugging Face's tokenizers.
func (t *Tokenizer) likeliest(dst []token.ID, word string, s *scratch) ([]token.ID, error) {
	// Of the likeliest path to each index, steps has the last piece: its number in the lexicon, or none for an unknown character. Of its
	// score, those that pieces reach are kept, at the index modulo their number.
	s.steps = slices.Grow(s.steps[:0], len(word)+1)[:len(word)+1]
	s.sums = slices.Grow(s.sums[:0], t.reach)[:t.reach]
	for i := range s.sums {
		s.sums[i] = math.Inf(-1)
	}
	s.sums[0] = 0
	for i := 0; i < len(word); {
		n := t.extend(word, i, s)
		for k := range n {
			s.sums[(i+k)%t.reach] = math.Inf(-1)
		}
		i += n
		if err := s.check(n); err != nil {
			return dst, err
		}
	}
	return t.appendSteps(dst, word, s.steps), nil
}

// extend extends the path to word[i:] by each piece there, and returns the length of the character there.
func (t *Tokenizer) extend(word string, i int, s *scratch) int {
	_, n := utf8.DecodeRuneInString(word[i:])
	whole, sum := false, s.sums[i%t.reach]
	reach := func(to int, score float64, at int32) {
		if score += sum; score > s.sums[to%t.reach] {
			s.sums[to%t.reach], s.steps[to] = score, at
		}
	}
	t.lexicon.match(word[i:], func(at int) {
		size := len(t.lexicon.texts[at])
		whole = whole || size == n
		reach(i+size, t.scores[at], int32(at))
	})
	if !whole {
		reach(i+n, t.unknown, none)
	}
	return n
}

// appendSteps appends the ids of the path to the end of the word.
func (t *Tokenizer) appendSteps(dst []token.ID, word string, steps []int32) []token.ID {
	begin := len(dst)
	for at := len(word); at > 0; {
		if k := steps[at]; k != none {
			dst = append(dst, token.ID(t.lexiconPieces[k]))
			at -= len(t.lexicon.texts[k])
			continue
		}
		to := at
		for at > 0 && steps[at] == none {
			_, n := utf8.DecodeLastRuneInString(word[:at])
			at -= n
		}
		n := len(dst)
		for i := to - 1; i >= at; i-- {
			b := t.bytes[word[i]]
			if b == none {
				dst = append(dst[:n], t.unk)
				break
			}
			dst = append(dst, token.ID(b))
		}
	}
	slices.Reverse(dst[begin:])
	return dst
}
