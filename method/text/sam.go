// sam.go drafts by a suffix automaton of the text: the tokens that followed the longest suffix that occurred
// before are the draft, and the length of the suffix says how sure it is (SAM Decoding, Hu et al. 2024, without a
// static corpus).

package text

import (
	"context"
	"math/bits"

	"grove/internal/text/token"
	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "sam", Paper: "SAM decoding, 2024", Kind: method.KindText, Grade: method.Exact,
		Auto: true, Lasting: true, Replays: true,
		Open: func(method.Env) (method.Method, error) { return sam{}, nil },
	})
}

// samMost is the number of tokens of a draft.
const samMost = 40

type sam struct{}

// NewDrafter implements [method.Method].
func (sam) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &samDrafter{known: newAutomaton(), copied: make([]token.ID, 0, samMost)}, nil
}

type samDrafter struct {
	history *method.History
	known   *automaton
	copied  []token.ID // the draft of the round
}

// Begin implements [method.Drafter].
func (d *samDrafter) Begin(h *method.History) error {
	d.history = h
	d.known.reset()
	d.extend(h.IDs())
	return nil
}

// Committed implements [method.Drafter].
func (d *samDrafter) Committed(r method.Update) { d.extend(r.IDs) }

// extend adds tokens that are at the end of the text.
func (d *samDrafter) extend(ids []token.ID) {
	from := len(d.history.IDs()) - len(ids)
	for i, id := range ids {
		d.known.extend(id, int32(from+i))
	}
}

// Draft implements [method.Drafter]. A draft that reaches the end of the text goes on with itself, as periodic text does.
func (d *samDrafter) Draft(_ context.Context, t *method.Tree) error {
	length, end := d.known.repeated()
	if length == 0 {
		return nil
	}
	text, from, at := d.history.IDs(), end+1, method.Root
	d.copied = d.copied[:0]
	for i := range samMost {
		var id token.ID
		if p := from + i; p < len(text) {
			id = text[p]
		} else {
			id = d.copied[p-len(text)]
		}
		class := samClassOf(length + i)
		if at = t.Add(at, id, class, samBeliefs[class]); at == method.Root {
			break
		}
		d.copied = append(d.copied, id)
	}
	return nil
}

// samClassOf sorts lengths of matches: by themselves up to 8, by halves of powers of two beyond.
func samClassOf(length int) int {
	if length <= 8 {
		return length
	}
	log := bits.Len(uint(length)) - 1
	return min(8+2*(log-3)+int(uint(length)>>(log-1)&1), method.Classes-1)
}

// samBeliefs are how often a draft of a class is accepted, before anything is known.
var samBeliefs = func() (b [method.Classes]float32) {
	known := [...]float32{0, 0.1, 0.3, 0.45, 0.55, 0.65, 0.7, 0.75, 0.8}
	for class := range b {
		b[class] = 0.9
		if class < len(known) {
			b[class] = known[class]
		}
	}
	return b
}()
