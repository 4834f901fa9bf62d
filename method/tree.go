package method

import (
	"unsafe"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/internal/verify"
)

// Root is the end of the text, as a parent.
const Root = verify.Root

// Classes is the number of classes that a drafter may sort its drafts into.
const Classes = 64

// MaxSamples bounds the draws behind one node of which [Tree.AddSample] keeps count.
const MaxSamples = 64

// Node is a draft token.
type Node struct {
	ID      token.ID
	Parent  int32   // its place in the tree; Root
	Depth   int32   // 1: right behind the text
	Score   float32 // estimated probability that the path down to it is accepted; no larger than the parent's
	Samples uint64  // the draws behind its parent that gave it, bit k for the k-th; 0: it was not drawn
	Live    Live    // the row that a drafter has run of it
	first   int32   // of its children
	next    int32   // sibling
	origins [maxOrigins]origin
	n       int8 // origins
}

// Live is a row on the text's own trunk that a drafter ran on the first layers and left alive: the verifying step
// takes it further. The zero value is none.
type Live struct {
	Node   forest.Node
	Parent forest.Node // behind which it was run: the row of the draft's parent, or [forest.Trunk] for the text's last token
	Layer  int         // that it has reached
}

// Steps predicts how long parts of steps take on this machine.
type Steps interface {
	// LayerSeconds returns the seconds of a number of the model's layers for so many rows.
	LayerSeconds(rows, layers int) float64
	// HeadSeconds returns the seconds of the head for so many rows that want logits.
	HeadSeconds(rows int) float64
}

const (
	none       = -1
	maxOrigins = 4
)

// origin says which drafter made a draft, and what it thought of it.
type origin struct {
	source uint8
	class  uint8
	chance float32 // of being accepted behind its parent, by the rate of its class alone
}

// Legal says which tokens may follow a node of a tree.
type Legal interface {
	// Allows reports whether a token may follow a node, or [Root].
	Allows(node int, id token.ID) bool
}

// Tree collects the drafts of a round. Drafters add to it in turn; equal drafts become one node. The
// score of a draft is its parent's times the share of drafts of its class that were accepted so far.
type Tree struct {
	// Throughput is the tokens a second that are made now: what a drafter's time is worth.
	Throughput float64
	// Floor is the least score that can pay: Add refuses what is below.
	Floor float32
	// Steps predicts the time of passes and of the verifying step; nil: nothing is known.
	Steps Steps
	// Legal, if it is not nil, says what may be added.
	Legal Legal
	// MaxDrafts is how many drafts there may be where they are draws, of which all are run; 0: as many as there is room for.
	MaxDrafts int

	nodes      []Node
	extras     []Extra
	root       Live
	first      int32 // child of the root
	vocabulary int
	depth      int32 // most
	source     uint8 // of the drafter whose turn it is
	rates      *Rates
	whole      bool
	drawn      []verify.Distribution // what the children of the root, and of each node, were drawn from; empty: they were not
}

// NewTree makes a tree for at most max nodes of a vocabulary.
func NewTree(max, vocabulary int) *Tree {
	return &Tree{nodes: make([]Node, 0, max), first: none, vocabulary: vocabulary}
}

// Reset empties the tree for a round in which paths may be depth long, scored by rates.
func (t *Tree) Reset(depth int, rates *Rates) {
	t.nodes, t.first, t.depth, t.rates, t.root = t.nodes[:0], none, int32(depth), rates, Live{}
	t.drawn, t.whole, t.extras = t.drawn[:0], false, t.extras[:0]
	rates.round()
}

// SetDrafter says which drafter adds next.
func (t *Tree) SetDrafter(source int) { t.source = uint8(source) }

// Nodes returns the drafts, parents first. The caller does not change them.
func (t *Tree) Nodes() []Node { return t.nodes }

// Len returns the number of drafts.
func (t *Tree) Len() int { return len(t.nodes) }

// Room returns how many further drafts fit.
func (t *Tree) Room() int {
	if t.Sampled() {
		return t.MaxDraws() - len(t.nodes)
	}
	return cap(t.nodes) - len(t.nodes)
}

