// lookup.go drafts by prompt lookup: where the last tokens of the text occurred before, the tokens that followed
// them then are the draft (Prompt Lookup Decoding, Saxena 2023).

package text

import (
	"context"

	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "lookup", Paper: "Prompt lookup decoding, 2023", Kind: method.KindText, Grade: method.Exact, Lasting: true, Replays: true,
		NotAuto: "sam drafts the same",
		Open:    func(method.Env) (method.Method, error) { return lookup{}, nil },
	})
}

const (
	lookupLongest = 3  // tokens that must be the same as before: as many as this, or fewer
	length        = 10 // tokens of a draft
)

type lookup struct{}

// NewDrafter implements [method.Method].
func (lookup) NewDrafter(method.Trunk) (method.Drafter, error) { return &lookupDrafter{}, nil }

type lookupDrafter struct{ history *method.History }

// Begin implements [method.Drafter].
func (d *lookupDrafter) Begin(h *method.History) error { d.history = h; return nil }

// Committed implements [method.Drafter].
func (d *lookupDrafter) Committed(method.Update) {}

// Draft implements [method.Drafter]: the longest match wins, of equally long ones the earliest. Where the match is
// near the end of the text, the draft is shorter. The class of each draft token is the number of tokens that match if
// all before it are accepted.
func (d *lookupDrafter) Draft(_ context.Context, t *method.Tree) error {
	text := d.history.IDs()
	for n := lookupLongest; n > 0; n-- {
		m := d.history.Index(n).Find(text, text)
		if m.Count == 0 {
			continue
		}
		at, from := method.Root, int(m.End)
		for i, id := range text[from:min(from+length, len(text))] {
			if at = t.Add(at, id, min(n+i, method.Classes-1), lookupBelief[min(n+i, lookupLongest)]); at == method.Root {
				break
			}
		}
		return nil
	}
	return nil
}

// lookupBelief is how often a draft behind a match of 1, 2, 3 tokens is accepted, before anything is known.
var lookupBelief = [lookupLongest + 1]float32{0, 0.15, 0.4, 0.6}
