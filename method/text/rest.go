// rest.go drafts what followed the end of the text in a datastore: a tree of the most frequent continuations (REST, He et al. 2023).

package text

import (
	"context"

	"grove/method"
	"grove/method/datastore"
)

func init() {
	method.Register(method.Info{
		Name: "rest", Paper: "REST: retrieval-based speculative decoding, 2023", Kind: method.KindText, Grade: method.Exact,
		Auto: true, Lasting: true, Replays: true, Needs: "a datastore",
		CheckNeeds: func(e method.Env) error {
			if e.Datastore == nil {
				return method.ErrNeeds
			}
			return nil
		},
		Open: func(e method.Env) (method.Method, error) { return rest{e.Datastore}, nil },
	})
}

const (
	restShortest = 2  // tokens of the text's end that must occur
	restLongest  = 16 // tokens of it that are compared
	deepest      = 10 // tokens of a path
	restMost     = 64 // drafts of a round
)

// rest is a datastore, which all texts share: nothing is learned across texts but how often drafts are accepted.
type rest struct{ store *datastore.Store }

// NewDrafter implements [method.Method].
func (r rest) NewDrafter(method.Trunk) (method.Drafter, error) {
	d := &restDrafter{store: r.store}
	d.read = d.search
	return d, nil
}

type restDrafter struct {
	store   *datastore.Store
	history *method.History
	tree    *method.Tree // of the round
	read    func() error // search, made once
	next    []datastore.Range
	open    []place
}

// place is where drafts may be added: behind a node of the tree.
type place struct {
	at    int
	depth int
	run   datastore.Range
}

// Begin implements [method.Drafter].
func (d *restDrafter) Begin(h *method.History) error { d.history = h; return nil }

// Committed implements [method.Drafter].
func (d *restDrafter) Committed(method.Update) {}

// Draft implements [method.Drafter]. The file may become shorter while it is read, which is an error.
func (d *restDrafter) Draft(_ context.Context, t *method.Tree) error {
	d.tree = t
	return d.store.Read(d.read)
}

// search takes the draft with the best score again and again, and adds what follows it.
func (d *restDrafter) search() error {
	run := d.store.Longest(d.history.IDs(), restShortest, restLongest)
	if run.Count() == 0 {
		return nil
	}
	d.open = append(d.open[:0], place{method.Root, 0, run})
	for added := 0; len(d.open) > 0 && added < restMost; {
		best := 0
		for i, o := range d.open {
			if d.tree.Score(o.at) > d.tree.Score(d.open[best].at) {
				best = i
			}
		}
		o := d.open[best]
		d.open[best] = d.open[len(d.open)-1]
		d.open = d.open[:len(d.open)-1]
		d.next = d.store.Next(d.next[:0], o.run)
		for _, next := range d.next {
			share := float32(next.Count()) / float32(o.run.Count())
			class, belief := restClassOf(int(o.run.Length), share)
			at := d.tree.Add(o.at, next.ID, class, belief)
			if at == method.Root {
				continue
			}
			if added++; added == restMost {
				break
			}
			if o.depth+1 < deepest {
				d.open = append(d.open, place{at, o.depth + 1, next})
			}
		}
	}
	return nil
}

// restClassOf sorts drafts by the tokens that match if those before are accepted, and by how often they follow.
func restClassOf(match int, share float32) (class int, belief float32) {
	long := min(max(match, restShortest)-restShortest, len(restBeliefs)-1)
	class = long
	for _, limit := range []float32{0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 0.95} {
		if share > limit {
			class += len(restBeliefs)
		}
	}
	return class, share * restBeliefs[long]
}

// restBeliefs are how often what always followed 2, 3, 4, ... tokens follows again, before anything is known.
var restBeliefs = [8]float32{0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85}
