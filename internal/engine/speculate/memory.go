// memory.go is the bytes that drafting takes besides the weights of draft models, and the largest rounds within a bound of them
// (SpecMemo: Speculative Decoding is in Your Pocket, 2025).

package speculate

import "math"

// MemorySize is how large drafting is.
type MemorySize struct {
	Drafts  int `json:"drafts"`  // of a round
	Context int `json:"context"` // tokens of a text in the models that draft
	Texts   int `json:"texts"`   // that draft at a time
}

// MemoryLimits bounds the drafting of an engine.
type MemoryLimits struct {
	Drafts int // of a round
	Texts  int // that draft at a time
	Bytes  int // that the rounds of one text may take; 0: any
}

// MemoryBytes are the bytes of drafting, by what they hold.
type MemoryBytes struct {
	Rows          int `json:"rows"`          // keys and values of drafts that the model verifies, and the inputs to its recurrent layers
	Logits        int `json:"logits"`        // and final states, of the rows of rounds and of passes that draft
	Trees         int `json:"trees"`         // of drafts, with the places of their rows
	Distributions int `json:"distributions"` // that drafts are drawn from
	Kept          int `json:"kept"`          // what rows gave, for drafters
	Caches        int `json:"caches"`        // keys and values of the models that draft
	States        int `json:"states"`        // of the recurrent layers of these
}

// Total returns the bytes of all.
func (b MemoryBytes) Total() int {
	return b.Rows + b.Logits + b.Trees + b.Distributions + b.Kept + b.Caches + b.States
}

// Add adds the bytes of n texts, or parts.
func (b *MemoryBytes) Add(n int, o MemoryBytes) {
	b.Rows, b.Logits, b.Trees = b.Rows+n*o.Rows, b.Logits+n*o.Logits, b.Trees+n*o.Trees
	b.Distributions, b.Kept = b.Distributions+n*o.Distributions, b.Kept+n*o.Kept
	b.Caches, b.States = b.Caches+n*o.Caches, b.States+n*o.States
}

// MemoryPage is the step in which the context of draft models is chosen.
const MemoryPage = 64

// MemoryLeast is the smallest drafting that there is.
var MemoryLeast = MemorySize{Drafts: 1, Context: MemoryPage, Texts: 1}

// accepted is the probability that a draft of a chain is accepted where those before it are, for the choice of a size.
const accepted = 0.75

// worth is what drafting of a size is expected to give: the drafts that are accepted in a round, of a chain, in the share of a text
// that the draft models can hold, of all texts.
func (s MemorySize) worth(most MemorySize) float64 {
	drafts := (1 - math.Pow(accepted, float64(s.Drafts))) * accepted / (1 - accepted)
	return drafts * float64(s.Texts) * float64(s.Context) / float64(most.Context)
}

// MemoryFit returns the size, up to most, that is worth most of those whose bytes are within a budget; false: not even [MemoryLeast] is. bytes grows
// with each part of a size. Of sizes of equal worth it is the one of the fewest bytes.
func MemoryFit(budget int, most MemorySize, bytes func(MemorySize) int) (best MemorySize, ok bool) {
	least := -1.0
	for texts := 1; texts <= most.Texts; texts++ {
		for drafts := 1; drafts <= most.Drafts; drafts++ {
			s := MemorySize{drafts, min(MemoryPage, most.Context), texts}
			if bytes(s) > budget {
				break // so do more drafts
			}
			s.Context = longest(s, most.Context, func(s MemorySize) bool { return bytes(s) <= budget })
			if w := s.worth(most); w > least {
				best, least, ok = s, w, true
			}
		}
	}
	return best, ok
}

// longest returns the longest context up to most, in pages, for which a size fits; the size itself does.
func longest(s MemorySize, most int, fits func(MemorySize) bool) int {
	low, high := s.Context, most // low fits
	for low < high {
		mid := min(high, (low+(high-low+1)/2+MemoryPage-1)/MemoryPage*MemoryPage)
		s.Context = mid
		if fits(s) {
			low = mid
		} else {
			high = max(low, (mid-1)/MemoryPage*MemoryPage)
		}
	}
	return low
}
