package verify

import (
	"fmt"
	"math/bits"
	"slices"
)

// draws is how a rule takes the draws behind a node.
type draws struct {
	rule        string
	replacement bool   // they are with replacement
	other       string // the rule for draws with replacement, where they are without
}

// count returns how many draws the children of a node stand for: with replacement, each must stand for some that no other does;
// without, those before the first one that is missing count.
func (d *draws) count(v View, node int, children []int) (n int, err error) {
	all := uint64(0)
	for _, c := range children {
		samples := v.Samples(c)
		switch {
		case d.replacement && (samples == 0 || samples&all != 0):
			return 0, fmt.Errorf("verify: %s: draft %d: it stands for the draws %b; it must stand for 1 or more that no sibling has", d.rule, c, samples)
		case d.replacement:
			all |= samples
		case bits.OnesCount64(samples) > 1:
			return 0, fmt.Errorf("verify: %s: draft %d: it stands for %d draws; draw without replacement, or use %s", d.rule, c, bits.OnesCount64(samples), d.other)
		case samples == 0 || samples != 1<<n:
			return n, nil
		default:
			n++
		}
	}
	if all&(all+1) != 0 {
		return 0, fmt.Errorf("verify: %s: node %d: its drafts stand for the draws %b; none may be missing", d.rule, node, all)
	}
	return n + bits.Len64(all), nil
}

// place returns the place of a draft's token in what it was drawn from; -1: it was not drawn, and so neither were those behind it.
// Draws with replacement must have a place.
func (d *draws) place(v View, child int, q Distribution) (int, error) {
	at := slices.Index(q.IDs, v.Token(child))
	if at < 0 && d.replacement {
		return at, fmt.Errorf("verify: %s: draft %d: token %d has probability 0 in what it was drawn from", d.rule, child, v.Token(child))
	}
	return at, nil
}

// nth returns the draft of a node's children that stands for the k-th draw, which there is.
func nth(v View, children []int, k int) int {
	for _, c := range children {
		if v.Samples(c)>>k&1 == 1 {
			return c
		}
	}
	return Root
}

// descent goes down a tree of draws from the root. Of a tree whose drafts are not draws it does what [Match] does.
type descent struct {
	draws
	// test returns the draft behind a node that is accepted, or Root. p is the target's distribution there; where no draft is accepted
	// it becomes the distribution of the token to draw instead. There are n draws, 1 or more, from q.
	test func(d *descent, v View, node, n int, p []float64, q Distribution) (child int, err error)

	match    match
	children []int
	q        []float64 // probabilities of q
}

// Accept implements [Acceptor].
func (d *descent) Accept(v View, out *Outcome) error {
	if len(v.DraftDistribution(Root).IDs) == 0 {
		return d.match.Accept(v, out)
	}
	out.reset()
	for node := Root; ; {
		p, err := v.Probs(node)
		if err != nil {
			return err
		}
		child, q := Root, v.DraftDistribution(node)
		d.q, d.children = widen(d.q, q.P), v.Children(d.children[:0], node)
		if n := 0; len(q.IDs) > 0 {
			if n, err = d.count(v, node, d.children); n > 0 {
				child, err = d.test(d, v, node, n, p, q)
			}
		}
		if err != nil {
			return err
		}
		if child == Root {
			return out.finish(v, node, p)
		}
		if node = child; !out.step(v, node) {
			return nil
		}
	}
}

// residual tests draws one after the other. After each rejection it goes on with the residual of the target's distribution, which has
// no mass on the token that was rejected.
func (d *descent) residual(v View, node, n int, p []float64, q Distribution) (child int, err error) {
	for k := range n {
		c := nth(v, d.children, k)
		at, err := d.place(v, c, q)
		if at < 0 {
			return Root, err
		}
		id := v.Token(c)
		if v.Number(node, PurposeTest+NodePurposes*Purpose(k))*d.q[at] < p[id] {
			return c, nil
		}
		if !subtract(p, q.IDs, d.q, 1) && p[id] > 0 {
			return c, nil // p and q are equal but for rounding
		}
		if d.replacement {
			continue
		}
		if d.q[at] = 0; !normalise(d.q) {
			break // all tokens of q were tested
		}
	}
	return Root, nil
}
