// Package guided drafts from a text that the user expects to find in the answer, such as the one to be edited
// (Input-guided Aggressive Decoding, Ge et al. 2022; the prediction of an OpenAI request).
package guided

import (
	"context"

	"grove/method"
	"grove/text/token"
)

func init() {
	method.Register(method.Info{
		Name: "guided", Paper: "Input-guided aggressive decoding, 2022", Kind: method.KindText, Grade: method.Exact,
		Needs: "a prediction", Auto: true, Lasting: true, Replays: true,
		Open: func(method.Env) (method.Method, error) { return guided{}, nil },
	})
}

const (
	longest = 3  // tokens that must point to one place of the prediction, or fewer
	most    = 64 // tokens of a draft
	lost    = -1
)

type guided struct{}

// NewDrafter implements [method.Method].
func (guided) NewDrafter(method.Trunk) (method.Drafter, error) {
	d := &drafter{}
	for n := range d.index {
		d.index[n] = method.NewIndex(n + 1)
	}
	return d, nil
}

type drafter struct {
	history *method.History
	index   [longest]*method.Index // of the prediction's n-grams of 1, 2, ... tokens
	next    int                    // the place of the prediction that the answer has reached, or lost
	run     int                    // tokens of the answer that matched on the way there
}

// Begin implements [method.Drafter]. The answer is expected to begin as the prediction does.
func (d *drafter) Begin(h *method.History) error {
	d.history, d.next, d.run = h, 0, 1
	for _, x := range d.index {
		x.Reset()
		x.Cover(h.Prediction)
	}
	return nil
}

// Committed implements [method.Drafter].
func (d *drafter) Committed(r method.Run) {
	source := d.history.Prediction
	if len(source) == 0 {
		return
	}
	answer := d.history.IDs()[d.history.Prompt():]
	for i, id := range r.IDs {
		if d.next != lost && d.next < len(source) && source[d.next] == id {
			d.next, d.run = d.next+1, d.run+1
		} else {
			d.next, d.run = d.align(answer[:len(answer)-len(r.IDs)+i+1])
		}
	}
}

// align finds the place of the prediction behind the answer's last tokens: the fewest that occur there once.
func (d *drafter) align(answer []token.ID) (next, run int) {
	for n := 1; n <= min(longest, len(answer)); n++ {
		switch m := d.index[n-1].Find(d.history.Prediction, answer); m.Count {
		case 0:
			return lost, 0
		case 1:
			return int(m.End), n
		}
	}
	return lost, 0
}

// Draft implements [method.Drafter]: the rest of the prediction. A draft's class is the number of tokens that match if
// all before it are accepted.
func (d *drafter) Draft(_ context.Context, t *method.Tree) error {
	if d.next == lost {
		return nil
	}
	at, source := method.Root, d.history.Prediction
	for i, id := range source[d.next:min(d.next+most, len(source))] {
		class := min(d.run+i, method.Classes-1)
		if at = t.Add(at, id, class, 1-0.6/float32(1+class)); at == method.Root {
			break
		}
	}
	return nil
}
