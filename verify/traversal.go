package verify

import (
	"fmt"
	"math/bits"
	"slices"
)

// Traversal tests the paths of a tree from their leaves to the root: it rejects a draft only after all that is behind it.
// Of a chain it does what [Block] does, with the same probabilities. Draws are without replacement; [TraversalIID] is for
// independent ones. Of a tree whose drafts are not draws it does what [Match] does.
//
// It keeps a distribution over the vocabulary for each depth of the tree, in float64.
var Traversal = register(Rule{
	Name: "traversal", Paper: "Traversal Verification for Speculative Tree Decoding (Weng et al.), algorithm 1, 2025",
	Grade: SameDistribution, Needs: Needs{Distributions: true},
	New: func() Acceptor { return &traversal{name: "traversal"} },
})

// TraversalIID is [Traversal] for the trees of [KSEQ], whose draws are independent.
var TraversalIID = register(Rule{
	Name: "traversal-iid", Paper: Traversal.Paper,
	Grade: SameDistribution, Needs: Needs{Distributions: true, Samples: true},
	New: func() Acceptor { return &traversal{name: "traversal-iid", independent: true} },
})

type traversal struct {
	name        string
	independent bool // draws are with replacement
	match       match
	levels      []*level
	tests       int   // numbers that were used
	path        []int // that is accepted, its end first; the end, where nothing is accepted, is the root
	fault       error // of the row of the path's end
}

// level is what a node on the path from the root to the tested one needs.
type level struct {
	children []int
	p, q     []float64
}

// Accept implements [Acceptor].
func (r *traversal) Accept(v View, out *Outcome) error {
	if len(v.Drafts(Root).IDs) == 0 {
		return r.match.Accept(v, out)
	}
	out.reset()
	r.tests, r.path, r.fault = 0, r.path[:0], nil
	if _, err := r.try(v, Root, 0, 1); err != nil {
		return err
	}
	node := Root
	for _, node = range slices.Backward(r.path) {
		if !out.step(v, node) {
			return nil
		}
	}
	if r.fault != nil {
		return r.fault
	}
	return out.finish(v, node, r.levels[len(r.path)].p)
}

// try accepts a path that goes through a node, with probability weight, and leaves at the level of its end the
// distribution of the token that follows. It reports false where it rejects the node and all that is behind it.
//
// That the text has the target's distribution follows by induction. Where p is the distribution that is due behind a node,
// a draw x from q is accepted with probability min(1, weight*p(x)/q(x)), and so gives min(q, weight*p) of the text. What
// is due otherwise is the positive part of weight*p - q. Its mass over the probability of a rejection is the weight from
// there on, and normalised it is p from there on.
func (r *traversal) try(v View, node, depth int, weight float64) (accepted bool, err error) {
	if weight <= 0 {
		return false, nil
	}
	l := r.level(depth)
	var fault error
	if node == Root || v.Ran(node) {
		var p []float64
		if p, fault = v.Probs(node); fault == nil {
			l.p = append(l.p[:0], p...)
			if accepted, weight, err = r.behind(v, node, depth, weight); accepted || err != nil {
				return accepted, err
			}
		}
	}
	if weight < 1 {
		r.tests++
		if v.Number(Root, UseTest+NodeUses*Use(r.tests-1)) >= weight {
			return false, nil
		}
	}
	r.fault = fault
	return true, nil
}

// behind tries the draws behind a node in their order. Where it rejects them all it returns the weight of the node alone,
// and has made the distribution at its level that of the token to draw instead.
func (r *traversal) behind(v View, node, depth int, weight float64) (accepted bool, rest float64, err error) {
	l, q := r.levels[depth], v.Drafts(node)
	if len(q.IDs) == 0 {
		return false, weight, nil
	}
	l.q = widen(l.q, q.P)
	l.children = v.Children(l.children[:0], node)
	draws, err := r.draws(v, node, l.children)
	if err != nil {
		return false, 0, err
	}
	for k := range draws {
		c := nth(v, l.children, k)
		at := slices.Index(q.IDs, v.Token(c))
		if at < 0 && r.independent {
			return false, 0, fmt.Errorf("verify: %s: draft %d: token %d has probability 0 in what it was drawn from", r.name, c, v.Token(c))
		}
		if at < 0 {
			return false, weight, nil // it is not the k-th draw from q
		}
		if accepted, err = r.try(v, c, depth+1, min(1, weight*l.p[v.Token(c)]/l.q[at])); accepted || err != nil {
			if accepted {
				r.path = append(r.path, c)
			}
			return accepted, 0, err
		}
		left := excess(l.p, q.IDs, l.q, weight)
		subtract(l.p, q.IDs, l.q, weight) // where nothing remains, only rounding rejected the draw: p is right
		if weight < 1 {
			weight = left / (left + 1 - weight)
		}
		if r.independent {
			continue
		}
		if l.q[at] = 0; !normalise(l.q) {
			break // all tokens of q were tried
		}
	}
	return false, weight, nil
}

// draws returns how many draws behind a node are tried: without replacement, those before the first one that is missing.
func (r *traversal) draws(v View, node int, children []int) (n int, err error) {
	if r.independent {
		return count(r.name, v, node, children)
	}
	for _, c := range children {
		samples := v.Samples(c)
		if bits.OnesCount64(samples) > 1 {
			return 0, fmt.Errorf("verify: %s: draft %d: it stands for %d draws; draw without replacement, or use %s-iid",
				r.name, c, bits.OnesCount64(samples), r.name)
		}
		if samples != 1<<n {
			break
		}
		n++
	}
	return n, nil
}

// level returns the scratch space of a depth.
func (r *traversal) level(depth int) *level {
	for len(r.levels) <= depth {
		r.levels = append(r.levels, new(level))
	}
	return r.levels[depth]
}
