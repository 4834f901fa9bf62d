// walk.go orders the rows of a step so that recurrences are advanced along the trees that they form: from a stored state
// through the records of earlier rows to the step's own, depth first. Every row's state is advanced by the same rows in the
// same order as alone (N8); the order of branches changes nothing but how many states are kept on the way.

package compute

import (
	"grove/internal/forest"
	"grove/internal/kv"
)

// WalkKind says what an [WalkOp] does to the working states of a part. There is one for each level: the states that wait while a
// branch is walked.
type WalkKind uint8

// The kinds of operations.
const (
	WalkRows    WalkKind = iota // advances level Level by the active rows from First on, N of them, whose outputs are wanted
	WalkRecords                 // advances level Level by the records from First on, N of them
	WalkBranch                  // copies the state of level Level to level Level+1
	WalkStore                   // writes the state of level 0 at the stored state First
)

// WalkOp is one step of a walk.
type WalkOp struct {
	Kind  WalkKind
	Level int32
	First int32
	N     int32
}

// WalkTree is the rows of a step that go on from one stored state.
type WalkTree struct {
	From int32 // the stored state, [kv.NoState] is zeros
	In   int32 // the stored state that the last state of level 0 becomes; NoState: it is not wanted
	Ops  []WalkOp
	Rows int // that are advanced, records among them

	first, end int // of Ops in the plan's
}

// WalkPlan is the walk over the rows of a step. The zero value is ready; its room is used again.
type WalkPlan struct {
	Trees  []WalkTree
	Levels int // of the deepest tree

	cache *kv.Cache
	nodes []node
	slots []place // by slot
	roots []place // by sequence, twice: the trunk and the row ahead of it
	stamp uint32
	ops   []WalkOp
	kids  []int32
	stack []branch
}

// node is a row of the step, an ancestor of one, or a root.
type node struct {
	up, child, next int32    // in nodes
	size            int32    // of its subtree
	kind            WalkKind // Rows or Records; Branch: it did not run the layer, Store: it is a root
	at              int32    // its place among the active rows, or its record; of a root the sequence
	ahead           bool     // of a root: it is not the trunk
	slot            int32
}

// place is a node's place in nodes, of the plan with the stamp.
type place struct {
	stamp uint32
	at    int32
}

// branch is a subtree that is still to be walked.
type branch struct {
	node, level int32
	copied      bool // from the level below
}

const walkNone = -1

// Make plans the walk over the active rows of a step in a layer; active are the rows that run it.
func (p *WalkPlan) Make(cache *kv.Cache, step *forest.Step, active []int32, layer int) {
	p.cache = cache
	p.stamp++
	p.nodes, p.ops, p.Trees, p.Levels = p.nodes[:0], p.ops[:0], p.Trees[:0], 1
	if len(p.slots) == 0 {
		p.slots = make([]place, cache.Forest.Slots())
	}
	rows := step.Rows()
	for a, i := range active {
		r := &rows[i]
		n := p.node(r.Seq, r.Slot, layer)
		p.nodes[n].kind, p.nodes[n].at = WalkRows, int32(a)
	}
	for i := len(p.nodes) - 1; i >= 0; i-- { // parents come before their children
		n := &p.nodes[i]
		if n.up == walkNone {
			continue
		}
		up := &p.nodes[n.up]
		up.size += n.size
		n.next, up.child = up.child, int32(i)
	}
	for i := range p.nodes {
		if p.nodes[i].up == walkNone {
			p.tree(int32(i))
		}
	}
	for i := range p.Trees { // the list of all operations has stopped moving
		t := &p.Trees[i]
		t.Ops = p.ops[t.first:t.end:t.end]
	}
}

// node returns the place of the live node in a slot among the nodes, where it and its ancestors are put first if they are not
// there.
func (p *WalkPlan) node(seq forest.Seq, slot int32, layer int) int32 {
	f, r := p.cache.Forest, p.cache.Recurrence(seq)
	above := p.kids[:0]
	var up int32
	for {
		if at := p.slots[slot]; at.stamp == p.stamp {
			up = at.at
			break
		}
		if r.Ahead != forest.Trunk && f.At(slot) == r.Ahead {
			up = p.root(seq, true)
			break
		}
		above = append(above, slot)
		if slot = f.Up(slot); slot == forest.NoSlot {
			up = p.root(seq, false)
			break
		}
	}
	for i := len(above) - 1; i >= 0; i-- {
		n := node{up: up, child: walkNone, next: walkNone, size: 1, kind: WalkBranch, slot: above[i]}
		if f.Ran(above[i], layer) {
			n.kind = WalkRecords
			n.at, _ = p.cache.RecordOf(above[i])
		}
		up = p.add(n)
		p.slots[above[i]] = place{p.stamp, up}
	}
	p.kids = above[:0]
	return up
}

