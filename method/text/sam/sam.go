// Package sam drafts by a suffix automaton of the text: what followed the longest suffix that stood before is the
// guess, and the length of the suffix says how sure it is (SAM Decoding, Hu et al. 2024, without a static corpus).
package sam

import (
	"context"
	"math/bits"

	"grove/method"
	"grove/text/token"
)

func init() {
	method.Register(method.Info{
		Name: "sam", Paper: "SAM decoding, 2024", Kind: method.KindText, Grade: method.Exact, Auto: true,
		Open: func(method.Env) (method.Method, error) { return sam{}, nil },
	})
}

// most is the number of tokens of a guess.
const most = 40

type sam struct{}

// NewDrafter implements [method.Method].
func (sam) NewDrafter() (method.Drafter, error) {
	return &drafter{known: newAutomaton(), guess: make([]token.ID, 0, most)}, nil
}

type drafter struct {
	text  []token.ID
	known *automaton
	guess []token.ID
}

// Begin implements [method.Drafter].
func (d *drafter) Begin(t method.Text) error {
	d.text = d.text[:0]
	d.known.reset()
	d.Extend(t.Prompt)
	return nil
}

// Extend implements [method.Drafter].
func (d *drafter) Extend(ids []token.ID) {
	for _, id := range ids {
		d.known.extend(id, int32(len(d.text)))
		d.text = append(d.text, id)
	}
}

// Draft implements [method.Drafter]. A guess that reaches the end of the text goes on with itself, as periodic
// text does.
func (d *drafter) Draft(_ context.Context, t *method.Tree) error {
	length, end := d.known.repeated()
	if length == 0 {
		return nil
	}
	from := end + 1
	at := method.Root
	d.guess = d.guess[:0]
	for i := range most {
		var id token.ID
		if p := from + i; p < len(d.text) {
			id = d.text[p]
		} else {
			id = d.guess[p-len(d.text)]
		}
		class := classOf(length + i)
		if at = t.Add(at, id, class, beliefs[class]); at == method.Root {
			break
		}
		d.guess = append(d.guess, id)
	}
	return nil
}

// classOf sorts lengths of matches: by themselves up to 8, by halves of powers of two beyond.
func classOf(length int) int {
	if length <= 8 {
		return length
	}
	log := bits.Len(uint(length)) - 1
	return min(8+2*(log-3)+int(uint(length)>>(log-1)&1), method.Classes-1)
}

// beliefs are how often a guess of a class is right, before anything is known.
var beliefs = func() (b [method.Classes]float32) {
	known := [...]float32{0, 0.1, 0.3, 0.45, 0.55, 0.65, 0.7, 0.75, 0.8}
	for class := range b {
		b[class] = 0.9
		if class < len(known) {
			b[class] = known[class]
		}
	}
	return b
}()
