// Package lookup drafts by prompt lookup: where the last tokens of the text stood before, what followed them
// then is the guess (Prompt Lookup Decoding, Saxena 2023).
package lookup

import (
	"context"

	"grove/method"
	"grove/text/token"
)

func init() {
	method.Register(method.Info{
		Name: "lookup", Paper: "Prompt lookup decoding, 2023", Kind: method.KindText, Grade: method.Exact,
		Open: func(method.Env) (method.Method, error) { return lookup{}, nil },
	})
}

const (
	longest = 3  // tokens that must be the same as before: as many as this, or fewer
	length  = 10 // tokens of a guess
)

type lookup struct{}

// NewDrafter implements [method.Method].
func (lookup) NewDrafter() (method.Drafter, error) {
	d := &drafter{}
	for n := range d.index {
		d.index[n] = method.NewIndex(n + 1)
	}
	return d, nil
}

type drafter struct {
	text  []token.ID
	index [longest]*method.Index // of n-grams of 1, 2, ... tokens
}

// Begin implements [method.Drafter].
func (d *drafter) Begin(t method.Text) error {
	d.text = append(d.text[:0], t.Prompt...)
	for _, x := range d.index {
		x.Reset()
		x.Cover(d.text)
	}
	return nil
}

// Extend implements [method.Drafter].
func (d *drafter) Extend(ids []token.ID) {
	d.text = append(d.text, ids...)
	for _, x := range d.index {
		x.Cover(d.text)
	}
}

// Draft implements [method.Drafter]: the longest match wins, of equally long ones the earliest. A guess that
// reaches the end of the text is shorter. Each guess's class is the tokens that match if all before it come true.
func (d *drafter) Draft(_ context.Context, t *method.Tree) error {
	for n := longest; n > 0; n-- {
		m := d.index[n-1].Find(d.text, d.text)
		if m.Count == 0 {
			continue
		}
		at, from := method.Root, int(m.End)
		for i, id := range d.text[from:min(from+length, len(d.text))] {
			if at = t.Add(at, id, min(n+i, method.Classes-1), belief[min(n+i, longest)]); at == method.Root {
				break
			}
		}
		return nil
	}
	return nil
}

// belief is how often a guess behind a match of 1, 2, 3 tokens is right, before anything is known.
var belief = [longest + 1]float32{0, 0.15, 0.4, 0.6}
