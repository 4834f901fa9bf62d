// guided.go drafts from a text that is expected in the answer, such as the one to be edited: the user's prediction (as of an OpenAI
// request), or else the source of an encoder-decoder (Input-guided Aggressive Decoding, Ge et al. 2022).

package text

import (
	"context"

	"grove/internal/text/token"
	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "guided", Paper: "Input-guided aggressive decoding, 2022", Kind: method.KindText, Grade: method.Exact,
		Needs: "a prediction, or a source", Auto: true, Lasting: true, Replays: true,
		Open: func(method.Env) (method.Method, error) { return guided{}, nil },
	})
}

const (
	guidedLongest = 3  // tokens that must point to one place of the guide, or fewer
	guidedMost    = 64 // tokens of a draft
	guidedLost    = -1
)

type guided struct{}

// NewDrafter implements [method.Method].
func (guided) NewDrafter(method.Trunk) (method.Drafter, error) {
	d := &guidedDrafter{}
	for n := range d.index {
		d.index[n] = method.NewIndex(n + 1)
	}
	return d, nil
}

type guidedDrafter struct {
	history *method.History
	index   [guidedLongest]*method.Index // of the guide's n-grams of 1, 2, ... tokens
	next    int                          // the place of the guide that the answer has reached, or lost
	run     int                          // tokens of the answer that matched on the way there
}

// guide returns the text that the answer is expected to be like.
func (d *guidedDrafter) guide() []token.ID {
	if h := d.history; len(h.Prediction) == 0 {
		return h.IDs()[:h.SourceLen]
	}
	return d.history.Prediction
}

// Begin implements [method.Drafter]. The answer is expected to begin as the guide does.
func (d *guidedDrafter) Begin(h *method.History) error {
	d.history, d.next, d.run = h, 0, 1
	for _, x := range d.index {
		x.Reset()
		x.Cover(d.guide())
	}
	return nil
}

// Committed implements [method.Drafter].
func (d *guidedDrafter) Committed(r method.Update) {
	source := d.guide()
	if len(source) == 0 {
		return
	}
	answer := d.history.IDs()[d.history.PromptLen():]
	for i, id := range r.IDs {
		if d.next != guidedLost && d.next < len(source) && source[d.next] == id {
			d.next, d.run = d.next+1, d.run+1
		} else {
			d.next, d.run = d.align(answer[:len(answer)-len(r.IDs)+i+1])
		}
	}
}

// align finds the place of the guide behind the answer's last tokens: the fewest that occur there once.
func (d *guidedDrafter) align(answer []token.ID) (next, run int) {
	for n := 1; n <= min(guidedLongest, len(answer)); n++ {
		switch m := d.index[n-1].Find(d.guide(), answer); m.Count {
		case 0:
			return guidedLost, 0
		case 1:
			return int(m.End), n
		}
	}
	return guidedLost, 0
}

// Draft implements [method.Drafter]: the rest of the guide. A draft's class is the number of tokens that match if
// all before it are accepted.
func (d *guidedDrafter) Draft(_ context.Context, t *method.Tree) error {
	if d.next == guidedLost {
		return nil
	}
	at, source := method.Root, d.guide()
	for i, id := range source[d.next:min(d.next+guidedMost, len(source))] {
		class := min(d.run+i, method.Classes-1)
		if at = t.Add(at, id, class, 1-0.6/float32(1+class)); at == method.Root {
			break
		}
	}
	return nil
}
