// aded.go drafts by a search in the weights of the trigrams of earlier tokens (Adaptive Draft-Verification, Liu et al. 2024).
// A trigram gains weight at each step at which it is among the text's last 16 tokens.

package text

import (
	"context"
	"sync"

	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "aded", Paper: "ADED, 2024", Kind: method.KindText, Grade: method.Exact, Lasting: true, Replays: true,
		NotAuto: "suffix-tree gives more",
		Open:    func(method.Env) (method.Method, error) { return &aded{matrix: NewTrigram(adedMost)}, nil },
	})
}

const (
	window   = 16 // tokens whose trigrams a step adds to
	kept     = 24 // nodes of the search that become drafts, each with its heaviest successor: fewer than 64 drafts
	adedLost = method.Root - 1
	adedMost = 1 << 17 // trigrams of a salt: 5 MB
)

// aded is the trigrams of the texts of a salt, of prompts too.
type aded struct {
	mu     sync.Mutex
	matrix *TrigramMatrix
}

// NewDrafter implements [method.Method].
func (a *aded) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &adedDrafter{of: a, search: newSearch(a.matrix)}, nil
}

type adedDrafter struct {
	of      *aded
	search  *adedSearch
	history *method.History
}

// Begin implements [method.Drafter]. All trigrams of a prompt gain the weight of a step.
func (d *adedDrafter) Begin(h *method.History) error {
	d.history = h
	d.learn(len(h.IDs()))
	return nil
}

// Committed implements [method.Drafter].
func (d *adedDrafter) Committed(r method.Update) {
	if len(r.IDs) > 0 {
		d.learn(len(r.IDs))
	}
}

// learn adds to the trigrams that end in the last n tokens, and to those of the window.
func (d *adedDrafter) learn(n int) {
	ids := d.history.IDs()
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	for i := max(2, len(ids)-max(n, window-2)); i < len(ids); i++ {
		d.of.matrix.Add(TrigramPair(ids[i-2], ids[i-1]), ids[i])
	}
}

// Draft implements [method.Drafter]: the nodes that the search visited most often, then the heaviest successor of each.
func (d *adedDrafter) Draft(_ context.Context, t *method.Tree) error {
	if len(d.history.IDs()) < 2 {
		return nil
	}
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	s := d.search
	s.run(d.history.Last(1), d.history.Last(0))
	var best [kept]int32
	visited := best[:s.best(&best)]
	for _, at := range visited {
		n := &s.nodes[at]
		if n.parent == adedNone {
			n.place = method.Root
			continue
		}
		if n.place = s.nodes[n.parent].place; n.place == adedLost {
			continue
		}
		class, belief := adedClassOf(n.depth-1, n.units, n.share)
		if n.place = t.Add(n.place, n.id, class, belief); n.place == method.Root {
			n.place = adedLost
		}
	}
	for _, at := range visited {
		n := &s.nodes[at]
		next, share := s.matrix.Best(TrigramPair(s.pair(at)))
		if n.place == adedLost || next == nil {
			continue
		}
		class, belief := adedClassOf(n.depth, next.Units, share)
		t.Add(n.place, next.ID, class, belief)
	}
	return nil
}

// best fills best with the nodes that were visited most often, of equal ones those that were added first, and returns how many there
// are. Parents precede their children: they are visited whenever a child is.
func (s *adedSearch) best(best *[kept]int32) (n int) {
	for i := range s.nodes {
		at := n
		for at > 0 && s.nodes[best[at-1]].visits < s.nodes[i].visits {
			at--
		}
		if at == kept {
			continue
		}
		n = min(n+1, kept)
		copy(best[at+1:n], best[at:])
		best[at] = int32(i)
	}
	return n
}

// adedClassOf sorts drafts by depth, 1 to 4, by the weight of the trigram and by its share of all that followed the pair.
func adedClassOf(depth, units int32, share float32) (class int, belief float32) {
	heavy := 0
	for _, limit := range []int32{2, window - 2, 2 * window} {
		if units > limit {
			heavy++
		}
	}
	class = (int(depth)-1)*len(adedBeliefs) + heavy
	for _, limit := range []float32{0.3, 0.6, 0.9} {
		if share > limit {
			class += adedLongest * len(adedBeliefs)
		}
	}
	return class, share * adedBeliefs[heavy]
}

// adedBeliefs are how often a draft that is the only successor is accepted by its weight, before anything is known.
var adedBeliefs = [4]float32{0.3, 0.4, 0.5, 0.6}
