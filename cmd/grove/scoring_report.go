package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"grove/internal/text/token"
	"grove/score"
)

// report is the answers to questions.
type report struct {
	answers []scoringAnswer
	leftOut int // questions that do not fit the context
	tally   *score.Tally
	piece   func(id token.ID) string // nil: tokens are not written
}

// scoringAnswer is the choices of a question with their scores.
type scoringAnswer struct {
	place   int // of the question
	choices []score.Continuation
	right   *int
}

// add adds a question, whose choices stay as they were written in it.
func (r *report) add(place int, q score.Question, choices []score.Continuation) {
	for i := range choices {
		choices[i].Text = q.Choices[i]
	}
	r.answers = append(r.answers, scoringAnswer{place, choices, q.Answer})
	if q.Answer != nil {
		r.tally.Add(choices, *q.Answer)
	}
}

// WriteText implements [flags.Report]. It writes the choices of a single question, or of questions without answers; and the accuracy.
func (r *report) WriteText(w io.Writer) error {
	known := r.tally.Accuracies[0].All
	several := len(r.answers)+r.leftOut > 1
	for _, a := range r.answers {
		if several && a.right != nil {
			continue
		}
		if several {
			fmt.Fprintf(w, "question %d\n", a.place) // to memory: it does not fail
		}
		r.writeChoices(w, a)
	}
	if !several {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d questions, %d with an answer", len(r.answers), known)
	if r.leftOut > 0 {
		fmt.Fprintf(w, "; %d more do not fit the context and are left out", r.leftOut)
	}
	fmt.Fprintln(w)
	if known > 0 {
		fmt.Fprintf(t, "\taccuracy\t95 %% interval\n")
		for i, n := range r.tally.Norms {
			low, high := r.tally.Accuracies[i].Interval()
			fmt.Fprintf(t, "%s\t%.3f\t%.3f to %.3f\n", n, r.tally.Accuracies[i].Share(), low, high)
		}
	}
	return t.Flush()
}

// writeChoices writes a table of the choices of a question, and the best one by each normalisation.
func (r *report) writeChoices(w io.Writer, a scoringAnswer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	io.WriteString(t, "choice")
	for _, n := range r.tally.Norms {
		fmt.Fprintf(t, "\t%s", n)
	}
	io.WriteString(t, "\ttokens\tgreedy\ttext\n")
	for i := range a.choices {
		c := &a.choices[i]
		fmt.Fprint(t, i)
		for _, n := range r.tally.Norms {
			fmt.Fprintf(t, "\t%.4f", c.Score(n))
		}
		fmt.Fprintf(t, "\t%d\t%v\t%q\n", len(c.Tokens), c.Greedy, c.Text)
	}
	io.WriteString(t, "best")
	for _, n := range r.tally.Norms {
		fmt.Fprintf(t, "\t%d", score.Best(a.choices, n))
	}
	io.WriteString(t, "\t\t\t\n")
	t.Flush()
}

// WriteJSON implements [flags.Report]. It writes an object for each question, and one with the accuracy.
func (r *report) WriteJSON(w io.Writer) error {
	type question struct {
		Question int           `json:"question"`
		Choices  []score.Entry `json:"choices"`
		Best     score.Places  `json:"best"`
		Answer   *int          `json:"answer"`
	}
	type accuracy struct {
		Norm     score.Norm `json:"norm"`
		Right    int        `json:"right"`
		Accuracy float64    `json:"accuracy"`
		Low      float64    `json:"low"`
		High     float64    `json:"high"`
	}
	out := json.NewEncoder(w)
	var err error
	for _, a := range r.answers {
		err = errors.Join(err, out.Encode(question{a.place, score.Entries(a.choices, r.piece), score.BestPlaces(a.choices), a.right}))
	}
	known := r.tally.Accuracies[0].All
	if known == 0 || err != nil {
		return err
	}
	var all []accuracy
	for i, n := range r.tally.Norms {
		of := r.tally.Accuracies[i]
		low, high := of.Interval()
		all = append(all, accuracy{n, of.Right, of.Share(), low, high})
	}
	return out.Encode(map[string]any{"questions": len(r.answers), "answered": known, "left_out": r.leftOut, "accuracy": all})
}