func (p *WalkPlan) add(n node) int32 {
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

// root returns the place of a stored state of a sequence.
func (p *WalkPlan) root(seq forest.Seq, ahead bool) int32 {
	i := 2 * int(seq)
	if ahead {
		i++
	}
	for i >= len(p.roots) {
		p.roots = append(p.roots, place{})
	}
	if p.roots[i].stamp != p.stamp {
		p.roots[i] = place{p.stamp, p.add(node{up: walkNone, child: walkNone, next: walkNone, kind: WalkStore, at: int32(seq), ahead: ahead})}
	}
	return p.roots[i].at
}

// tree adds the tree of a root.
func (p *WalkPlan) tree(root int32) {
	r := p.cache.Recurrence(forest.Seq(p.nodes[root].at))
	t := WalkTree{From: r.Base, In: kv.NoState, first: len(p.ops)}
	p.Trees = append(p.Trees, t)
	if !p.nodes[root].ahead {
		p.tail(r)
	} else {
		p.Trees[len(p.Trees)-1].From = r.AheadState
	}
	if r.Next.Ahead != kv.NoState && p.nodes[root].ahead == r.Next.Behind {
		p.Trees[len(p.Trees)-1].In = r.Next.Ahead // the tree is a path: its state ends where it is stored
	}
	p.stack = p.stack[:0]
	p.branches(root, 0)
	for len(p.stack) > 0 {
		b := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		if b.copied {
			p.ops = append(p.ops, WalkOp{Kind: WalkBranch, Level: b.level - 1})
			p.Levels = max(p.Levels, int(b.level)+1)
		}
		n := &p.nodes[b.node]
		if n.kind != WalkBranch {
			p.advance(n.kind, b.level, n.at)
		}
		if r.Next.Ahead != kv.NoState {
			index, _ := p.cache.Forest.Index(forest.Seq(p.nodes[root].at), p.cache.Forest.At(n.slot))
			p.snapshot(r, index+1)
		}
		p.branches(b.node, b.level)
	}
	p.Trees[len(p.Trees)-1].end = len(p.ops)
}

// tail adds the records of a trunk behind its base.
func (p *WalkPlan) tail(r *kv.Recurrence) {
	for i, record := range r.Tail {
		p.advance(WalkRecords, 0, record)
		p.snapshot(r, r.Index+i+1)
	}
	if r.Next.Base != kv.NoState {
		p.ops = append(p.ops, WalkOp{Kind: WalkStore, First: r.Next.Base})
	}
}

// snapshot stores the state behind the first n rows where the step takes it.
func (p *WalkPlan) snapshot(r *kv.Recurrence, n int) {
	for _, s := range r.Next.Snapshots {
		if s.Index == n {
			p.ops = append(p.ops, WalkOp{Kind: WalkStore, First: s.State})
		}
	}
}

// advance adds a row or a record, to the operation before it where that is the one before.
func (p *WalkPlan) advance(kind WalkKind, level, at int32) {
	t := &p.Trees[len(p.Trees)-1]
	t.Rows++
	if n := len(p.ops); n > t.first {
		if o := &p.ops[n-1]; o.Kind == kind && o.Level == level && o.First+o.N == at {
			o.N++
			return
		}
	}
	p.ops = append(p.ops, WalkOp{Kind: kind, Level: level, First: at, N: 1})
}

// branches puts the subtrees below a node on the stack, so that the smallest is walked first: each level of states that wait has
// at least as many rows above it as below, and there are few levels. The largest goes on with the state itself.
func (p *WalkPlan) branches(n, level int32) {
	kids := p.kids[:0]
	for c := p.nodes[n].child; c != walkNone; c = p.nodes[c].next {
		kids = append(kids, c)
		for i := len(kids) - 1; i > 0 && p.nodes[kids[i]].size < p.nodes[kids[i-1]].size; i-- {
			kids[i], kids[i-1] = kids[i-1], kids[i]
		}
	}
	for i := len(kids) - 1; i >= 0; i-- {
		last := i == len(kids)-1
		b := branch{node: kids[i], level: level, copied: !last}
		if b.copied {
			b.level++
		}
		p.stack = append(p.stack, b)
	}
	p.kids = kids[:0]
}
