package tokenizer

import "sort"

// lexicon finds the prefixes of a text among its entries.
type lexicon struct {
	texts []string   // in order; none is empty
	first [257]int32 // texts[first[b]:first[b+1]] begin with byte b
}

// newLexicon returns the lexicon of texts, which must be sorted.
func newLexicon(texts []string) lexicon {
	l := lexicon{texts: texts}
	for _, t := range texts {
		l.first[int(t[0])+1]++
	}
	for b := range 256 {
		l.first[b+1] += l.first[b]
	}
	return l
}

// match calls found with the index of every entry that is a prefix of text, the shortest first.
func (l *lexicon) match(text string, found func(at int)) {
	lo, hi := int(l.first[text[0]]), int(l.first[int(text[0])+1])
	for d := 1; lo < hi; d++ {
		if len(l.texts[lo]) == d {
			found(lo)
			lo++
		}
		if d >= len(text) {
			break
		}
		// The texts from lo to hi agree with text in d bytes; keep those that agree in one more.
		c := text[d]
		lo += sort.Search(hi-lo, func(k int) bool { return l.texts[lo+k][d] >= c })
		hi = lo + sort.Search(hi-lo, func(k int) bool { return l.texts[lo+k][d] > c })
	}
}
