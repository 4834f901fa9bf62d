// near.go finds the names that a mistyped name was probably meant to be.

package options

import (
	"slices"
	"strconv"
	"strings"
)

const (
	maxNames = 3   // that are suggested
	maxBytes = 100 // of a name that are compared
)

// NearNames returns the names that are like a given one, nearest first and three at most: they begin with it, or differ from it by
// one letter and one more for each four of its letters. Case does not count, and - and _ are one letter. An empty name is like none, nor is one of
// more than 100 bytes; the name itself is not suggested.
func NearNames(name string, known []string) []string {
	query := fold(name)
	if query == "" || len(query) > maxBytes {
		return nil
	}
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, k := range known {
		folded := fold(k)
		far := NearDistance(query, folded)
		if k == name { // it is known, and refused for another reason
			continue
		}
		if !strings.HasPrefix(folded, query) && far > 1+len(query)/4 || far >= len(query) && far >= len(folded) {
			continue
		}
		found = append(found, candidate{k, far})
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.far - b.far })
	var names []string
	for _, c := range found[:min(len(found), maxNames)] {
		names = append(names, c.name)
	}
	return names
}

// NearHint returns what an error says about the names that are like a given one, such as `; did you mean "sam"?`; "" where
// none is.
func NearHint(name string, known []string) string {
	names := NearNames(name, known)
	for i, n := range names {
		names[i] = strconv.Quote(n)
	}
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// Misspelt says whether a name is probably one of the known, mistyped or cut: it is another name's first four letters or more, or differs from one
// by one letter, and one more for each five of its letters. Case does not count, and - and _ are one letter.
func Misspelt(name string, known []string) bool {
	query := fold(name)
	for _, k := range known {
		folded := fold(k)
		most := max(1, len(query)/5)
		near := max(len(query), len(folded))-min(len(query), len(folded)) <= most && NearDistance(query, folded) <= most
		if query == folded || len(query) >= 4 && (near || strings.HasPrefix(folded, query)) {
			return true
		}
	}
	return false
}

func fold(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// NearDistance returns the edit distance of two names: the number of bytes to add, remove, change, or swap with the next. Names of more than
// 100 bytes are cut.
func NearDistance(a, b string) int {
	a, b = a[:min(len(a), maxBytes)], b[:min(len(b), maxBytes)]
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
