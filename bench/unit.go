// unit.go finds the lexical units of texts.

package bench

import (
	"fmt"
	"io"
	"math"
)

// UnitReport says how much of a text are lexical units: maximal runs of tokens all of which the model predicts with a probability above a
// threshold (Lexical Unit Decoding, 2024). Its bound is what a model gains at most that was trained to give a token and the unit behind it in
// one pass, on this text.
type UnitReport struct {
	Threshold float64 `json:"threshold"`
	Units     int     `json:"units"`
	Share     float64 `json:"share"`           // of the tokens, that are in units
	Length    float64 `json:"length"`          // tokens of a unit in the mean
	Bound     float64 `json:"tokens_per_pass"` // a pass gives one token and the rest of the unit behind it
}

// UnitFinder finds lexical units. It is for one goroutine.
type UnitFinder struct {
	Threshold float64 // probability above which a token is of a unit

	inside    bool // the token before was in a unit
	begun     bool // the text has a token
	all       int  // tokens
	n, tokens int  // units, and tokens in them
	passes    int
}

// Add tells the negative log-probability of the next token of a text.
func (u *UnitFinder) Add(nll float64) {
	in := math.Exp(-nll) > u.Threshold
	u.all++
	if !in || !u.begun {
		u.passes++
	}
	if in {
		u.tokens++
		if !u.inside {
			u.n++
		}
	}
	u.inside, u.begun = in, true
}

// End ends a text.
func (u *UnitFinder) End() { u.inside, u.begun = false, false }

// Report returns the figures of the texts so far.
func (u *UnitFinder) Report() *UnitReport {
	return &UnitReport{
		Threshold: u.Threshold, Units: u.n, Share: float64(u.tokens) / float64(max(1, u.all)),
		Length: float64(u.tokens) / float64(max(1, u.n)), Bound: float64(u.all) / float64(max(1, u.passes)),
	}
}

// WriteText writes the report as a line.
func (r *UnitReport) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "lexical units above %g: %.1f %% of the tokens, in %d units of %.2f tokens; at most %.2f tokens a pass\n",
		r.Threshold, 100*r.Share, r.Units, r.Length, r.Bound)
	return err
}
