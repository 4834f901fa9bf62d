package heads

import (
	"cmp"
	"context"
	"slices"
	"time"

	"grove/internal/compute"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// branches is how many children a slot has by the class of its rank; the chain ends where it has none.
var branches = [module.RankClasses]int{2, 4, 10, 0}

// drafter makes trees of blocks. It is a complete [method.Drafter].
type drafter struct {
	*module.Slots
	of      *specblock
	ranks   *module.Ranks
	text    *method.History
	sampler *sample.Chain
	greedy  bool
	err     error // of an update
	passes  grow.Passes

	nodes  []node
	best   []sample.Candidate
	leaves []int // places of nodes
	blocks []module.Slot

	chain []token.ID // the likeliest path of the round's first block
	rate  float64    // tokens of a second
}

// node is a draft that the tree may get.
type node struct {
	id     token.ID
	parent int // its place; [method.Root]
	depth  int
	rank   int
	p      float32 // by the module
	path   float32 // of the path down to it
	row    int     // of the slot that gave it, in Live
	open   bool    // no block and no slot drafts behind it
	place  int     // in the tree; [method.Root]: it is not there
}

func newDrafter(m *specblock) *drafter {
	return &drafter{Slots: module.NewSlots(m.module, m.vocabulary), of: m, ranks: module.NewRanks(m.module.Block), best: make([]sample.Candidate, m.beam)}
}

// Wants implements [method.Wanter].
func (d *drafter) Wants() method.Wants { return d.of.module.Wants() }

// Begin implements [method.Drafter].
func (d *drafter) Begin(h *method.History) (err error) {
	d.text, d.err, d.greedy = h, nil, h.Noise.Sampling.Greedy()
	if err := d.Slots.Begin(h); err != nil {
		return err
	}
	d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.of.vocabulary)
	return err
}

// Committed implements [method.Drafter].
func (d *drafter) Committed(r method.Update) {
	if d.of.learn && len(d.chain) > 0 {
		d.of.tuning.Learn(d.ranks, d.chain, r.IDs, d.rate)
	}
	d.err = d.Slots.Committed(r)
}

// Draft implements [method.Drafter].
func (d *drafter) Draft(ctx context.Context, t *method.Tree) error {
	if d.err != nil {
		return d.err
	}
	ok, err := d.Root(ctx)
	if !ok || err != nil {
		return err
	}
	if d.nodes, d.chain = d.nodes[:0], d.chain[:0]; d.of.learn {
		d.of.tuning.Begin(d.ranks)
	}
	if err := d.block(t, method.Root, 0, 0); err != nil {
		return err
	}
	for _, n := range d.nodes {
		if d.rate = t.Throughput; n.rank == 0 {
			d.chain = append(d.chain, n.id)
		}
	}
	for pass := 1; pass < d.of.blocks; pass++ {
		if !d.choose(t, pass) {
			break
		}
		began, first := time.Now(), len(d.Live)
		if err := d.Behind(ctx, d.blocks); err != nil {
			return err
		}
		for i, leaf := range d.leaves {
			if err := d.block(t, leaf, i*d.Slots.Slots(), first+i*d.Slots.Slots()); err != nil {
				return err
			}
		}
		d.passes.Observe(time.Since(began))
	}
	d.add(t)
	return nil
}

// block makes nodes of a block behind a node, whose results and live rows begin at places.
func (d *drafter) block(t *method.Tree, parent, result, row int) error {
	index := len(d.text.IDs()) - d.text.SourceLen
	for k := range d.Slots.Slots() {
		depth, path, most := 1, float32(1), d.of.beam
		if parent != method.Root {
			depth, path = d.nodes[parent].depth+1, d.nodes[parent].path
		}
		if k > 0 {
			r := d.Result(result + k)
			most = min(most, branches[d.ranks.Class(r.State, r.Logits)])
		}
		if most == 0 || depth > t.Depth() {
			return nil
		}
		logits := d.Logits(result + k)
		best, err := d.sampler.Candidates(d.best[:most], logits, index+depth-1)
		if err != nil {
			return err
		}
		if parent != method.Root {
			d.nodes[parent].open = false
		}
		from, first := parent, len(d.nodes)
		for i, c := range best {
			if logits[c.ID] == compute.Masked {
				break
			}
			d.nodes = append(d.nodes, node{id: c.ID, parent: from, depth: depth, rank: i, p: c.P, path: path * d.share(t, i, c.P), row: row + k, open: true})
		}
		if parent = first; parent == len(d.nodes) {
			return nil
		}
	}
	return nil
}

// share returns how often candidates of a rank and a probability are accepted. That of candidates in the order of a draw does not say how often they are drawn.
func (d *drafter) share(t *method.Tree, rank int, p float32) float32 {
	if d.greedy {
		return p
	}
	return min(1, t.Estimate(grow.Class(rank, p), grow.Belief(rank, p)))
}

// choose makes the likeliest leaves the blocks of the next pass, and reports whether that pays.
func (d *drafter) choose(t *method.Tree, pass int) bool {
	d.leaves, d.blocks = d.leaves[:0], d.blocks[:0]
	if _, depth := d.Room(); depth < pass {
		return false
	}
	for i, n := range d.nodes {
		if n.open && n.depth < t.Depth() && n.path >= t.Floor {
			d.leaves = append(d.leaves, i)
		}
	}
	d.likeliest(d.leaves)
	d.leaves = d.leaves[:min(len(d.leaves), d.of.beam, d.Blocks())]
	sum := 0.0
	for _, i := range d.leaves {
		sum += float64(d.nodes[i].path)
		d.blocks = append(d.blocks, module.Slot{Row: d.nodes[i].row, ID: d.nodes[i].id})
	}
	return len(d.leaves) > 0 && d.passes.Pays(t, sum)
}

// likeliest sorts places of nodes by their paths, of equal ones the earlier first: so a parent comes before its children.
func (d *drafter) likeliest(places []int) {
	slices.SortFunc(places, func(a, b int) int { return cmp.Or(cmp.Compare(d.nodes[b].path, d.nodes[a].path), cmp.Compare(a, b)) })
}

// add adds the likeliest nodes to the tree. A path is no likelier than the path to its parent: so the parents of all are there.
func (d *drafter) add(t *method.Tree) {
	d.leaves = d.leaves[:0]
	for i := range d.nodes {
		d.nodes[i].place = method.Root
		d.leaves = append(d.leaves, i)
	}
	d.likeliest(d.leaves)
	for _, i := range d.leaves[:min(len(d.leaves), d.of.drafts)] {
		n, parent := &d.nodes[i], method.Root
		if n.parent != method.Root {
			if parent = d.nodes[n.parent].place; parent == method.Root {
				continue
			}
		}
		n.place = t.Add(parent, n.id, grow.Class(n.rank, n.p), grow.Belief(n.rank, n.p))
	}
}

// MemoryFor implements [method.Sized].
func (d *drafter) MemoryFor(int, sample.Params) method.Memory {
	return d.Memory(d.of.beam * d.Slots.Slots())
}
