package forest

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"grove/internal/text/token"
)

// Weighted is a token id and its weight in a mixture of embeddings.
type Weighted struct {
	ID     token.ID
	Weight float32
}

// Want lists the outputs of a row; the zero value is none. A row that stops at layer To gives Logits, Top and
// State there: the final norm and the head read its residual stream after layer To-1.
type Want struct {
	Logits bool   // the logits of the vocabulary
	Top    int    // the ids and logits of the Top largest, with the log-sum-exp of all
	State  bool   // the stream behind the final norm, which the output head reads
	Hidden Layers // the residual stream after these layers, which the row must run or skip, or after layer From-1 of a resumed row

	Embedding bool // the residual stream before the first layer, which is the first of the hidden states; not of a resumed row

	// Subset limits Logits and Top to some tokens: group g is the tokens 16*g to 16*g+15 (compute.SubsetGroup).
	// Groups ascend. nil is the whole vocabulary; the logits of other tokens are compute.Masked. The slice is
	// read during the forward pass and not kept.
	Subset []int32
}

// Head reports whether the row needs the output head.
func (w Want) Head() bool { return w.Logits || w.Top > 0 }

// Stream reports whether the row gives the residual stream behind a layer; -1 stands for the embedding.
func (w Want) Stream(layer int) bool {
	return layer < 0 && w.Embedding || layer >= 0 && w.Hidden.Has(layer)
}

// Streams returns how many times the row gives the residual stream.
func (w Want) Streams() int {
	if w.Embedding {
		return 1 + w.Hidden.Len()
	}
	return w.Hidden.Len()
}

// Output reports whether the row needs the final norm.
func (w Want) Output() bool { return w.Head() || w.State }

// Linear is a matrix of a model's width by which a row's stream becomes that of another. Package compute knows which there are.
type Linear interface {
	In() int
	Out() int
}

// Prior is a distribution of the token in a row's place that an earlier pass gave, on which a model conditions its next one: the softmax of
// logits over a temperature (DiffusionGemma, Google 2026). It is read during the forward pass and not kept.
type Prior struct {
	Logits      []float32 // of the vocabulary
	Temperature float32
	Weight      float32 // with which the embedding that it expects is added to the row's own (iteration smoothing of dInfer, 2025); 0: a model that has a use for priors reads it
}

// Row describes one row of a step: its place, input, layers and outputs. The zero value of each field is the
// usual case.
type Row struct {
	Seq    Seq
	Parent Node // Trunk, or a live node, of this step or an earlier one

	// Input: ID, unless Vector or Mix is given. Both are read during the forward pass and not kept. A draft module reads all of them.
	ID     token.ID
	Vector []float32  // an embedding of the model's width; of a draft module: states of its target
	Mix    []Weighted // the weighted sum of the embeddings of some ids, in order; of a draft module: further ids
	Prior  *Prior     // beside ID, of a row of a block; nil: none

	Shift int // added to the index, gives the position that rotates the row
	Block int // rows of a sequence and step with the same Block > 0 form a path and see each other
	// Named says of a row of a block that the entries before it and those of its block name all that it sees: texts share its keys where both are the same. Pages must end where
	// blocks do.
	Named  bool
	Causal Layers // layers in which the row does not see the later rows of its block
	From   int    // first layer to run; above 0 only with Resume
	To     int    // first layer not to run; 0 is all
	Skip   Layers // layers that the row does not run: its stream passes unchanged, and it has no keys there
	// Lasting says that it may be committed although it skips layers: every later row of the sequence skips them too.
	Lasting bool
	// Substitute says that the row runs none of the layers that can be substituted ([Forest.SetSubstitutable]), in which rows with keys are counted by themselves: behind each of them its stream is made from that of
	// its anchor, the last row before it with Anchor.
	Substitute, Anchor bool
	// Parts of layers that the row does not run, though it runs the layer's other part: of an attention part it has no keys. A layer in both is one of Skip.
	// Models whose attention and feed-forward parts follow each other run them apart.
	SkipAttention, SkipFeedForward Layers

	Resume Node // runs further layers of this node, which has reached layer From; Parent, input, Shift, Block and Adapter are the node's
	Want   Want

	// Through makes the row's stream, at the first layer that it runs, the product of the matrix with the stream that row Of has there: a row
	// of the same step and sequence that begins at that layer or below and has no Through. The row's input is not read then.
	Of      Node
	Through Linear

	Adapter int // the number of a set of adapters, see [Forest.Adapt]; 0: none

	// Transient says that no later step has a child of the row, resumes it, or commits a path that ends with it, so that its
	// input to recurrent layers is not kept. Children in its own step may follow it, and a path through it may be committed
	// where its rows are all of the sequence's in the step: the rows of a prompt but the last.
	Transient bool
}

