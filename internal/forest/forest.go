// Package forest keeps the structure of decoding: sequences, the trees of live rows behind them, and the
// rows that each row of a step sees. It holds no keys, values or other floats; package kv stores those and
// mirrors the verbs here.
//
// A sequence has a trunk: its committed tokens, at indices 0 to its length less one. A row that has
// been added to a step is a node of the sequence's tree until it is committed or dropped. These
// statements hold between calls:
//
//	F1  the parent of a live node is the trunk's end or a live node of the same sequence
//	F2  the index of a node is its parent's index plus one; the trunk's end has index length-1
//	F3  a node has reached no more layers than its parent: what it attends to is there
//	F4  a slot belongs to at most one live node; a Node of a former owner is refused
package forest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
)

// SlotsPerPage is the number of slots that share a page of scratch, equal to the attention block (N2).
const SlotsPerPage = 64

// Seq is the handle of a sequence.
type Seq int32

// Node is the handle of a live row: one that was added to a step and has been neither committed nor
// dropped. The zero Node is [Trunk].
type Node uint64

// Trunk is the end of a sequence's trunk, as a parent.
const Trunk Node = 0

func makeNode(slot int32, generation uint32) Node {
	return Node(uint64(generation)<<32 | uint64(slot+1))
}

// Entry identifies the input of a row: a token id with its position shift, or a digest of a vector or a
// mixture. Pages are shared by a hash of entries.
type Entry struct{ A, B uint64 }

type node struct {
	seq         Seq
	parent      int32 // slot, or noParent for the trunk's end
	index       int32
	generation  uint32
	live        bool
	plain       bool  // ran every layer it has reached, and so have its ancestors
	block       bool  // it saw later rows of its block
	private     bool  // its keys are not those of a row of all layers that sees its ancestors alone, so no hash names them
	lasting     bool  // it may be committed although it skipped layers
	substitutes bool  // it ran none of the layers that can be substituted
	anchor      Node  // the last row of its path that rows behind it have for an anchor, itself perhaps; Trunk: there is none
	ordinal     int32 // the number of tokens before it that have keys in the layers that can be substituted
	reached     int32
	layers      Layers // the layers whose attention it ran, which hold its keys
	parts       bool   // it ran layers without their feed-forward parts
	shift       int32
	adapter     int32
	entry       Entry
}

const noParent = -1

type sequence struct {
	live  bool
	trunk int32
	nodes int32   // live nodes
	lacks []lacks // of the trunk, by rising index

	gaps   []int32 // the trunk's tokens without keys in the layers that can be substituted, ascending
	anchor Node    // of rows behind the trunk, which was committed; Trunk: there is none
}

// Forest is a set of sequences with their live nodes. It is not safe for concurrent use.
type Forest struct {
	nLayers int
	context int32
	nodes   []node   // by slot
	free    []uint64 // a bit a slot, a word a page: 1 is free
	seqs    []sequence
	marks   []uint8 // scratch of the verbs, by slot

	substitutable Layers

	adapters [][sha256.Size]byte // names of sets of adapters, by number less one
	path     []int32
}

// Errors that callers tell apart.
var (
	// ErrNode reports a parent or node that is not live: it was committed or dropped, or never existed.
	ErrNode = errors.New("node is not live")
	// ErrSeq reports a sequence that is not open.
	ErrSeq = errors.New("sequence is not open")
	// ErrScratch reports more live rows than the forest has slots, or more rows than a step holds.
	ErrScratch = errors.New("no scratch slot is free")
	// ErrContext reports a row past the context length.
	ErrContext = errors.New("context is full")
)

// New makes an empty forest for a model of nLayers layers, with indices below context and slots for live
// nodes, rounded up to whole pages. It returns an error where nLayers is not 1 to [MaxLayers].
func New(nLayers, context, slots int) (*Forest, error) {
	if nLayers < 1 || nLayers > MaxLayers {
		return nil, fmt.Errorf("forest: the model has %d layers; 1 to %d are supported", nLayers, MaxLayers)
	}
	pages := (slots + SlotsPerPage - 1) / SlotsPerPage
	f := &Forest{
		nLayers: nLayers, context: int32(context),
		nodes: make([]node, pages*SlotsPerPage), marks: make([]uint8, pages*SlotsPerPage),
		free: make([]uint64, pages),
	}
	for i := range f.free {
		f.free[i] = ^uint64(0)
	}
	return f, nil
}

