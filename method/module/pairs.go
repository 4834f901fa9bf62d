package module

import (
	"context"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// Pairs is a [Growing] source of a module whose pass over a block of pairs, each a token and a feature, drafts as many tokens (Falcon, Gao et al. 2025). The last
// pairs of a text are the first block. A path of as many drafts is another one, with the states that the rows of the block before it gave for features: it
// hangs from that block. So every so many levels of a tree cost a pass, and those between them none. It is for one goroutine.
//
// The trunk has the text's pairs but for the last block, which runs anew in each round, in the pass that adds to the trunk.
type Pairs struct {
	trunk
	size, reach int       // pairs of a block, and those that a row carries
	before      []float32 // features of the pairs before those that wait, which rows of these carry, the oldest first
	window      []float32 // these, and the features of a pass
	vectors     []float32 // the room of rows' vectors
	mixes       []forest.Weighted

	ends    []forest.Node // of blocks: their last rows
	ids     []token.ID    // of blocks' rows, and what they read and gave
	inputs  []float32
	states  []float32
	logits  []float32
	path    []token.ID  // of the block before a new one and of its own rows
	pairs   []float32   // the features of these
	answers []int       // of the last pass: the rows whose logits are behind its drafts
	rowOf   grow.Places // the row whose logits are behind a draft
}

// maxBlocks bounds the blocks of a tree, whose logits are kept.
const maxBlocks = 16

// NewPairs returns a source of a module with blocks of pairs, for a target's vocabulary.
func NewPairs(m *method.Module, vocabulary int) *Pairs {
	return &Pairs{trunk: newTrunk(m, vocabulary), size: m.Block.Size, reach: m.Block.Pairs}
}

// Root implements [grow.LogitSource]: it runs the pairs of the text that are new, and its last block. There is none to draft from where fewer pairs than a block's
// are known, or not the last ones, where a step holds fewer rows than a block, and while no slot is free.
func (p *Pairs) Root(ctx context.Context) (bool, error) {
	if p.size > min(p.Size.Rows, p.Size.MostLive()) {
		return false, nil
	}
	if ok, err := p.ready(p.size, 0); !ok {
		return false, err
	}
	p.ends, p.ids, p.inputs, p.states, p.logits = p.ends[:0], p.ids[:0], p.inputs[:0], p.states[:0], p.logits[:0]
	for done := false; !done; {
		var err error
		if done, err = p.follow(ctx); err != nil {
			return false, err
		}
	}
	p.trim()
	if cap(p.vectors) > method.MaxLive*p.reach*p.width { // a prompt's
		p.vectors, p.window = nil, nil
	}
	p.answers = append(p.answers[:0], 0)
	return true, nil
}

// follow makes pairs that wait the trunk's, as many as a pass takes, and runs the last block in the same pass where it has room; it returns whether it did.
func (p *Pairs) follow(ctx context.Context) (done bool, err error) {
	if p.known == 0 {
		p.before = p.before[:0]
	}
	n, back := min(p.waiting()-p.size, p.Size.Rows), len(p.before)/p.width
	rows := n
	if done = n+p.size == p.waiting() && n+p.size <= p.Size.Rows; done {
		rows += p.size
	}
	ids := p.text.IDs()[p.first+p.known+1-back:]
	p.window = append(append(p.window[:0], p.before...), p.features[:rows*p.width]...)
	p.begin()
	for i := range rows {
		block := 0
		if i >= n {
			block = 1
		}
		p.add(ids, p.window, back+i, block, forest.Trunk, i)
	}
	if err := p.extend(ctx, n); err != nil {
		return false, err
	}
	if done {
		p.ids, p.inputs = append(p.ids, ids[back+n:][:p.size]...), append(p.inputs, p.features[n*p.width:][:p.size*p.width]...)
		p.record(n)
	}
	keeps := min(back+n, p.reach-1)
	p.before = append(p.before[:0], p.window[(back+n-keeps)*p.width:(back+n)*p.width]...)
	p.passed(n)
	return done, nil
}

// begin begins a pass.
func (p *Pairs) begin() { p.rows, p.vectors, p.mixes = p.rows[:0], p.vectors[:0], p.mixes[:0] }

// add adds a row of the i-th of some pairs, which carries those before it, to a block of the pass; 0: none. It is behind a node, or behind a row of the pass, counted from 1.
func (p *Pairs) add(ids []token.ID, features []float32, i, block int, parent forest.Node, after int) {
	vector, mix := len(p.vectors), len(p.mixes)
	for back := range min(p.reach, i+1) {
		p.vectors = append(p.vectors, features[(i-back)*p.width:][:p.width]...)
		if back > 0 {
			p.mixes = append(p.mixes, forest.Weighted{ID: ids[i-back]})
		}
	}
	row := forest.Row{ID: ids[i], Vector: p.vectors[vector:], Mix: p.mixes[mix:], Parent: parent, Block: block}
	row.Want = forest.Want{Logits: block > 0, State: block > 0}
	p.rows = append(p.rows, method.Row{Row: row, After: after})
}

// record keeps what the rows of a block gave, from one of the pass on.
func (p *Pairs) record(from int) {
	for i := range p.size {
		r := p.Result(from + i)
		p.states, p.logits = append(p.states, r.State...), append(p.logits, r.Logits[:p.keep]...)
	}
	p.ends = append(p.ends, p.Result(from+p.size-1).Node)
}

// Expand implements [grow.LogitSource]: drafts that end a block run the next one, the logits behind the others are there.
func (p *Pairs) Expand(ctx context.Context, t *method.Tree, drafts []int) error {
	p.begin()
	p.answers = p.answers[:0]
	for _, at := range drafts {
		n, row := &t.Nodes()[at], 0
		if n.Parent != method.Root {
			row = p.rowOf[n.Parent]
		}
		if row++; row%p.size == 0 {
			row = p.next(t, at, row/p.size-1)
		}
		p.rowOf.Set(at, row)
		p.answers = append(p.answers, row)
	}
	if len(p.rows) == 0 {
		return nil
	}
	if err := p.Grow(ctx, p.rows); err != nil {
		return err
	}
	for from := 0; from < len(p.rows); from += p.size {
		p.record(from)
	}
	return nil
}

// next adds the block of the drafts that end with one, behind a block, and returns its first row.
func (p *Pairs) next(t *method.Tree, at, block int) (row int) {
	row, n := len(p.ids), p.size*p.width
	first := block * p.size
	p.path = append(append(p.path[:0], p.ids[first:][:p.size]...), p.ids[first:][:p.size]...)
	for i := 2*p.size - 1; i >= p.size; i-- {
		node := &t.Nodes()[at]
		p.path[i], at = node.ID, int(node.Parent)
	}
	p.pairs = append(append(p.pairs[:0], p.inputs[block*n:][:n]...), p.states[block*n:][:n]...)
	p.ids, p.inputs = append(p.ids, p.path[p.size:]...), append(p.inputs, p.pairs[n:]...)
	for i := range p.size {
		parent, after := p.ends[block], 0
		if i > 0 {
			parent, after = forest.Trunk, len(p.rows)
		}
		p.add(p.path, p.pairs, p.size+i, 1+row/p.size, parent, after)
	}
	return row
}

// Logits implements [grow.LogitSource].
func (p *Pairs) Logits(i int) []float32 {
	return p.logits[p.answers[i]*p.keep:][:p.keep]
}

// State implements [grow.LogitSource].
func (p *Pairs) State(i int) []float32 { return p.states[p.answers[i]*p.width:][:p.width] }

// Room implements [grow.LogitSource].
func (p *Pairs) Room() (drafts, depth int) {
	rows := min(p.Size.Rows, p.Size.MostLive()-len(p.ids))
	return min(rows/p.size, maxBlocks-len(p.ends)), p.Size.Context - p.known - p.size
}

// Memory returns what the source takes for passes of so many blocks: in the model, of the features that wait, and of the blocks of a tree.
func (p *Pairs) Memory(blocks int) method.Memory {
	r := grow.PassMemory(p.Size, blocks*p.size, true)
	r.Logits += 4 * (p.width*method.MaxLive*(2+p.reach) + maxBlocks*p.size*(2*p.width+p.keep))
	return r
}

// Held returns the room that the source has made.
func (p *Pairs) Held() method.Memory {
	r := p.trunk.Held()
	for _, room := range [][]float32{p.before, p.window, p.vectors, p.inputs, p.states, p.logits, p.pairs} {
		r.Logits += 4 * cap(room)
	}
	return r
}