// Placed is a row of a step with its node, slot and index.
type Placed struct {
	Row
	Node  Node
	Slot  int32  // of its keys and values in scratch
	Index int32  // its place in the sequence: the parent's index + 1
	Pos   int32  // Index + Shift
	First int32  // the index of the first row of its block; its own without a block
	Run   Layers // the layers that it runs in this step, wholly or in part

	Source int32 // the number of row Of in the step, of a row with Through
	Behind Node  // its anchor, of a row that substitutes layers

	before node // of a resumed row: the node as Abort restores it
}

// Runs reports whether the row runs a layer's attention part in this step, or its feed-forward part.
func (p *Placed) Runs(layer int, feedForward bool) bool {
	if feedForward {
		return p.Run.Has(layer) && !p.SkipFeedForward.Has(layer)
	}
	return p.Run.Has(layer) && !p.SkipAttention.Has(layer)
}

// Step is the rows of one forward pass. [Forest.NewStep] makes it; callers add rows, run it, and Reset it for
// the next pass. It is not safe for concurrent use.
type Step struct {
	forest *Forest
	rows   []Placed
	path   []int32
	plain  bool // no row and no ancestor of one has skipped a layer, and blocks are the same in all layers
}

// NewStep makes a step for at most max rows.
func (f *Forest) NewStep(max int) *Step {
	return &Step{forest: f, rows: make([]Placed, 0, max), path: make([]int32, 0, len(f.nodes)), plain: true}
}

// Rows returns the rows added since the last Reset, in the order of Add: the n-th Add makes row n-1, and the
// results of a forward pass have the same numbers. The caller does not change the rows.
func (s *Step) Rows() []Placed { return s.rows }

// Max returns the number of rows that the step can hold.
func (s *Step) Max() int { return cap(s.rows) }

// Plain reports whether every visible node has keys, and is seen, in every layer that a row of the step runs. One call of
// [Step.Visible] then serves all layers.
func (s *Step) Plain() bool { return s.plain }

// Check returns [ErrNode] where a row's node was dropped or committed after it was added: such a step cannot
// run.
func (s *Step) Check() error {
	for i := range s.rows {
		if _, err := s.forest.slot(s.rows[i].Seq, s.rows[i].Node); err != nil {
			return err
		}
	}
	return nil
}

// Reset empties the step; the nodes of its rows live on.
func (s *Step) Reset() {
	s.rows = s.rows[:0]
	s.plain = true
}

// Abort undoes every Add since the last Reset: it ends added nodes, and resumed nodes are as before.
func (s *Step) Abort() {
	for i := len(s.rows) - 1; i >= 0; i-- {
		r := &s.rows[i]
		nd := &s.forest.nodes[r.Slot]
		switch {
		case !nd.live || makeNode(r.Slot, nd.generation) != r.Node: // dropped since
		case r.Resume != Trunk:
			r.before.parent = nd.parent // commits since may have moved it
			*nd = r.before
		default:
			s.forest.release(r.Slot)
		}
	}
	s.Reset()
}

