// sjd.go drafts a window of tokens and redrafts it every round from what the model said of it (Speculative
// Jacobi Decoding, Teng et al. 2024).
//
// Every row of a round gives the distribution of the place behind it, even a row whose token is rejected. The next
// round draws its draft of that place from this distribution, and the rule [verify.Reject] knows it as the
// distribution of the draft. So the window comes closer to the model's text from round to round, without a second
// model.
//
// A row behind a rejected token may say little of its place. So a place is drafted from the text's n-grams where such
// drafts are accepted more often, and where no row told of it.

package logits

import (
	"context"

	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// The sizes of the method.
const (
	window     = 8  // rows of a round: the text's last token and the drafts
	sjdLongest = 3  // tokens of the n-grams by which places are drafted
	recent     = 64 // tokens at the text's end that are drafted where no n-gram matches
)

func init() {
	method.Register(method.Info{
		Name: "sjd", Paper: "Speculative Jacobi Decoding, 2024", Kind: method.KindLogits,
		Grade: method.SameDistribution, Rule: verify.Reject, Provides: verify.Properties{Distributions: true, WithReplacement: true, Chain: true},
		Open: func(e method.Env) (method.Method, error) { return sjd{window, e.Vocabulary}, nil },
	})
}

// sjd is a window's size, and that of the vocabulary.
type sjd struct{ window, vocabulary int }

// NewDrafter implements [method.Method].
func (m sjd) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &sjdDrafter{vocabulary: m.vocabulary, places: make([]verify.Distribution, m.window-1)}, nil
}

type sjdDrafter struct {
	vocabulary int
	history    *method.History
	noise      *sample.Chain
	length     int                   // of the text at the last round; 0: there was none
	places     []verify.Distribution // of which the drafts are drawn, by place in the window
	known      int                   // of the places: given by the last round
	path       []token.ID            // the end of the text and the drafts
}

// Wants implements [method.Wanter].
func (*sjdDrafter) Wants() method.Wants { return method.Wants{Probs: true} }

// Begin implements [method.Drafter].
func (d *sjdDrafter) Begin(h *method.History) (err error) {
	d.history, d.length, d.known = h, 0, 0
	d.noise, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.vocabulary)
	return err
}

// Committed implements [method.Drafter]: it keeps the distributions of the places that the text has not reached. The
// i-th row gives the one of the place i tokens behind the end of the text at the last round.
func (d *sjdDrafter) Committed(r method.Update) {
	d.known = 0
	if d.length == 0 {
		return // rows of a text that was cut
	}
	reached := len(d.history.IDs()) - d.length
	for i, row := range r.Rows {
		if int(row.Parent) != i-1 || len(row.Probs) == 0 || d.known == len(d.places) {
			return
		}
		if i >= reached {
			sparse(&d.places[d.known], row.Probs)
			d.known++
		}
	}
}

// sparse makes q the tokens of p that have a probability.
func sparse(q *verify.Distribution, p []float32) {
	q.IDs, q.P = q.IDs[:0], q.P[:0]
	for id, v := range p {
		if v > 0 {
			q.IDs, q.P = append(q.IDs, token.ID(id)), append(q.P, v)
		}
	}
}

// Draft implements [method.Drafter]. The random numbers depend on the text's length and the place, so that each round
// has its own.
//
// Where a constraint says which tokens are legal, a draft counts as certain: its distribution is the token alone.
// Then an illegal one may be left out, which would change the text's distribution if the draft counted as a draw.
func (d *sjdDrafter) Draft(_ context.Context, t *method.Tree) error {
	text := d.history.IDs()
	if d.length = len(text); d.length == 0 {
		return nil
	}
	d.path = append(d.path[:0], text[max(0, len(text)-sjdLongest):]...)
	at := method.Root
	for i := range min(len(d.places), t.Depth(), t.Room()) {
		q, class, belief := &d.places[i], i, float32(rowBelief)
		number := d.noise.Number(len(text), method.PurposeDraft+method.NodePurposes*sample.Purpose(i))
		id, n := d.copied(text, number)
		if copied := ngramBelief * float32(n); i >= d.known || t.Estimate(window+n, copied) > t.Estimate(class, belief) {
			certain(q, id)
			class, belief = window+n, copied
		}
		id = q.IDs[pick(q.P, number)]
		if t.Legal != nil {
			if !t.Legal.Allows(at, id) {
				return nil
			}
			certain(q, id)
		}
		t.SetDistribution(at, *q)
		if at = t.AddSample(at, id, 0, class, belief); at == method.Root {
			return nil
		}
		d.path = append(d.path, id)
	}
	return nil
}

// How often drafts are accepted, before anything is known: one that a row gave, and one behind an n-gram, for each of
// its tokens.
const (
	rowBelief   = 0.3
	ngramBelief = 0.1
)

// copied returns the token of the text behind the first n-gram that the path ends with, and n; or any of the text's
// end, and 0.
func (d *sjdDrafter) copied(text []token.ID, number float64) (id token.ID, n int) {
	for n := sjdLongest; n > 0; n-- {
		if m := d.history.Index(n).Find(text, d.path); m.Count > 0 {
			return text[m.End], n
		}
	}
	end := text[max(0, len(text)-recent):]
	return end[int(number*float64(len(end)))], 0
}

// certain makes q the distribution of one token.
func certain(q *verify.Distribution, id token.ID) {
	q.IDs, q.P = append(q.IDs[:0], id), append(q.P[:0], 1)
}

// pick returns the place where the sum of p exceeds u.
func pick(p []float32, u float64) int {
	for i, v := range p {
		if u -= float64(v); u < 0 {
			return i
		}
	}
	return len(p) - 1 // rounding
}
