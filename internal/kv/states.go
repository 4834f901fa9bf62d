package kv

import (
	"fmt"
	"unsafe"

	"grove/internal/forest"
)

// State is one recurrence of a layer: numbers that every row of a text advances in turn. They are stored as float32,
// whatever the cache's type.
type State struct {
	Parts  int // that are advanced apart from each other: heads, or groups of channels
	Size   int // values of a part
	Record int // values of a row's input, its record
}

// NoState stands for a state before the first row: all zero.
const NoState = noPage

// states is what a cache stores for recurrent layers: not a state for every row, but for each sequence one, its base, and
// the records of the rows behind it.
//
//	K3  the state behind a trunk's last row is its base, advanced by the rows of its tail: index + length of the tail is
//	    the trunk's length
//	K4  a page of the pool is written in one step, and no longer changes once the step has succeeded
//	K5  the record of a live row belongs to it until it is committed, and then to a tail
type states struct {
	pool    *pool
	places  [][]statePlace // by layer and recurrence
	record  int            // values of a row's records, all recurrences together
	cadence int            // indices between snapshots

	records []float32
	free    []int32 // of records, the next one to take last
	bySlot  []kept

	step  []forest.Seq // sequences with rows in the step that runs
	fresh []int32      // slots that have got records for it
	stamp uint32
	marks []mark // by slot, of the rows of the step and of their ancestors
}

// statePlace locates a recurrence in a state and in a record, in values.
type statePlace struct{ state, record int }

// kept is the record of the live node in a slot.
type kept struct {
	node   forest.Node
	record int32
}

// mark says from which state the rows of a step go on to a slot.
type mark struct {
	stamp uint32
	ahead bool // from the state behind Ahead, not from the trunk
}

// Recurrence names the state that the rows of an open sequence go on from, and the states that the running step writes.
// It is valid until the next verb; read only.
type Recurrence struct {
	Base  int32   // the state at an index, [NoState] at 0
	Index int     // of it: the number of rows that it has seen
	Tail  []int32 // the records of the trunk's rows behind it

	Ahead      forest.Node // a live node whose state is stored; [forest.Trunk]: none
	AheadState int32       // this state
	only       bool        // rows before Ahead have no record
	pending    []Snapshot  // of the path to Ahead
	loaded     int32       // a state that is read from a file

	Next Next
}

// Next lists the states that a step writes: the state behind the trunk, where it has a tail, and the state behind the step's last row, where
// the step's rows of the sequence are one path.
type Next struct {
	Base, Ahead int32 // [NoState]: it is not written
	Behind      bool  // the path begins behind the row that was ahead, not behind the trunk
	Snapshots   []Snapshot

	rows  int
	last  forest.Node // the last row
	path  bool        // so far the rows are a path from a stored state
	whole bool        // a row that runs every layer goes on from the trunk
	only  bool        // a row of the path has no record
}

// Snapshot is a state at a border of pages, which other sequences find by the page's name.
type Snapshot struct {
	Index int // of the first row behind it
	State int32
}

const (
	// statesOfSeq is the states that a sequence may hold: its base, the one ahead, what a step writes of both, and one that is
	// written to a file.
	statesOfSeq = 5
	// spareStates is the states besides those: snapshots, the most that a context has.
	spareStates = 16
)

// layout lists the recurrences of the layers. It returns nil where there are none.
func layout(c *Config) (*states, float64, error) {
	st, size := &states{cadence: cadence(c.Context)}, 0.0
	record := 0.0
	for l, layer := range c.Layers {
		var places []statePlace
		for i, s := range layer.States {
			if s.Parts < 1 || s.Size < 1 || s.Record < 1 {
				return nil, 0, fmt.Errorf("kv: state %d of layer %d has %d parts of %d values and records of %d; each must be 1 or more", i, l, s.Parts, s.Size, s.Record)
			}
			places = append(places, statePlace{int(min(size, maxBytes)), int(min(record, maxBytes))})
			size += float64(s.Parts) * float64(s.Size)
			record += float64(s.Record)
		}
		st.places = append(st.places, places)
	}
	if size == 0 {
		return nil, 0, nil
	}
	st.record = int(min(record, maxBytes))
	pages := float64(statesOfSeq*c.Seqs + spareStates)
	need := 4 * (pages*size + float64(c.Records)*record)
	return st, need, nil
}

// mostCadence is the most indices between two snapshots: what a text that another one nearly begins with computes again, however long the context is.
const mostCadence = 4 * PageTokens

// cadence returns the number of indices between the snapshots of a text: a context has spareStates of them, or more, which [Cache.thin] makes fewer.
func cadence(context int) int {
	return min(pagesOf((context+spareStates-1)/spareStates)*PageTokens, mostCadence)
}

// thin lets snapshots of a trunk go as one at index end is named: the further back, the fewer stay, two or three for each doubling of the distance. So the end
// of a text, where an agent's next turn parts from it, has all of them, and a beginning that other texts share has some.
func (k *Cache) thin(t *trunk, end int) {
	const dense = 4 // snapshots before the first gap
	st := k.states
	last := end / st.cadence
	for i := last - dense; i > 0; i-- {
		if step := i & -i; last-i >= dense*step {
			st.pool.forget(t.hashes[i*st.cadence/PageTokens-1])
		}
	}
}