// MaxDraws returns how many drafts fit into an empty tree of draws.
func (t *Tree) MaxDraws() int {
	if t.MaxDrafts == 0 {
		return cap(t.nodes)
	}
	return min(t.MaxDrafts, cap(t.nodes))
}

// TreeBytes returns the room of a tree for so many drafts, and for the distributions of so many draws.
func TreeBytes(drafts, draws int) int {
	return drafts*int(unsafe.Sizeof(Node{})) + draws*int(unsafe.Sizeof(verify.Distribution{}))
}

// Bytes returns the room that the tree has made.
func (t *Tree) Bytes() int { return TreeBytes(cap(t.nodes), cap(t.drawn)) }

// Depth returns how long paths may be in this round.
func (t *Tree) Depth() int { return int(t.depth) }

// DepthOf returns the depth of a node, 0 for the root.
func (t *Tree) DepthOf(node int) int {
	if node == Root {
		return 0
	}
	return int(t.nodes[node].Depth)
}

// Score returns the score of a node, 1 for the root.
func (t *Tree) Score(node int) float32 {
	if node == Root {
		return 1
	}
	return t.nodes[node].Score
}

// Estimate returns the probability that a draft of a class is accepted where its parent is, as [Tree.Add] would
// take it.
func (t *Tree) Estimate(class int, belief float32) float32 {
	o := origin{source: t.source, class: uint8(class) << 1}
	return t.rates.at(&o, belief)
}

// Add puts a draft behind a node (or [Root]) and returns its place. A class sorts the drafts of a drafter
// by how often they are accepted, of which belief is what the drafter expects before anything is known. It returns
// [Root], and adds nothing, where the tree is full or deep enough, the id is none of the vocabulary, the token may not
// follow the node, or the draft cannot pay.
func (t *Tree) Add(parent int, id token.ID, class int, belief float32) int {
	return t.add(parent, id, class, belief, false)
}

// AddSample is Add for the k-th draw, below [MaxSamples], behind a node, from the distribution that [Tree.SetDistribution] was
// told. Equal draws become one node, which knows which draws it stands for. Whatever it is, a draw is added while
// there is room: leaving it out would change the distribution of the text.
func (t *Tree) AddSample(parent int, id token.ID, k, class int, belief float32) int {
	at := t.add(parent, id, class, belief, true)
	if at != Root {
		t.nodes[at].Samples |= 1 << k
	}
	return at
}

func (t *Tree) add(parent int, id token.ID, class int, belief float32, drawn bool) int {
	if id < 0 || int(id) >= t.vocabulary || class < 0 || class >= Classes {
		return Root
	}
	at, depth := t.children(parent), int32(t.DepthOf(parent)+1)
	if depth > t.depth {
		return Root
	}
	o := origin{source: t.source, class: uint8(class) << 1}
	for ; *at != none; at = &t.nodes[*at].next {
		n := &t.nodes[*at]
		if n.ID == id {
			t.agree(n, o, belief)
			return int(*at)
		}
		if n.origins[0].source != t.source {
			o.class |= 1 // another drafter thinks otherwise
		}
	}
	score := min(1, t.rates.at(&o, belief)) * t.Score(parent)
	drawn = drawn || len(t.drawn) > 0
	if t.Room() < 1 || !drawn && (score < t.Floor && !t.whole || t.Legal != nil && !t.Legal.Allows(parent, id)) {
		return Root
	}
	*at = int32(len(t.nodes)) // the slice has room: at stays valid
	t.nodes = append(t.nodes, Node{
		ID: id, Parent: int32(parent), Depth: depth, Score: score, first: none, next: none, origins: [maxOrigins]origin{o}, n: 1,
	})
	return len(t.nodes) - 1
}

// children returns where the first child of a node, or of [Root], is named.
func (t *Tree) children(node int) *int32 {
	if node == Root {
		return &t.first
	}
	return &t.nodes[node].first
}

// agree notes that another drafter drafts the same.
func (t *Tree) agree(n *Node, o origin, belief float32) {
	for _, has := range n.origins[:n.n] {
		if has.source == o.source {
			return
		}
	}
	n.Score = max(n.Score, min(1, t.rates.at(&o, belief))*t.Score(int(n.Parent)))
	if int(n.n) < maxOrigins {
		n.origins[n.n] = o
		n.n++
	}
}