// Slots returns the number of slots, the most nodes that live at a time.
func (f *Forest) Slots() int { return len(f.nodes) }

// Layers returns the number of layers of the model.
func (f *Forest) Layers() int { return f.nLayers }

// Context returns the context length, the number of indices of a sequence.
func (f *Forest) Context() int { return int(f.context) }

// NewSeq opens an empty sequence. Handles of closed sequences are used again.
func (f *Forest) NewSeq() Seq {
	for i := range f.seqs {
		if !f.seqs[i].live {
			f.seqs[i] = sequence{live: true}
			return Seq(i)
		}
	}
	f.seqs = append(f.seqs, sequence{live: true})
	return Seq(len(f.seqs) - 1)
}

// CloseSeq drops the sequence's live nodes and ends it. Errors: [ErrSeq].
func (f *Forest) CloseSeq(s Seq) error {
	if err := f.Truncate(s, 0); err != nil {
		return err
	}
	f.seqs[s] = sequence{}
	return nil
}

// Seqs returns the number of open sequences.
func (f *Forest) Seqs() int {
	n := 0
	for i := range f.seqs {
		if f.seqs[i].live {
			n++
		}
	}
	return n
}

// Len returns the length of the trunk of an open sequence, and 0 for any other.
func (f *Forest) Len(s Seq) int {
	if f.check(s) != nil {
		return 0
	}
	return int(f.seqs[s].trunk)
}

func (f *Forest) check(s Seq) error {
	if s < 0 || int(s) >= len(f.seqs) || !f.seqs[s].live {
		return fmt.Errorf("forest: sequence %d: %w", s, ErrSeq)
	}
	return nil
}

// slot returns the slot of a live node of s. Errors: [ErrNode].
func (f *Forest) slot(s Seq, n Node) (int32, error) {
	i := SlotOf(n)
	if i < 0 || int(i) >= len(f.nodes) || f.nodes[i].seq != s || f.At(i) != n {
		return 0, fmt.Errorf("forest: node %#x of sequence %d: %w", uint64(n), s, ErrNode)
	}
	return i, nil
}

// Index returns the index of a live node, or of the trunk's end: -1 where the trunk is empty. Errors: [ErrSeq],
// [ErrNode].
func (f *Forest) Index(s Seq, n Node) (int, error) {
	if err := f.check(s); err != nil {
		return 0, err
	}
	if n == Trunk {
		return int(f.seqs[s].trunk) - 1, nil
	}
	i, err := f.slot(s, n)
	if err != nil {
		return 0, err
	}
	return int(f.nodes[i].index), nil
}

// Live returns the number of live nodes of a sequence.
func (f *Forest) Live(s Seq) int {
	if f.check(s) != nil {
		return 0
	}
	return int(f.seqs[s].nodes)
}

// AllLive returns the number of live nodes of all sequences.
func (f *Forest) AllLive() int {
	free := 0
	for _, word := range f.free {
		free += bits.OnesCount64(word)
	}
	return len(f.nodes) - free
}

// take claims a slot for a row. It prefers the slot behind the parent's, or one whose place in its page
// is the index's place in its attention block: the slots of a path are then long runs.
func (f *Forest) take(parent, index int32) (int32, bool) {
	if parent != noParent && (parent+1)%SlotsPerPage != 0 && f.isFree(parent+1) {
		return f.claim(parent + 1), true
	}
	at := index % SlotsPerPage
	first := int32(-1)
	for p, word := range f.free {
		if word == ^uint64(0) {
			return f.claim(int32(p)*SlotsPerPage + at), true
		}
		if word != 0 && first < 0 {
			first = int32(p*SlotsPerPage + bits.TrailingZeros64(word))
		}
	}
	if first < 0 {
		return 0, false
	}
	return f.claim(first), true
}

func (f *Forest) isFree(slot int32) bool {
	return f.free[slot/SlotsPerPage]&(1<<(slot%SlotsPerPage)) != 0
}

func (f *Forest) claim(slot int32) int32 {
	f.free[slot/SlotsPerPage] &^= 1 << (slot % SlotsPerPage)
	return slot
}

// release ends a slot's node and raises its generation, so that old handles are refused (F4).
func (f *Forest) release(slot int32) {
	n := &f.nodes[slot]
	f.seqs[n.seq].nodes--
	*n = node{generation: n.generation + 1}
	f.free[slot/SlotsPerPage] |= 1 << (slot % SlotsPerPage)
}