// allocate makes the room that layout has counted.
func (st *states) allocate(c *Config, slots int) {
	size := 0
	for _, layer := range c.Layers {
		for _, s := range layer.States {
			size += s.Parts * s.Size
		}
	}
	st.pool = newPool(statesOfSeq*c.Seqs+spareStates, 4*size)
	st.records = make([]float32, c.Records*st.record)
	st.free = make([]int32, c.Records)
	for i := range st.free {
		st.free[i] = int32(c.Records - 1 - i)
	}
	st.bySlot, st.marks = make([]kept, slots), make([]mark, slots)
}

// floats returns the values of a page.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// Recurrent reports whether a layer of the model has a state.
func (k *Cache) Recurrent() bool { return k.states != nil }

// Cadence returns the number of indices between the snapshots of states: 0 without recurrent layers.
func (k *Cache) Cadence() int {
	if k.states == nil {
		return 0
	}
	return k.states.cadence
}

// StateBytes returns the bytes of the state behind a row, and of a row's record, all recurrent layers together.
func (k *Cache) StateBytes() (state, record int) {
	if k.states == nil {
		return 0, 0
	}
	return k.states.pool.pageBytes, 4 * k.states.record
}

// Recurrence returns where the state behind the rows of an open sequence comes from.
func (k *Cache) Recurrence(s forest.Seq) *Recurrence { return &k.seqs[s].state }

// State returns the values of a recurrence of a layer in a state, part by part. Those that the step writes may be written.
func (k *Cache) State(id int32, layer, state int) []float32 {
	st, s := k.states, &k.config.Layers[layer].States[state]
	at := st.places[layer][state].state
	return floats(st.pool.bytes(id))[at : at+s.Parts*s.Size]
}

// Records returns the records of rows from one on, for a recurrence of a layer: row i of them at values[i*stride:].
func (k *Cache) Records(first int32, layer, state int) (values []float32, stride int) {
	st := k.states
	return st.records[int(first)*st.record+st.places[layer][state].record:], st.record
}

// RecordOf returns the record of the live node in a slot, and false where it is not kept.
func (k *Cache) RecordOf(slot int32) (int32, bool) {
	b := &k.states.bySlot[slot]
	return b.record, b.node != forest.Trunk && b.node == k.Forest.At(slot)
}

// take returns a state for a sequence; at most statesOfSeq for each of Config.Seqs.
func (st *states) take() (int32, error) {
	id, ok := st.pool.take()
	if !ok {
		return NoState, fmt.Errorf("kv: no state of %d bytes is free beside %d: %w", st.pool.pageBytes, len(st.pool.pages), ErrFull)
	}
	return id, nil
}

// drop gives a state back.
func (st *states) drop(id *int32) {
	if *id != NoState {
		st.pool.drop(*id)
	}
	*id = NoState
}

// spare reports whether a snapshot can be taken: the states that sequences may need are left.
func (k *Cache) spare() bool {
	held := 0
	for i := range k.seqs {
		r := &k.seqs[i].state
		for _, id := range [...]int32{r.Base, r.AheadState, r.Next.Base, r.Next.Ahead} {
			if id != NoState {
				held++
			}
		}
	}
	return k.states.pool.available() > statesOfSeq*k.config.Seqs-held
}

// collect frees the records of nodes that are no longer live.
func (k *Cache) collect() {
	for slot := range k.states.bySlot {
		if b := &k.states.bySlot[slot]; b.node != forest.Trunk && b.node != k.Forest.At(int32(slot)) {
			k.states.free = append(k.states.free, b.record)
			*b = kept{}
		}
	}
}

// freeTail frees the records [from, end) of a tail.
func (st *states) freeTail(r *Recurrence, from, end int) {
	for i := end - 1; i >= from; i-- {
		st.free = append(st.free, r.Tail[i])
	}
	r.Tail = append(r.Tail[:from], r.Tail[end:]...)
}

// begin makes the recurrence of an empty sequence.
func (r *Recurrence) begin() {
	*r = Recurrence{
		Base: NoState, Tail: r.Tail[:0], AheadState: NoState, pending: r.pending[:0], loaded: NoState,
		Next: Next{Base: NoState, Ahead: NoState, Snapshots: r.Next.Snapshots[:0]},
	}
}

// dropAhead forgets the state ahead of the trunk.
func (st *states) dropAhead(r *Recurrence) {
	st.drop(&r.AheadState)
	for i := range r.pending {
		st.drop(&r.pending[i].State)
	}
	r.pending, r.Ahead, r.only = r.pending[:0], forest.Trunk, false
}

// dropDead forgets the state behind a node that is no longer live.
func (k *Cache) dropDead(r *Recurrence) {
	if k.states != nil && r.Ahead != forest.Trunk && k.Forest.At(forest.SlotOf(r.Ahead)) != r.Ahead {
		k.states.dropAhead(r)
	}
}

// setBase makes a state the base of a trunk, with no tail behind it.
func (st *states) setBase(r *Recurrence, id int32, index int) {
	st.drop(&r.Base)
	st.freeTail(r, 0, len(r.Tail))
	r.Base, r.Index = id, index
}

// clearStates gives back all that a sequence stores.
func (k *Cache) clearStates(t *trunk) {
	if st := k.states; st != nil {
		k.Advanced(false) // a step that panicked
		st.dropAhead(&t.state)
		st.drop(&t.state.loaded)
		st.setBase(&t.state, NoState, 0)
	}
}