// Add places a row and returns its node, which later rows of this and other steps may have as parent. A
// resumed row keeps its node. Errors: [ErrSeq], [ErrNode], [ErrContext], [ErrScratch] where no slot or no row
// is free, and one that names the field that contradicts the rules F1 to F4. Add has changed nothing then.
func (s *Step) Add(r Row) (Node, error) {
	f := s.forest
	if err := f.check(r.Seq); err != nil {
		return Trunk, err
	}
	if len(s.rows) == cap(s.rows) {
		return Trunk, fmt.Errorf("forest: a step of more than %d rows: %w", cap(s.rows), ErrScratch)
	}
	if r.Adapter < 0 || r.Adapter > len(f.adapters) {
		return Trunk, fmt.Errorf("forest: set of adapters %d is not known; 0 (none) to %d are", r.Adapter, len(f.adapters))
	}
	if r.To == 0 {
		r.To = f.nLayers
	}
	if r.From < 0 || r.From >= r.To || r.To > f.nLayers {
		return Trunk, fmt.Errorf("forest: a row on layers %d to %d; a range within 0 to %d must not be empty", r.From, r.To, f.nLayers)
	}
	if r.Prior != nil && (r.Block == 0 || r.Resume != Trunk) {
		return Trunk, errors.New("forest: a row with a prior is resumed or of no block; a prior is for new rows of a block, whose keys no other row shares")
	}
	r.Skip = r.Skip.Union(r.SkipAttention.Minus(r.SkipAttention.Minus(r.SkipFeedForward)))
	if err := f.substitutes(&r); err != nil {
		return Trunk, err
	}
	if r.Resume != Trunk {
		return s.resume(r)
	}
	return s.grow(r)
}

// run returns the layers that a row runs, wholly or in part.
func (r *Row) run() Layers { return LayerRange(r.From, r.To).Minus(r.Skip) }

// parts reports whether the row runs a layer without its feed-forward part.
func (r *Row) parts() bool { return r.run().Minus(r.SkipFeedForward) != r.run() }

// grow adds a new node.
func (s *Step) grow(r Row) (Node, error) {
	f := s.forest
	if r.From != 0 {
		return Trunk, fmt.Errorf("forest: a new row starts at layer 0, not %d", r.From)
	}
	nd := node{
		seq: r.Seq, parent: noParent, index: f.seqs[r.Seq].trunk, live: true, plain: true,
		reached: int32(r.To), layers: r.run().Minus(r.SkipAttention), parts: r.parts(), shift: int32(r.Shift), private: r.Block > 0 && !r.Named, block: r.Block > 0,
		lasting: r.Lasting,
	}
	f.begin(&nd, r.Seq)
	var up *node
	if r.Parent != Trunk {
		slot, err := f.slot(r.Seq, r.Parent)
		if err != nil {
			return Trunk, err
		}
		up = &f.nodes[slot]
		nd.parent, nd.index, nd.plain = slot, up.index+1, up.plain
		nd.follow(up)
		if up.reached < nd.reached {
			return Trunk, fmt.Errorf("forest: a row on layers 0 to %d, whose parent has reached %d; resume the parent first", r.To, up.reached)
		}
	}
	if err := f.keyed(&r, nd.layers, up); err != nil {
		return Trunk, err
	}
	nd.plain = nd.plain && nd.layers.Len() == r.To
	nd.private = nd.private || r.Lasting && !nd.plain
	if err := nd.substitute(&r); err != nil {
		return Trunk, err
	}
	if nd.index >= f.context {
		return Trunk, fmt.Errorf("forest: index %d: %w of %d", nd.index, ErrContext, f.context)
	}
	if pos := int64(nd.index) + int64(r.Shift); pos < 0 || pos > math.MaxInt32 {
		return Trunk, fmt.Errorf("forest: position %d of the row at index %d is out of range", pos, nd.index)
	}
	first, err := s.checkBlock(r, nd.index)
	if err != nil {
		return Trunk, err
	}
	source, err := s.source(r, nd.layers)
	if err != nil {
		return Trunk, err
	}
	nd.private = nd.private || r.Through != nil
	nd.entry = f.adapted(r.entry(), r.Adapter)
	nd.adapter = int32(r.Adapter)
	slot, ok := f.take(nd.parent, nd.index)
	if !ok {
		return Trunk, fmt.Errorf("forest: %d live rows: %w", len(f.nodes), ErrScratch)
	}
	nd.generation = f.nodes[slot].generation
	behind := nd.anchor
	if r.Anchor {
		nd.anchor = makeNode(slot, nd.generation)
	}
	f.nodes[slot] = nd
	f.seqs[r.Seq].nodes++
	n := s.place(r, slot, nd)
	added := &s.rows[len(s.rows)-1]
	added.First, added.Source, added.Behind = first, source, behind
	return n, nil
}

