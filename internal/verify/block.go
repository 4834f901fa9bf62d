package verify

import "fmt"

// Block tests a chain of drafts as a whole. On average it accepts no fewer drafts than [Reject] does. Of a chain whose
// drafts are not draws it does what [Match] does.
var Block = register(Rule{
	Name: "block", Paper: "Block Verification Accelerates Speculative Decoding (Sun et al.), algorithm 2, 2024",
	Grade: SameDistribution, Needs: Properties{Distributions: true, Chain: true},
	New: func() Acceptor { return new(block) },
})

type block struct {
	match    match
	children []int
	path     []int     // the chain, as far as it was read
	p, q     []float64 // p: of the token that follows the longest prefix that passes its test
}

// Accept implements [Acceptor]. Each prefix of the chain has a test; the longest one that passes is accepted. The chain
// ends with a draft that was not run, or whose row gives no distribution: whether it ends there depends on no later
// draft, so that the text keeps its distribution.
func (b *block) Accept(v View, out *Outcome) error {
	if len(v.DraftDistribution(Root).IDs) == 0 {
		return b.match.Accept(v, out)
	}
	out.reset()
	b.path = b.path[:0]
	node, weight, best := Root, 1.0, 0
	var fault error // of the row behind the best prefix
	for n := 0; ; n++ {
		p, child, err := b.read(v, node)
		pass, q := weight, Distribution{}
		if child != Root {
			q = v.DraftDistribution(node)
			pass = chance(weight, p, q)
		}
		if n == 0 || v.Number(Root, PurposeTest+NodePurposes*Purpose(n-1)) < pass {
			best, fault = n, err
			b.p = append(b.p[:0], p...)
			if child != Root {
				b.q = widen(b.q, q.P)
				subtract(b.p, q.IDs, b.q, weight)
			}
		}
		if child == Root {
			break
		}
		id := v.Token(child)
		if weight = min(1, weight*p[id]/q.Of(id)); weight == 0 {
			break // no longer prefix can pass
		}
		node, b.path = child, append(b.path, child)
	}
	return out.conclude(v, b.path[:best], b.p, fault)
}

// read returns the distribution behind a node of the chain, and the draw there; Root: the chain ends.
func (b *block) read(v View, node int) (p []float64, child int, err error) {
	if node != Root && !v.Ran(node) {
		return nil, Root, nil
	}
	if p, err = v.Probs(node); err != nil {
		return nil, Root, err
	}
	b.children = v.Children(b.children[:0], node)
	switch n := len(b.children); n {
	case 0:
		return p, Root, nil
	case 1:
		child = b.children[0]
		if v.Samples(child) != 1 || v.DraftDistribution(node).Of(v.Token(child)) == 0 {
			child = Root // it was not drawn: the rule knows nothing of it
		}
		return p, child, nil
	default:
		return p, Root, fmt.Errorf("verify: block: node %d: it has %d drafts behind it; draft a chain, 1 behind each node", node, n)
	}
}

// chance returns the probability of accepting a prefix where no longer one passes its test. p is the target's
// distribution behind the prefix, q the distribution of the draft there.
func chance(weight float64, p []float64, q Distribution) float64 {
	rest := weight
	for i, id := range q.IDs {
		rest -= min(weight*p[id], float64(q.P[i]))
	}
	rest = max(0, rest)
	if rest+1-weight <= 0 {
		return 1
	}
	return rest / (rest + 1 - weight)
}
