package method

import (
	"grove/text/token"
	"grove/verify"
)

// Root is the end of the text, as a parent.
const Root = -1

// Classes is the number of classes that a drafter may sort its guesses into.
const Classes = 64

// Node is a guess.
type Node struct {
	ID      token.ID
	Parent  int32   // its place in the tree; Root
	Depth   int32   // 1: right behind the text
	Score   float32 // estimated probability that the path down to it is accepted; no larger than the parent's
	first   int32   // of its children
	next    int32   // sibling
	origins [maxOrigins]origin
	n       int8 // origins
}

const (
	none       = -1
	maxOrigins = 4
)

// origin says which drafter made a guess, and what it thought of it.
type origin struct {
	source uint8
	class  uint8
}

// Tree collects the guesses of a round. Drafters add to it in turn; equal guesses become one node. The
// score of a guess is its parent's times the share of guesses of its class that were right so far.
type Tree struct {
	// Pace is the tokens a second that are made now: what a drafter's time is worth.
	Throughput float64
	// Floor is the least score that can pay: Add refuses what is below.
	Floor      float32
	nodes      []Node
	first      int32 // child of the root
	vocabulary int
	depth      int32 // most
	source     uint8 // of the drafter whose turn it is
	rates      *Rates
	laws       []verify.Distribution // what the children of the root, and of each node, were drawn from; nil: were not
}

// NewTree makes a tree for at most max nodes of a vocabulary.
func NewTree(max, vocabulary int) *Tree {
	return &Tree{nodes: make([]Node, 0, max), first: none, vocabulary: vocabulary}
}

// Reset empties the tree for a round in which paths may be depth long, scored by rates.
func (t *Tree) Reset(depth int, rates *Rates) {
	t.nodes, t.first, t.depth, t.rates = t.nodes[:0], none, int32(depth), rates
	t.laws = t.laws[:0]
}

// Turn says which drafter adds next.
func (t *Tree) Turn(source int) { t.source = uint8(source) }

// Nodes returns the guesses, parents first. The caller does not change them.
func (t *Tree) Nodes() []Node { return t.nodes }

// Len returns the number of guesses.
func (t *Tree) Len() int { return len(t.nodes) }

// Depth returns how long paths may be in this round.
func (t *Tree) Depth() int { return int(t.depth) }

// Score returns the score of a node, 1 for the root.
func (t *Tree) Score(node int) float32 {
	if node == Root {
		return 1
	}
	return t.nodes[node].Score
}

// Estimate returns the probability that a guess of a class is right where its parent is, as [Tree.Add] would
// take it.
func (t *Tree) Estimate(class int, guess float32) float32 {
	return t.rates.at(origin{t.source, uint8(class) << 1}, guess)
}

// Add puts a guess behind a node (or [Root]) and returns its place. A class sorts the guesses of a drafter
// by how often they come true, of which guess is what the drafter believes before anything is known. It returns
// [Root], and adds nothing, where the tree is full or deep enough, the id is none of the vocabulary, or the guess
// cannot pay.
func (t *Tree) Add(parent int, id token.ID, class int, guess float32) int {
	if id < 0 || int(id) >= t.vocabulary || class < 0 || class >= Classes {
		return Root
	}
	at, depth := &t.first, int32(1)
	if parent != Root {
		at, depth = &t.nodes[parent].first, t.nodes[parent].Depth+1
	}
	if depth > t.depth {
		return Root
	}
	o := origin{t.source, uint8(class) << 1}
	for ; *at != none; at = &t.nodes[*at].next {
		n := &t.nodes[*at]
		if n.ID == id {
			t.agree(n, o, guess)
			return int(*at)
		}
		if n.origins[0].source != t.source {
			o.class |= 1 // another drafter thinks otherwise
		}
	}
	score := min(1, t.rates.at(o, guess)) * t.Score(parent)
	if len(t.nodes) == cap(t.nodes) || score < t.Floor && len(t.laws) == 0 {
		return Root // what was drawn stays, whatever it is: leaving it out would change the law of the text
	}
	*at = int32(len(t.nodes)) // the slice has room: at stays valid
	t.nodes = append(t.nodes, Node{
		ID: id, Parent: int32(parent), Depth: depth, Score: score, first: none, next: none, origins: [maxOrigins]origin{o}, n: 1,
	})
	return len(t.nodes) - 1
}

// agree notes that another drafter guesses the same.
func (t *Tree) agree(n *Node, o origin, guess float32) {
	for _, has := range n.origins[:n.n] {
		if has.source == o.source {
			return
		}
	}
	if int(n.n) < maxOrigins {
		n.origins[n.n] = o
		n.n++
	}
	n.Score = max(n.Score, min(1, t.rates.at(o, guess))*t.Score(int(n.Parent)))
}

// Child returns the child of a node (or of [Root]) with an id, and false where there is none.
func (t *Tree) Child(parent int, id token.ID) (int, bool) {
	at := t.first
	if parent != Root {
		at = t.nodes[parent].first
	}
	for ; at != none; at = t.nodes[at].next {
		if t.nodes[at].ID == id {
			return int(at), true
		}
	}
	return Root, false
}

// Draw says that the children of a node (or of [Root]) are drawn from a law, in the order in which they are added.
// It is called before they are added, for a node when the node has been added; the law is kept until the next
// Reset. All guesses of such a tree are run, and judged by the rule of the method.
func (t *Tree) Draw(node int, law verify.Distribution) {
	for len(t.laws) < node+2 {
		t.laws = append(t.laws, verify.Distribution{})
	}
	t.laws[node+1] = law
}

// Laws returns what the children of the root, then of each node, were drawn from; nil where guesses are no draws.
func (t *Tree) Laws() []verify.Distribution {
	if len(t.laws) == 0 {
		return nil
	}
	for len(t.laws) < len(t.nodes)+1 {
		t.laws = append(t.laws, verify.Distribution{})
	}
	return t.laws
}

// Children appends the tokens of the children of a node (or of [Root]), in the order in which they were added.
func (t *Tree) Children(dst []token.ID, node int) []token.ID {
	at := t.first
	if node != Root {
		at = t.nodes[node].first
	}
	for ; at != none; at = t.nodes[at].next {
		dst = append(dst, t.nodes[at].ID)
	}
	return dst
}

// Learn tells which token followed a node (or [Root]): the guesses behind it were right or wrong.
func (t *Tree) Learn(parent int, id token.ID) {
	at := t.first
	if parent != Root {
		at = t.nodes[parent].first
	}
	for ; at != none; at = t.nodes[at].next {
		n := &t.nodes[at]
		for _, o := range n.origins[:n.n] {
			t.rates.learn(o, n.ID == id)
		}
	}
}
