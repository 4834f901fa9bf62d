// Package vocabulary says which part of its vocabulary a draft model should compute: it counts tokens in texts, and predicts what a part
// costs and gives.
package vocabulary

import (
	"encoding/json"
	"fmt"
	"math"

	"grove/internal/fileio"
)

// Acceptance is the probability that a draft is accepted where those before it are: Alpha where the head of the draft model computes
// its whole vocabulary, and Alpha * c^Kappa where it computes tokens that make up the share c of texts.
type Acceptance struct {
	Alpha float64 `json:"alpha"`
	Kappa float64 `json:"kappa"`
}

// Usual is the acceptance of a pair of models that was not measured.
var Usual = Acceptance{Alpha: 0.7, Kappa: 1}

// mostKappa bounds an exponent that is fitted.
const mostKappa = 8

// At returns the probability for a share of texts.
func (a Acceptance) At(coverage float64) float64 {
	return a.Alpha * math.Pow(min(1, coverage), a.Kappa)
}

// Fit returns the acceptance for shares of drafts that were accepted, by shares of texts. The last pair is of the whole vocabulary.
// The exponent is that of the least squares of logarithms; [Usual] where no draft was accepted.
func Fit(coverage, accepted []float64) Acceptance {
	a := Usual
	if len(accepted) == 0 || accepted[len(accepted)-1] <= 0 {
		return a
	}
	a.Alpha = accepted[len(accepted)-1]
	xx, xy := 0.0, 0.0
	for i, c := range coverage {
		if c > 0 && c < 1 && accepted[i] > 0 {
			x, y := math.Log(c), math.Log(accepted[i]/a.Alpha)
			xx, xy = xx+x*x, xy+x*y
		}
	}
	if xx > 0 {
		a.Kappa = min(mostKappa, max(0, xy/xx))
	}
	return a
}

// Measured holds the measurements by which a draft model's part of the vocabulary is chosen for a target.
type Measured struct {
	Acceptance
	Counts []uint32 `json:"counts"` // of tokens in texts, by groups of ids
	Tokens int      `json:"tokens"` // that were chosen by it
}

// Path names the file in the user's cache directory that keeps what was [Measured]: by the files of the costs of the target and
// of the draft model.
func Path(target, draft string) (string, error) {
	return fileio.CachePath("vocabulary", target, draft)
}

// Save writes what was measured to a file; readers find the old file or all of the new.
func (v *Measured) Save(path string) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("vocabulary: %w", err)
	}
	return fileio.WriteCache(path, text)
}

// Load reads what Save wrote for a draft model of so many groups of tokens. A file that is missing or makes no sense counts
// as none: the result is then [Usual] without counts.
func Load(path string, groups int) Measured {
	v := Measured{}
	if json.Unmarshal(fileio.ReadCache(path, 1<<22), &v) != nil || !(v.Alpha > 0 && v.Alpha <= 1 && v.Kappa >= 0 && v.Kappa <= mostKappa) || len(v.Counts) != groups {
		return Measured{Acceptance: Usual}
	}
	return v
}

// Head predicts the tokens a second that a chain of drafts gives, by how much of its vocabulary the draft model computes. It is safe
// for concurrent use; its fields do not change.
type Head struct {
	Acceptance
	Steps []float64                   // seconds of a step of the target that verifies 0, 1, ... drafts
	Draft func(share float64) float64 // seconds of a draft where the head computes a share of the vocabulary
}

// Rate returns the tokens a second of the best number of drafts, of which each is accepted with a probability where those before it
// are and takes draft seconds: (1 + a + a^2 + ... + a^n) / (n draft + T(n+1)).
func (h *Head) Rate(accepted, draft float64) (best float64, drafts int) {
	tokens, power := 1.0, 1.0
	for n := 1; n < len(h.Steps); n++ {
		power *= accepted
		tokens += power
		if rate := tokens / (float64(n)*draft + h.Steps[n]); rate > best {
			best, drafts = rate, n
		}
	}
	return best, drafts
}

// Groups returns how many groups of tokens the head should compute, the most frequent ones, for the most tokens a second: coverage[i]
// is the share of texts that the first i+1 groups make up. Every number is tried: in one dimension that is exact and takes a
// millisecond, so no search is needed. (Balancing Coverage and Draft Latency in Vocabulary Trimming, with tokens a second as the
// utility.)
func (h *Head) Groups(coverage []float64) (groups int) {
	most := 0.0
	for i, c := range coverage {
		if rate, _ := h.Rate(h.At(c), h.Draft(float64(i+1)/float64(len(coverage)))); rate > most {
			most, groups = rate, i+1
		}
	}
	return groups
}
