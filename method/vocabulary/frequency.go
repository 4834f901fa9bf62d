package vocabulary

import (
	"cmp"
	"math"
	"slices"

	"grove/internal/compute"
	"grove/internal/text/token"
)

// Frequencies counts how often tokens of a vocabulary were in texts, by groups of [Group] ids, which a head computes
// together. Tokens that no text had yet are ordered by their ids, in which vocabularies list merges by frequency. It is not safe for
// concurrent use.
type Frequencies struct {
	counts []uint32 // by group; always: whatever was counted
	total  int
	order  []int32 // scratch
}

// Group is the number of tokens that a head computes together, which count as one.
const Group = compute.SubsetGroup

const (
	// forgetAfter is how many tokens are counted before all counts are halved.
	forgetAfter = 1 << 20
	always      = math.MaxUint32
)

// Groups returns the number of groups of n tokens.
func Groups(n int) int { return (n + Group - 1) / Group }

// New begins with counts by group, which it copies; nil, or counts of another vocabulary: with none.
func New(vocabulary int, counts []uint32) Frequencies {
	f := Frequencies{counts: make([]uint32, Groups(vocabulary))}
	if len(counts) == len(f.counts) {
		for g, n := range counts {
			f.counts[g] = min(n, forgetAfter)
			f.total += int(f.counts[g])
		}
		f.Forget()
	}
	return f
}

// Always puts a token before all others, whatever was counted.
func (f *Frequencies) Always(id token.ID) {
	n := &f.counts[id/Group]
	if *n != always {
		f.total -= int(*n)
	}
	*n = always
}

// Count counts a token. It returns false where the vocabulary does not have it.
func (f *Frequencies) Count(id token.ID) bool {
	g := int(id / Group)
	if id < 0 || g >= len(f.counts) {
		return false
	}
	if f.counts[g] != always {
		f.counts[g]++
		f.total++
	}
	return true
}

// Forget halves the counts once they are many, as often as that takes.
func (f *Frequencies) Forget() {
	for f.total >= forgetAfter {
		f.total = 0
		for g, n := range f.counts {
			if n != always {
				f.counts[g] = n / 2
				f.total += int(n / 2)
			}
		}
	}
}

// Counts returns a copy of the counts by group; those of tokens that come first in any case are 0.
func (f *Frequencies) Counts() []uint32 {
	counts := slices.Clone(f.counts)
	for g, n := range counts {
		if n == always {
			counts[g] = 0
		}
	}
	return counts
}

// Total returns the number of tokens that the counts stand for.
func (f *Frequencies) Total() int { return f.total }

// Order returns the groups, the most frequent ones first. It is valid until the next call.
func (f *Frequencies) Order() []int32 {
	f.order = f.order[:0]
	for g := range f.counts {
		f.order = append(f.order, int32(g))
	}
	slices.SortStableFunc(f.order, func(a, b int32) int { return cmp.Compare(f.counts[b], f.counts[a]) })
	return f.order
}

// Unseen estimates the share of texts that tokens make up which were not counted: the share of those that were counted once (Good
// 1953, Turing); 1 where nothing was.
func (f *Frequencies) Unseen() float64 {
	once := 0
	for _, n := range f.counts {
		if n == 1 {
			once++
		}
	}
	return float64(once+1) / float64(f.total+1)
}

// Coverage appends the shares of texts that the first 1, 2, ... groups of the last [Frequencies.Order] make up. What was counted makes up
// 1 - unseen; the rest is spread over all groups by Zipf's distribution in the order of ids. It rises, to 1 at the last group; with unseen 0, where
// something was counted, at the last group that was.
func (f *Frequencies) Coverage(dst []float64, unseen float64) []float64 {
	sum, norm := 0.0, math.Log1p(float64(len(f.counts)*Group))
	for _, g := range f.order {
		if n := f.counts[g]; n != always && f.total > 0 {
			sum += (1 - unseen) * float64(n) / float64(f.total)
		}
		first := float64(g) * Group
		sum += unseen * math.Log((first+Group+1)/(first+1)) / norm
		dst = append(dst, sum)
	}
	return dst
}