// Child returns the child of a node (or of [Root]) with an id, and false where there is none.
func (t *Tree) Child(parent int, id token.ID) (int, bool) {
	for at := *t.children(parent); at != none; at = t.nodes[at].next {
		if t.nodes[at].ID == id {
			return int(at), true
		}
	}
	return Root, false
}

// Children appends the places of the children of a node (or of [Root]), in the order in which they were added.
func (t *Tree) Children(dst []int, node int) []int {
	for at := *t.children(node); at != none; at = t.nodes[at].next {
		dst = append(dst, int(at))
	}
	return dst
}

// SetDistribution says that the children of a node (or of [Root]) are drawn from a distribution, in the order in which they are added.
// It is called before they are added, for a node when the node has been added; the distribution is kept until the next
// Reset. All drafts of such a tree are run, and judged by the rule of the method.
func (t *Tree) SetDistribution(node int, d verify.Distribution) {
	if t.drawn == nil {
		t.drawn = make([]verify.Distribution, 0, t.MaxDraws()+1)
	}
	for len(t.drawn) < node+2 {
		t.drawn = append(t.drawn, verify.Distribution{})
	}
	t.drawn[node+1] = d
}

// Samples returns which of the draws behind its parent a node stands for, a bit each: as [Tree.AddSample] counted
// them, or else its place among its siblings where these were drawn; 0 where they were not.
func (t *Tree) Samples(node int) uint64 {
	n := &t.nodes[node]
	if n.Samples != 0 || len(t.DraftDistribution(int(n.Parent)).IDs) == 0 {
		return n.Samples
	}
	k := 0
	for at := *t.children(int(n.Parent)); int(at) != node; at = t.nodes[at].next {
		k++
	}
	return 1 << k
}

// RunAll says that all drafts of the round are to be run, whether they pay or not: what their rows give is worth more than their tokens.
// It is called before they are added, by methods that say so ([Info.RunsRows]): the planner asks these where all their rows pay.
func (t *Tree) RunAll() { t.whole = true }

// RunsAll reports whether all drafts are to be run: they are draws, or [Tree.RunAll] says so.
func (t *Tree) RunsAll() bool { return t.whole || len(t.drawn) > 0 }

// Sampled reports whether the drafts are draws.
func (t *Tree) Sampled() bool { return len(t.drawn) > 0 }

// DraftDistribution returns what the children of a node (or of [Root]) were drawn from; empty where they are no draws.
func (t *Tree) DraftDistribution(node int) verify.Distribution {
	if node+1 >= len(t.drawn) {
		return verify.Distribution{}
	}
	return t.drawn[node+1]
}

// Resume says that a drafter has run the row of a node (or, for [Root], of the text's last token) on the text's own
// trunk up to a layer and has left it alive: the verifying step takes it further instead of running it anew, where it does so with the
// row's parent too. Of two drafters that say so of a node the first one counts.
func (t *Tree) Resume(node int, live Live) {
	at := &t.root
	if node != Root {
		at = &t.nodes[node].Live
	}
	if *at == (Live{}) || at.Node == live.Node {
		*at = live
	}
}

// DropLive tells that the rows that drafters have run are gone: the verifying step runs all rows anew.
func (t *Tree) DropLive() {
	t.root = Live{}
	for i := range t.nodes {
		t.nodes[i].Live = Live{}
	}
}

// RootLive returns the row that a drafter has run of the text's last token.
func (t *Tree) RootLive() Live { return t.root }

// Drafter returns the drafter that added a node, by its turn; others may have agreed.
func (t *Tree) Drafter(node int) int { return int(t.nodes[node].origins[0].source) }

// Learn tells which token followed a node (or [Root]): the drafts behind it were accepted or not.
func (t *Tree) Learn(parent int, id token.ID) {
	for at := *t.children(parent); at != none; at = t.nodes[at].next {
		n := &t.nodes[at]
		for _, o := range n.origins[:n.n] {
			t.rates.learn(o, n.ID == id)
		}
	}
}
