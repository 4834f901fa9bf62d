package verify

import "slices"

// Traversal tests the paths of a tree from their leaves to the root: it rejects a draft only after all that is behind it.
// Of a chain it does what [Block] does, with the same probabilities. Draws are without replacement; [TraversalIID] is for
// independent ones. Of a tree whose drafts are not draws it does what [Match] does.
//
// It keeps a distribution over the vocabulary for each depth of the tree, in float64.
var Traversal = register(Rule{
	Name: "traversal", Paper: "Traversal Verification for Speculative Tree Decoding (Weng et al.), algorithm 1, 2025",
	Grade: SameDistribution, Needs: Properties{Distributions: true},
	New: func() Acceptor { return &traversal{draws: draws{rule: "traversal", other: "traversal-iid"}} },
})

// TraversalIID is [Traversal] for the trees of [KSEQ], whose draws are independent.
var TraversalIID = register(Rule{
	Name: "traversal-iid", Paper: Traversal.Paper,
	Grade: SameDistribution, Needs: Properties{Distributions: true, WithReplacement: true},
	New: func() Acceptor { return &traversal{draws: draws{rule: "traversal-iid", replacement: true}} },
})

type traversal struct {
	draws
	match  match
	levels []*level
	tests  int   // numbers that were used
	path   []int // that is accepted, its end first; the end, where nothing is accepted, is the root
	fault  error // of the row of the path's end
}

// level is what a node on the path from the root to the tested one needs.
type level struct {
	children []int
	p, q     []float64
}

// Accept implements [Acceptor].
func (r *traversal) Accept(v View, out *Outcome) error {
	if len(v.DraftDistribution(Root).IDs) == 0 {
		return r.match.Accept(v, out)
	}
	out.reset()
	r.tests, r.path, r.fault = 0, r.path[:0], nil
	if _, err := r.try(v, Root, 0, 1); err != nil {
		return err
	}
	slices.Reverse(r.path)
	return out.conclude(v, r.path, r.levels[len(r.path)].p, r.fault)
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
		if v.Number(Root, PurposeTest+NodePurposes*Purpose(r.tests-1)) >= weight {
			return false, nil
		}
	}
	r.fault = fault
	return true, nil
}

// behind tries the draws behind a node in their order. Where it rejects them all it returns the weight of the node alone,
// and has made the distribution at its level that of the token to draw instead.
func (r *traversal) behind(v View, node, depth int, weight float64) (accepted bool, rest float64, err error) {
	l, q := r.levels[depth], v.DraftDistribution(node)
	if len(q.IDs) == 0 {
		return false, weight, nil
	}
	l.q = widen(l.q, q.P)
	l.children = v.Children(l.children[:0], node)
	n, err := r.count(v, node, l.children)
	for k := range n {
		c := nth(v, l.children, k)
		at, err := r.place(v, c, q)
		if at < 0 {
			return false, weight, err
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
		if r.replacement {
			continue
		}
		if l.q[at] = 0; !normalise(l.q) {
			break // all tokens of q were tried
		}
	}
	return false, weight, err
}

// level returns the scratch space of a depth.
func (r *traversal) level(depth int) *level {
	for len(r.levels) <= depth {
		r.levels = append(r.levels, new(level))
	}
	return r.levels[depth]
}
