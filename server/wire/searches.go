package wire

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
)

// Searches are the fields of OpenAI's and vLLM's APIs that ask for several answers of which the best is sent. They stand for programs of
// the field search.
type Searches struct {
	BestOf        *int         `json:"best_of" range:"1 128"`
	BeamSearch    bool         `json:"use_beam_search"`
	LengthPenalty *float64     `json:"length_penalty" range:"-10 10"`
	EarlyStopping *earlyEnding `json:"early_stopping"`
}

// earlyEnding is true, false or "never".
type earlyEnding string

// ReadJSON implements [Own].
func (e *earlyEnding) ReadJSON(r *Reader) error {
	switch r.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		var on bool
		err := r.Into(&on)
		*e = earlyEnding(strconv.FormatBool(on))
		return err
	case jsontext.KindString:
		text, err := r.Text()
		if *e = earlyEnding(text); err == nil && text != "never" {
			err = r.Refuse("%q; it must be true, false or never", Clip(text))
		}
		return err
	}
	return r.Refuse("it must be true, false or never")
}

// Apply makes the program that the fields stand for that of a request with n answers.
func (f *Searches) Apply(r *grove.Request, n int) error {
	most, name := n, "best_of"
	Set(&most, f.BestOf)
	program := fmt.Sprintf("best,n=%d", most)
	if f.BeamSearch {
		name = "use_beam_search"
		length, early := 1.0, earlyEnding("false")
		Set(&length, f.LengthPenalty)
		Set(&early, f.EarlyStopping)
		program = fmt.Sprintf("beam,n=%d,length=%v,early=%s", most, length, early)
	} else if err := f.refuseBeams(); err != nil {
		return err
	} else if most == n { // all answers are sent
		return nil
	}
	switch {
	case r.Search != "":
		return Refuse(name, "%s: search asks for a program already; leave one out", name)
	case n != 1:
		return Unsupported(name, fmt.Sprintf("n is %d; it must be 1, or best_of equal to it without beam search: one answer is sent, and timings.search has the others", n))
	}
	if _, err := grove.SearchSlots(program); err != nil {
		return Refuse(name, "%s: %s", name, Plain(err))
	}
	r.Search = program
	return nil
}

// refuseBeams refuses settings of beam search where there is none, unless they change nothing.
func (f *Searches) refuseBeams() error {
	if f.LengthPenalty != nil && *f.LengthPenalty != 1 {
		return Refuse("length_penalty", "length_penalty is a setting of beam search; set use_beam_search to true")
	}
	if f.EarlyStopping != nil && *f.EarlyStopping != "false" {
		return Refuse("early_stopping", "early_stopping is a setting of beam search; set use_beam_search to true")
	}
	return nil
}