// source returns the number of the row whose stream a new row of some layers begins with.
func (s *Step) source(r Row, layers Layers) (int32, error) {
	if r.Through == nil {
		return 0, nil
	}
	first := layers.First()
	for i := len(s.rows) - 1; i >= 0; i-- {
		o := &s.rows[i]
		switch {
		case o.Node != r.Of || o.Seq != r.Seq:
			continue
		case o.Through != nil:
			return 0, fmt.Errorf("forest: a row begins as a product of the row at index %d, which is one itself", o.Index)
		case layers.Len() == 0 || o.From > first || o.To < first:
			return 0, fmt.Errorf("forest: a row begins at layer %d as a product of the row at index %d, which runs layers %d to %d; it must run some, from one that the other reaches on", first, o.Index, o.From, o.To-1)
		}
		return int32(i), nil
	}
	return 0, fmt.Errorf("forest: a row begins as a product of node %#x, which is no row of the step: %w", uint64(r.Of), ErrNode)
}

// checkBlock returns the index of the first row of the block of a row at an index, and an error where the rows of a block do not form a path through the
// same layers.
func (s *Step) checkBlock(r Row, index int32) (first int32, err error) {
	if r.Block < 0 {
		return 0, fmt.Errorf("forest: block %d; it must be 0 (none) or more", r.Block)
	}
	if r.Block == 0 {
		return index, nil
	}
	for i := len(s.rows) - 1; i >= 0; i-- {
		if o := &s.rows[i]; o.Seq == r.Seq && o.Block == r.Block {
			if r.Parent != o.Node {
				return 0, fmt.Errorf("forest: the rows of block %d do not form a path", r.Block)
			}
			if r.To != o.To || r.Skip != o.Skip || r.SkipAttention != o.SkipAttention || r.SkipFeedForward != o.SkipFeedForward {
				return 0, fmt.Errorf("forest: the rows of block %d do not run the same layers", r.Block)
			}
			return o.First, nil
		}
	}
	return index, nil
}

// resume adds a row that runs further layers of a node.
func (s *Step) resume(r Row) (Node, error) {
	f := s.forest
	slot, err := f.slot(r.Seq, r.Resume)
	if err != nil {
		return Trunk, err
	}
	nd := &f.nodes[slot]
	if int(nd.reached) != r.From {
		return Trunk, fmt.Errorf("forest: resuming a row at layer %d, but it has reached layer %d; the two must be equal", r.From, nd.reached)
	}
	if nd.private || nd.block {
		return Trunk, fmt.Errorf("forest: a row of a block cannot be resumed, as the rows that it sees may be gone; run the block again")
	}
	for i := range s.rows {
		if s.rows[i].Node == r.Resume {
			return Trunk, fmt.Errorf("forest: the row at index %d runs in this step; resume it in a later one", nd.index)
		}
	}
	plain := true
	if nd.parent != noParent {
		up := &f.nodes[nd.parent]
		if int(up.reached) < r.To {
			return Trunk, fmt.Errorf("forest: resuming a row to layer %d, whose parent has reached %d; resume the parent first", r.To, up.reached)
		}
		plain = up.plain
	}
	runs := r.run()
	if err := f.keyed(&r, runs, nil); err != nil {
		return Trunk, err
	}
	before := *nd
	nd.layers = nd.layers.Union(runs.Minus(r.SkipAttention))
	nd.parts = nd.parts || r.parts()
	nd.reached = int32(r.To)
	nd.plain = plain && nd.layers.Len() == r.To
	r.Shift, r.Block, r.Adapter = int(nd.shift), 0, int(nd.adapter)
	s.place(r, slot, *nd)
	s.rows[len(s.rows)-1].before = before
	return r.Resume, nil
}

