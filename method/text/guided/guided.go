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
		Name: "guided", Paper: "Input-guided aggressive decoding, 2022", Kind: method.KindText, Grade: method.Exact, Auto: true,
		Needs: "a prediction",
		Open:  func(method.Env) (method.Method, error) { return guided{}, nil },
	})
}

const (
	longest = 3  // tokens that must point to one place of the prediction, or fewer
	most    = 64 // tokens of a guess
	lost    = -1
)

type guided struct{}

// NewDrafter implements [method.Method].
func (guided) NewDrafter() (method.Drafter, error) {
	d := &drafter{}
	for n := range d.index {
		d.index[n] = method.NewIndex(n + 1)
	}
	return d, nil
}

type drafter struct {
	source []token.ID
	index  [longest]*method.Index // of the source's n-grams of 1, 2, ... tokens
	recent []token.ID             // the last tokens of the answer
	next   int                    // the place of the source that comes next, or lost
	run    int                    // tokens of the answer that matched on the way there
}

// Begin implements [method.Drafter]. The answer is expected to begin as the prediction does.
func (d *drafter) Begin(t method.Text) error {
	d.source, d.recent = append(d.source[:0], t.Prediction...), d.recent[:0]
	d.next, d.run = 0, 1
	for _, x := range d.index {
		x.Reset()
		x.Cover(d.source)
	}
	return nil
}

// Extend implements [method.Drafter].
func (d *drafter) Extend(ids []token.ID) {
	if len(d.source) == 0 {
		return
	}
	for _, id := range ids {
		if len(d.recent) == longest {
			d.recent = d.recent[:copy(d.recent, d.recent[1:])]
		}
		d.recent = append(d.recent, id)
		if d.next != lost && d.next < len(d.source) && d.source[d.next] == id {
			d.next, d.run = d.next+1, d.run+1
		} else {
			d.next, d.run = d.align()
		}
	}
}

// align finds the place behind the answer's last tokens: the fewest that stand in one place alone.
func (d *drafter) align() (next, run int) {
	for n := 1; n <= min(longest, len(d.recent)); n++ {
		switch m := d.index[n-1].Find(d.source, d.recent); m.Count {
		case 0:
			return lost, 0
		case 1:
			return int(m.End), n
		}
	}
	return lost, 0
}

// Draft implements [method.Drafter]: the rest of the prediction. A guess's class is the tokens that match if all
// before it come true.
func (d *drafter) Draft(_ context.Context, t *method.Tree) error {
	if d.next == lost {
		return nil
	}
	at := method.Root
	for i, id := range d.source[d.next:min(d.next+most, len(d.source))] {
		class := min(d.run+i, method.Classes-1)
		if at = t.Add(at, id, class, 1-0.6/float32(1+class)); at == method.Root {
			break
		}
	}
	return nil
}
