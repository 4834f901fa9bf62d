package modeltest

import (
	"fmt"
	"math"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// Bits is values of one row, usually its logits, to compare bit by bit.
type Bits []float32

// Diff returns an error that names the first logit whose bits differ.
func (b Bits) Diff(other Bits) error {
	if len(b) != len(other) {
		return fmt.Errorf("%d logits and %d", len(b), len(other))
	}
	for i := range b {
		if math.Float32bits(b[i]) != math.Float32bits(other[i]) {
			return fmt.Errorf("logit %d is %v (%#08x) and %v (%#08x)", i,
				b[i], math.Float32bits(b[i]), other[i], math.Float32bits(other[i]))
		}
	}
	return nil
}

// Tree is a tree of tokens: the parent of node i is node Parent[i], or the trunk's end where that is -1.
// Parents come before their children.
type Tree struct {
	IDs    []token.ID
	Parent []int
}

// Path returns the tokens from the trunk's end down to node i.
func (t Tree) Path(i int) []token.ID {
	if i < 0 {
		return nil
	}
	return append(t.Path(t.Parent[i]), t.IDs[i])
}

// Depth returns the number of nodes above node i.
func (t Tree) Depth(i int) int { return len(t.Path(i)) - 1 }

// Chain returns ids as a tree of one path.
func Chain(ids []token.ID) Tree {
	t := Tree{IDs: ids}
	for i := range ids {
		t.Parent = append(t.Parent, i-1)
	}
	return t
}

var logits = forest.Want{Logits: true}

func (r *Runner) bits(i int) Bits { return append(Bits(nil), r.Exec.Result(i).Logits...) }

// Plain decodes ids behind an empty sequence, one row a step, and returns the bits of every index: the reference
// of all other ways. The sequence is closed.
func (r *Runner) Plain(ids []token.ID) []Bits {
	r.tb.Helper()
	s := r.NewSeq("")
	defer r.Close(s)
	return r.Prefill(s, ids, 1)
}

// Reference returns the bits of Plain from one step, which is faster. Another check proves that they are equal.
func (r *Runner) Reference(ids []token.ID) []Bits {
	r.tb.Helper()
	s := r.NewSeq("")
	defer r.Close(s)
	return r.Prefill(s, ids, len(ids))
}

// Canvas runs a text as one block behind an empty sequence and returns the bits of every index: how a model of masked diffusion is run.
func (r *Runner) Canvas(ids []token.ID) (out []Bits) {
	r.tb.Helper()
	s, parent := r.NewSeq(""), forest.Trunk
	defer r.Close(s)
	for _, id := range ids {
		parent = r.Add(forest.Row{Seq: s, Parent: parent, ID: id, Block: 1, Want: logits})
	}
	r.Forward()
	return r.take(len(ids))
}

// Prefill appends ids to a trunk in steps of at most chunk rows and returns the bits of every index.
func (r *Runner) Prefill(s forest.Seq, ids []token.ID, chunk int) []Bits {
	r.tb.Helper()
	var out []Bits
	for len(ids) > 0 {
		n := min(chunk, len(ids))
		nodes, bits := r.Grow(s, Chain(ids[:n]))
		out = append(out, bits...)
		r.Commit(s, nodes[n-1])
		ids = ids[n:]
	}
	return out
}

// Grow runs a tree behind the trunk of s in one step and returns its live nodes and their bits.
func (r *Runner) Grow(s forest.Seq, t Tree) ([]forest.Node, []Bits) {
	r.tb.Helper()
	nodes := make([]forest.Node, len(t.IDs))
	for i, id := range t.IDs {
		nodes[i] = r.Add(forest.Row{Seq: s, Parent: parentOf(t, nodes, i), ID: id, Want: logits})
	}
	r.Forward()
	return nodes, r.take(len(nodes))
}

// GrowByLevel runs a tree as Grow does, one step for each depth.
func (r *Runner) GrowByLevel(s forest.Seq, t Tree) ([]forest.Node, []Bits) {
	r.tb.Helper()
	nodes, bits := make([]forest.Node, len(t.IDs)), make([]Bits, len(t.IDs))
	for depth := 0; ; depth++ {
		var level []int
		for i := range t.IDs {
			if t.Depth(i) == depth {
				level = append(level, i)
				nodes[i] = r.Add(forest.Row{Seq: s, Parent: parentOf(t, nodes, i), ID: t.IDs[i], Want: logits})
			}
		}
		if len(level) == 0 {
			return nodes, bits
		}
		r.Forward()
		for row, i := range level {
			bits[i] = r.bits(row)
		}
	}
}

func parentOf(t Tree, nodes []forest.Node, i int) forest.Node {
	if t.Parent[i] < 0 {
		return forest.Trunk
	}
	return nodes[t.Parent[i]]
}

// take copies the results of the first n rows of the last step.
func (r *Runner) take(n int) []Bits {
	out := make([]Bits, n)
	for i := range out {
		out[i] = r.bits(i)
	}
	return out
}

// Commit, Drop and Close are the cache's verbs; an error fails the test.
func (r *Runner) Commit(s forest.Seq, n forest.Node) { r.tb.Helper(); r.check(r.Cache.Commit(s, n)) }

// Drop ends the life of a node and its descendants.
func (r *Runner) Drop(s forest.Seq, n forest.Node) { r.tb.Helper(); r.check(r.Cache.Drop(s, n)) }

// Close closes a sequence.
func (r *Runner) Close(s forest.Seq) { r.tb.Helper(); r.check(r.Cache.CloseSeq(s)) }

func (r *Runner) check(err error) {
	r.tb.Helper()
	if err != nil {
		r.tb.Fatal(err)
	}
}

// Equal returns an error that names the first row whose bits differ.
func Equal(what string, got, want []Bits) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d rows and %d", what, len(got), len(want))
	}
	for i := range got {
		if err := got[i].Diff(want[i]); err != nil {
			return fmt.Errorf("%s: row %d: %w", what, i, err)
		}
	}
	return nil
}