func (s *Step) place(r Row, slot int32, nd node) Node {
	n := makeNode(slot, nd.generation)
	s.rows = append(s.rows, Placed{
		Row: r, Node: n, Slot: slot, Index: nd.index, Pos: nd.index + nd.shift, First: nd.index,
		Run: r.run(),
	})
	s.plain = s.plain && nd.plain && (r.Block == 0 || r.Causal == Layers{})
	return n
}

// entry identifies the row's input. The digest of vectors and mixtures is cryptographic: no sequence can be
// given another's keys.
func (r *Row) entry() Entry {
	if r.Vector == nil && r.Mix == nil {
		return Entry{A: uint64(uint32(r.ID)) | uint64(uint32(r.Shift))<<32}
	}
	h := sha256.New()
	var b [8]byte
	write := func(x, y uint32) {
		binary.LittleEndian.PutUint32(b[:4], x)
		binary.LittleEndian.PutUint32(b[4:], y)
		h.Write(b[:])
	}
	write(uint32(len(r.Mix)), uint32(r.Shift))
	write(uint32(r.ID), uint32(len(r.Vector)))
	for _, v := range r.Vector {
		write(0, math.Float32bits(v))
	}
	for _, m := range r.Mix {
		write(uint32(m.ID), math.Float32bits(m.Weight))
	}
	return digestEntry([sha256.Size]byte(h.Sum(nil)))
}

// digestEntry makes an entry of a digest. The top bit of B marks it: an id's entry has B zero.
func digestEntry(sum [sha256.Size]byte) Entry {
	return Entry{A: binary.LittleEndian.Uint64(sum[:]), B: binary.LittleEndian.Uint64(sum[8:]) | 1<<63}
}

// IDEntry returns the entry of a row with the id as input, no shift and no adapter.
func IDEntry(id token.ID) Entry { return (&Row{ID: id}).entry() }

// Adapt gives a set of adapters, by its number from 1, a name: a digest of all that decides what it changes. Entries of rows with
// the set are made of the name, so that no other row shares their keys.
func (f *Forest) Adapt(n int, name [sha256.Size]byte) {
	for len(f.adapters) < n {
		f.adapters = append(f.adapters, [sha256.Size]byte{})
	}
	f.adapters[n-1] = name
}

// AdaptedEntry is [IDEntry] of a row with a set of adapters; 0: none.
func (f *Forest) AdaptedEntry(id token.ID, adapter int) Entry { return f.adapted(IDEntry(id), adapter) }

// adapted returns the entry of a row with a set of adapters, of the entry that it has without.
func (f *Forest) adapted(e Entry, adapter int) Entry {
	if adapter == 0 {
		return e
	}
	return NamedEntry(e, f.adapters[adapter-1])
}

// NamedEntry returns the entry of a row with a set of adapters of a name, of the entry that it has without.
func NamedEntry(e Entry, set [sha256.Size]byte) Entry {
	var b [sha256.Size + 16]byte
	copy(b[:], set[:])
	binary.LittleEndian.PutUint64(b[sha256.Size:], e.A)
	binary.LittleEndian.PutUint64(b[sha256.Size+8:], e.B)
	return digestEntry(sha256.Sum256(b[:]))
}
