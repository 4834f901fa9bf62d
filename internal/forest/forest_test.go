package forest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	testLayers  = 4
	testContext = 100
	testSlots   = 128
	testMax     = 24 // rows of a step
)

// The naive model: a sequence is its number of tokens and a set of nodes that point to their parents.

type modelNode struct {
	node    Node
	parent  *modelNode // nil: the trunk's end
	index   int
	ran     map[int]bool
	reached int
	block   bool
}

type modelSeq struct {
	seq   Seq
	trunk int
	nodes []*modelNode
}

func (s *modelSeq) live(n *modelNode) bool { return slices.Contains(s.nodes, n) }

// path returns n and the nodes above it, the uppermost first.
func (n *modelNode) path() []*modelNode {
	if n == nil {
		return nil
	}
	return append(n.parent.path(), n)
}

func (n *modelNode) complete() bool { return n.reached == testLayers && len(n.ran) == testLayers }

type modelRow struct {
	seq    *modelSeq
	node   *modelNode
	row    Row
	before *modelNode // of a resumed node
}

// walk is a forest, its naive model, and handles that have died.
type walk struct {
	f    *Forest
	step *Step
	seqs []*modelSeq
	rows []*modelRow
	dead []struct {
		seq  Seq
		node Node
	}
}

func (w *walk) bury(s *modelSeq, gone func(n *modelNode) bool) {
	s.nodes = slices.DeleteFunc(s.nodes, func(n *modelNode) bool {
		if !gone(n) {
			return false
		}
		w.dead = append(w.dead, struct {
			seq  Seq
			node Node
		}{s.seq, n.node})
		return true
	})
	if len(w.dead) > 40 {
		w.dead = w.dead[len(w.dead)-40:]
	}
}

// upTo draws evenly from 0 to n-1: rapid's own numbers are mostly small, and walks stay near the trunk.
func upTo(t *rapid.T, n int, label string) int {
	v := 0
	for range 8 {
		v *= 2
		if rapid.Bool().Draw(t, label) {
			v++
		}
	}
	return v * n / 256
}

func (w *walk) newSeq(t *rapid.T) {
	if len(w.seqs) == 4 {
		return
	}
	s := w.f.NewSeq()
	for _, o := range w.seqs {
		if o.seq == s {
			t.Fatalf("sequence %d is open twice", s)
		}
	}
	w.seqs = append(w.seqs, &modelSeq{seq: s})
}

func (w *walk) pickSeq(t *rapid.T) *modelSeq {
	if len(w.seqs) == 0 {
		w.newSeq(t)
	}
	return w.seqs[upTo(t, len(w.seqs), "seq")]
}

// pickNode returns a live node of s, mostly the last, or nil for the trunk.
func pickNode(t *rapid.T, s *modelSeq) (*modelNode, Node) {
	if len(s.nodes) == 0 || upTo(t, 8, "trunk") == 0 {
		return nil, Trunk
	}
	n := s.nodes[len(s.nodes)-1]
	if upTo(t, 3, "node") == 0 {
		n = s.nodes[upTo(t, len(s.nodes), "node")]
	}
	return n, n.node
}

// grow adds a new row, valid or not, and expects a refusal exactly where the rules require one.
func (w *walk) grow(t *rapid.T) {
	s := w.pickSeq(t)
	parent, handle := pickNode(t, s)
	r := Row{Seq: s.seq, Parent: handle, Block: max(0, upTo(t, 16, "block")-13)}
	if upTo(t, 4, "causal") == 0 {
		r.Causal = r.Causal.With(upTo(t, testLayers, "causal layer"))
	}
	if upTo(t, 4, "stops") == 0 {
		r.To = upTo(t, testLayers+2, "to")
	} else if parent != nil {
		r.To = parent.reached
	}
	if upTo(t, 8, "skips") == 0 {
		r.Skip = r.Skip.With(upTo(t, testLayers, "skip"))
	}
	if upTo(t, 8, "shifts") == 0 {
		r.Shift = upTo(t, 2*testContext, "shift") - testContext
	}
	n := &modelNode{parent: parent, index: s.trunk, ran: map[int]bool{}, reached: r.To, block: r.Block > 0}
	if r.To == 0 {
		n.reached = testLayers
	}
	for l := range n.reached {
		if !r.Skip.Has(l) {
			n.ran[l] = true
		}
	}
	if parent != nil {
		n.index = parent.index + 1
	}
	ok := len(w.rows) < testMax && n.reached <= testLayers && n.index < testContext && n.index+r.Shift >= 0 &&
		(parent == nil || parent.reached >= n.reached) && w.live() < testSlots
	if last := w.lastOfBlock(s, r.Block); ok && last != nil {
		ok = last.node == parent && last.node.reached == n.reached && last.row.Skip == r.Skip
	}
	got, err := w.step.Add(r)
	if (err == nil) != ok {
		t.Fatalf("Add(%+v): %v; the model says %v", r, err, ok)
	}
	if ok {
		n.node = got
		s.nodes = append(s.nodes, n)
		w.rows = append(w.rows, &modelRow{seq: s, node: n, row: r})
	}
}

func (w *walk) lastOfBlock(s *modelSeq, block int) *modelRow {
	for _, r := range slices.Backward(w.rows) {
		if block > 0 && r.row.Seq == s.seq && r.row.Block == block { // a closed sequence's number may be taken again
			return r
		}
	}
	return nil
}

func (w *walk) live() (n int) {
	for _, s := range w.seqs {
		n += len(s.nodes)
	}
	return n
}

// resume adds a row that resumes a node, valid or not.
func (w *walk) resume(t *rapid.T) {
	s := w.pickSeq(t)
	short := slices.DeleteFunc(slices.Clone(s.nodes), func(n *modelNode) bool { return n.reached == testLayers || n.block && n.index%2 == 0 })
	if len(short) == 0 {
		return
	}
	n := short[0]
	if upTo(t, 2, "later") == 0 {
		n = short[upTo(t, len(short), "node")]
	}
	handle := n.node
	r := Row{Seq: s.seq, Resume: handle, From: n.reached, To: n.reached + upTo(t, testLayers-n.reached+1, "layers"), Block: 1}
	if upTo(t, 8, "wrong") == 0 {
		r.From--
	}
	if upTo(t, 4, "skips") == 0 {
		r.Skip = r.Skip.With(upTo(t, testLayers, "skip"))
	}
	ok := len(w.rows) < testMax && r.From == n.reached && r.From < r.To && !n.block && (n.parent == nil || n.parent.reached >= r.To)
	for _, o := range w.rows {
		ok = ok && o.node != n
	}
	got, err := w.step.Add(r)
	if (err == nil) != ok || ok && got != handle {
		t.Fatalf("Add(%+v): %#x, %v; the model says %v", r, got, err, ok)
	}
	if !ok {
		return
	}
	before := *n
	before.ran = map[int]bool{}
	for l := range n.ran {
		before.ran[l] = true
	}
	for l := r.From; l < r.To; l++ {
		if !r.Skip.Has(l) {
			n.ran[l] = true
		}
	}
	n.reached = r.To
	r.Block = 0
	w.rows = append(w.rows, &modelRow{seq: s, node: n, row: r, before: &before})
}

func (w *walk) reset(*rapid.T) {
	w.step.Reset()
	w.rows = nil
}

func (w *walk) abort(*rapid.T) {
	w.step.Abort()
	for _, r := range slices.Backward(w.rows) {
		switch {
		case r.before == nil:
			w.bury(r.seq, func(n *modelNode) bool { return n == r.node })
		default:
			r.node.ran, r.node.reached = r.before.ran, r.before.reached
		}
	}
	w.rows = nil
}

// commit may come before the step is run, but for the rows of the step itself.
func (w *walk) commit(t *rapid.T) {
	s := w.pickSeq(t)
	n, handle := pickNode(t, s)
	path, ok := n.path(), true
	if slices.ContainsFunc(w.rows, func(r *modelRow) bool { return slices.Contains(path, r.node) }) {
		w.reset(t)
	}
	for _, p := range path {
		ok = ok && p.complete()
	}
	if err := w.f.Commit(s.seq, handle); (err == nil) != ok {
		t.Fatalf("Commit: %v; the model says %v", err, ok)
	}
	if !ok || n == nil {
		return
	}
	s.trunk += len(path)
	w.bury(s, func(o *modelNode) bool { return o == n || !slices.Contains(o.path(), n) })
	for _, o := range s.nodes {
		if o.parent == n {
			o.parent = nil
		}
	}
}

func (w *walk) drop(t *rapid.T) {
	s := w.pickSeq(t)
	n, handle := pickNode(t, s)
	if err := w.f.Drop(s.seq, handle); err != nil {
		t.Fatal(err)
	}
	w.bury(s, func(o *modelNode) bool { return n == nil || slices.Contains(o.path(), n) })
}

func (w *walk) truncate(t *rapid.T) {
	s := w.pickSeq(t)
	n := upTo(t, s.trunk+3, "length") - 1
	ok := n >= 0 && n <= s.trunk
	if err := w.f.Truncate(s.seq, n); (err == nil) != ok {
		t.Fatalf("Truncate to %d of %d: %v", n, s.trunk, err)
	}
	if ok {
		s.trunk = n
		w.bury(s, func(*modelNode) bool { return true })
	}
}

func (w *walk) extend(t *rapid.T) {
	s := w.pickSeq(t)
	n := upTo(t, 62, "tokens") - 1
	if upTo(t, 4, "fills") == 0 {
		n = testContext - s.trunk + upTo(t, 2, "too many")
	}
	ok := n >= 0 && s.trunk+n <= testContext && len(s.nodes) == 0
	if err := w.f.Extend(s.seq, n); (err == nil) != ok {
		t.Fatalf("Extend %d by %d: %v", s.trunk, n, err)
	}
	if ok {
		s.trunk += n
	}
}

func (w *walk) closeSeq(t *rapid.T) {
	s := w.pickSeq(t)
	if err := w.f.CloseSeq(s.seq); err != nil {
		t.Fatal(err)
	}
	w.bury(s, func(*modelNode) bool { return true })
	w.seqs = slices.DeleteFunc(w.seqs, func(o *modelSeq) bool { return o == s })
}

// check compares the forest with the model, and the rules F1 to F4.
func (w *walk) check(t *rapid.T) {
	free := 0
	for _, word := range w.f.free {
		free += bits.OnesCount64(word)
	}
	if want := testSlots - w.live(); free != want {
		t.Fatalf("%d slots are free, want %d", free, want)
	}
	owner := map[int32]Node{}
	for _, s := range w.seqs {
		if got := w.f.Len(s.seq); got != s.trunk {
			t.Fatalf("the trunk of %d has %d tokens, want %d", s.seq, got, s.trunk)
		}
		if got := w.f.Live(s.seq); got != len(s.nodes) {
			t.Fatalf("sequence %d has %d live nodes, want %d", s.seq, got, len(s.nodes))
		}
		for _, n := range s.nodes {
			w.checkNode(t, s, n, owner)
		}
	}
	for _, d := range w.dead {
		w.checkDead(t, d.seq, d.node)
	}
	w.checkVisible(t)
}

func (w *walk) checkNode(t *rapid.T, s *modelSeq, n *modelNode, owner map[int32]Node) {
	index, err := w.f.Index(s.seq, n.node)
	if err != nil || index != n.index { // F2
		t.Fatalf("node %#x is at index %d, %v; want %d", n.node, index, err, n.index)
	}
	if n.parent == nil && n.index != s.trunk || n.parent != nil && !s.live(n.parent) { // F1
		t.Fatalf("the model lost the parent of node %#x", n.node)
	}
	path, err := w.f.Path(s.seq, n.node)
	if err != nil || len(path) != len(n.path()) {
		t.Fatalf("the path to node %#x has %d nodes, %v; want %d", n.node, len(path), err, len(n.path()))
	}
	for i, p := range n.path() {
		nd := &w.f.nodes[path[i]]
		if makeNode(path[i], nd.generation) != p.node || !nd.live || nd.seq != s.seq { // F1
			t.Fatalf("node %d of the path to %#x is not %#x", i, n.node, p.node)
		}
		if p.parent != nil && p.reached > p.parent.reached { // F3
			t.Fatalf("node %#x has reached %d layers under one with %d", p.node, p.reached, p.parent.reached)
		}
	}
	slot := path[len(path)-1]
	if other, taken := owner[slot]; taken { // F4
		t.Fatalf("slot %d belongs to %#x and %#x", slot, other, n.node)
	}
	owner[slot] = n.node
	for _, s2 := range w.seqs {
		if s2 != s {
			w.checkDead(t, s2.seq, n.node)
		}
	}
}

// checkDead expects every verb to refuse a handle that is not live in the sequence, and to change
// nothing; the sequence may be closed.
func (w *walk) checkDead(t *rapid.T, s Seq, n Node) {
	open := slices.ContainsFunc(w.seqs, func(o *modelSeq) bool { return o.seq == s })
	want := ErrNode
	if !open {
		want = ErrSeq
	}
	_, err := w.f.Index(s, n)
	_, err2 := w.f.Path(s, n)
	errs := []error{err, err2, w.f.Commit(s, n), w.f.Drop(s, n)}
	if len(w.rows) < testMax {
		_, err = w.step.Add(Row{Seq: s, Parent: n})
		_, err2 = w.step.Add(Row{Seq: s, Resume: n, From: 1})
		errs = append(errs, err, err2)
	}
	for i, err := range errs {
		if !errors.Is(err, want) {
			t.Fatalf("verb %d on dead node %#x of sequence %d: %v; want %v", i, n, s, err, want)
		}
	}
}

type seen struct{ Slot, Index int32 }

// checkVisible compares the nodes that each row sees in each layer with its ancestors and the later rows of its block.
func (w *walk) checkVisible(t *rapid.T) {
	if len(w.step.Rows()) != len(w.rows) {
		t.Fatalf("the step has %d rows, want %d", len(w.step.Rows()), len(w.rows))
	}
	whole := true
	for _, r := range w.rows {
		whole = whole && r.seq.live(r.node)
	}
	if err := w.step.Check(); (err == nil) != whole {
		t.Fatalf("Check: %v; the model says %v", err, whole)
	}
	if !whole {
		return
	}
	slotOf := func(n *modelNode) int32 { return int32(uint32(n.node)) - 1 }
	for i, r := range w.rows {
		p := &w.step.Rows()[i]
		if p.Node != r.node.node || p.Slot != slotOf(r.node) || int(p.Index) != r.node.index || int(p.Pos) != r.node.index+p.Shift {
			t.Fatalf("row %d is placed as %+v; its node is %+v", i, p, r.node)
		}
		all, plain := []seen(nil), false
		for l := range testLayers {
			var want, got []seen
			for _, a := range r.node.path() {
				if a.ran[l] {
					want = append(want, seen{slotOf(a), int32(a.index)})
				}
			}
			for _, o := range w.rows[i+1:] {
				if r.row.Block > 0 && !r.row.Causal.Has(l) && o.seq == r.seq && o.row.Block == r.row.Block && o.node.ran[l] {
					want = append(want, seen{slotOf(o.node), int32(o.node.index)})
				}
			}
			for _, run := range w.step.Visible(nil, i, l) {
				if run.N < 1 || run.Slot/SlotsPerPage != (run.Slot+run.N-1)/SlotsPerPage || run.Index/SlotsPerPage != (run.Index+run.N-1)/SlotsPerPage {
					t.Fatalf("run %+v leaves its page or block", run)
				}
				for k := range run.N {
					got = append(got, seen{run.Slot + k, run.Index + k})
				}
			}
			if !slices.Equal(want, got) {
				t.Fatalf("row %d sees in layer %d (-want +got):\n%s", i, l, cmp.Diff(want, got))
			}
			if !w.step.Plain() || !p.Run.Has(l) {
				continue
			}
			if plain && !slices.Equal(all, got) {
				t.Fatalf("row %d of a plain step sees in layer %d (-earlier layer +this):\n%s", i, l, cmp.Diff(all, got))
			}
			all, plain = got, true
		}
	}
}

// TestAgainstModel walks over all verbs at random.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := New(testLayers, testContext, testSlots)
		if err != nil {
			t.Fatal(err)
		}
		w := &walk{f: f, step: f.NewStep(testMax)}
		for _, n := range []int{58, 0} {
			w.newSeq(t)
			w.seqs[len(w.seqs)-1].trunk = n
			if err := f.Extend(w.seqs[len(w.seqs)-1].seq, n); err != nil {
				t.Fatal(err)
			}
		}
		actions := []func(*rapid.T){
			w.newSeq, w.closeSeq, w.abort, w.reset, w.reset, w.commit, w.commit, w.drop, w.drop, w.truncate, w.extend,
			w.resume, w.resume, w.resume, w.resume,
		}
		for range 60 {
			if a := upTo(t, 2*len(actions), "action"); a < len(actions) {
				actions[a](t)
			} else {
				for range upTo(t, 8, "rows") {
					w.grow(t)
				}
			}
			w.check(t)
		}
		for _, s := range slices.Clone(w.seqs) {
			if err := f.CloseSeq(s.seq); err != nil {
				t.Fatal(err)
			}
		}
		for _, word := range f.free {
			if word != ^uint64(0) {
				t.Fatal("slots are lost when all sequences are closed")
			}
		}
	})
}

func TestNewRefusals(t *testing.T) {
	for _, n := range []int{0, -1, 129} {
		want := fmt.Sprintf("forest: the model has %d layers; 1 to 128 are supported", n)
		if _, err := New(n, 10, 64); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	f, err := New(128, 10, 65)
	if err != nil || f.Slots() != 128 || f.Layers() != 128 || f.Context() != 10 {
		t.Errorf("%+v, %v", f, err)
	}
}

// refusal is a forest of 4 layers and 30 indices with sequence 0, whose trunk has 20 tokens, and the
// handles that the tests of refusals need.
type refusal struct {
	f    *Forest
	step *Step
	seq  Seq

	full, half, dead, block, skip, fed Node
	other                              Node // of sequence 1
	inStep                             Node // reached layer 2 in the step
	product                            Node // began in the step as a product of inStep, at layer 1
}

func newRefusal(t *testing.T) *refusal {
	t.Helper()
	f, err := New(4, 30, 64)
	if err != nil {
		t.Fatal(err)
	}
	r := &refusal{f: f, step: f.NewStep(8), seq: f.NewSeq()}
	if err := f.Extend(r.seq, 20); err != nil {
		t.Fatal(err)
	}
	other := f.NewSeq()
	add := func(row Row) Node {
		n, err := r.step.Add(row)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	r.full = add(Row{})
	r.half = add(Row{Parent: r.full, To: 2})
	r.dead = add(Row{})
	r.block = add(Row{Block: 1, To: 2})
	r.skip = add(Row{SkipAttention: LayerRange(1, 3), SkipFeedForward: LayerRange(2, 3)})
	r.fed = add(Row{SkipFeedForward: LayerRange(0, 1)})
	r.other = add(Row{Seq: other})
	r.step.Reset()
	if err := f.Drop(r.seq, r.dead); err != nil {
		t.Fatal(err)
	}
	r.inStep = add(Row{To: 2, Block: 7})
	r.product = add(Row{Of: r.inStep, Through: square(2), To: 2, Parent: r.inStep, Skip: LayerRange(0, 1)})
	return r
}

func TestAddRefusals(t *testing.T) {
	tests := []struct {
		name string
		row  func(r *refusal) Row
		is   error
		want string
	}{
		{"sequence that is not open", func(r *refusal) Row { return Row{Seq: 2} }, ErrSeq, "forest: sequence 2: sequence is not open"},
		{"negative sequence", func(r *refusal) Row { return Row{Seq: -1} }, ErrSeq, "forest: sequence -1: sequence is not open"},
		{"adapter", func(r *refusal) Row { return Row{Adapter: 3} }, nil, "forest: set of adapters 3 is not known; 0 (none) to 0 are"},
		{"layers past the last", func(r *refusal) Row { return Row{To: 5} }, nil, "forest: a row on layers 0 to 5; a range within 0 to 4 must not be empty"},
		{"negative end", func(r *refusal) Row { return Row{To: -1} }, nil, "forest: a row on layers 0 to -1; a range within 0 to 4 must not be empty"},
		{"negative layer", func(r *refusal) Row { return Row{From: -1} }, nil, "forest: a row on layers -1 to 4; a range within 0 to 4 must not be empty"},
		{"no layers", func(r *refusal) Row { return Row{From: 2, To: 2} }, nil, "forest: a row on layers 2 to 2; a range within 0 to 4 must not be empty"},
		{"new row from a later layer", func(r *refusal) Row { return Row{From: 1} }, nil, "forest: a new row starts at layer 0, not 1"},
		{"dead parent", func(r *refusal) Row { return Row{Parent: r.dead} }, ErrNode, "forest: node NODE of sequence 0: node is not live"},
		{"parent of another sequence", func(r *refusal) Row { return Row{Parent: r.other} }, ErrNode, "forest: node NODE of sequence 0: node is not live"},
		{"parent that never was", func(r *refusal) Row { return Row{Parent: 1 << 20} }, ErrNode, "forest: node NODE of sequence 0: node is not live"},
		{"parent with no slot", func(r *refusal) Row { return Row{Parent: 1 << 32} }, ErrNode, "forest: node NODE of sequence 0: node is not live"},
		{"parent that stopped early", func(r *refusal) Row { return Row{Parent: r.half, To: 3} }, nil,
			"forest: a row on layers 0 to 3, whose parent has reached 2; resume the parent first"},
		{"negative position", func(r *refusal) Row { return Row{Shift: -21} }, nil, "forest: position -1 of the row at index 20 is out of range"},
		{"position past 32 bits", func(r *refusal) Row { return Row{Shift: math.MaxInt32 - 19} }, nil,
			"forest: position 2147483648 of the row at index 20 is out of range"},
		{"negative block", func(r *refusal) Row { return Row{Block: -1} }, nil, "forest: block -1; it must be 0 (none) or more"},
		{"block beside its last row", func(r *refusal) Row { return Row{Block: 7, To: 2} }, nil, "forest: the rows of block 7 do not form a path"},
		{"block of other layers", func(r *refusal) Row { return Row{Block: 7, To: 1, Parent: r.inStep} }, nil,
			"forest: the rows of block 7 do not run the same layers"},
		{"block of other skips", func(r *refusal) Row { return Row{Block: 7, To: 2, Skip: LayerRange(0, 1), Parent: r.inStep} }, nil,
			"forest: the rows of block 7 do not run the same layers"},
		{"block of other parts", func(r *refusal) Row { return Row{Block: 7, To: 2, SkipFeedForward: LayerRange(0, 1), Parent: r.inStep} }, nil,
			"forest: the rows of block 7 do not run the same layers"},
		{"prior of a row of no block", func(r *refusal) Row { return Row{Prior: &Prior{}} }, nil,
			"forest: a row with a prior is resumed or of no block; a prior is for new rows of a block, whose keys no other row shares"},
		{"prior of a resumed row", func(r *refusal) Row { return Row{Prior: &Prior{}, Resume: r.half, From: 2, Block: 1} }, nil,
			"forest: a row with a prior is resumed or of no block; a prior is for new rows of a block, whose keys no other row shares"},
		{"resuming a dead node", func(r *refusal) Row { return Row{Resume: r.dead, From: 2} }, ErrNode, "forest: node NODE of sequence 0: node is not live"},
		{"resuming at another layer", func(r *refusal) Row { return Row{Resume: r.half, From: 1} }, nil,
			"forest: resuming a row at layer 1, but it has reached layer 2; the two must be equal"},
		{"resuming a finished node", func(r *refusal) Row { return Row{Resume: r.full, From: 3} }, nil,
			"forest: resuming a row at layer 3, but it has reached layer 4; the two must be equal"},
		{"resuming a row of a block", func(r *refusal) Row { return Row{Resume: r.block, From: 2} }, nil,
			"forest: a row of a block cannot be resumed, as the rows that it sees may be gone; run the block again"},
		{"product of a row of another step", func(r *refusal) Row { return Row{Of: r.full, Through: square(2)} }, ErrNode,
			"forest: a row begins as a product of node NODE, which is no row of the step: node is not live"},
		{"product of no row", func(r *refusal) Row { return Row{Through: square(2)} }, ErrNode, "forest: a row begins as a product of node NODE, which is no row of the step: node is not live"},
		{"product of a product", func(r *refusal) Row { return Row{Of: r.product, Through: square(2), To: 2, Parent: r.product} }, nil,
			"forest: a row begins as a product of the row at index 21, which is one itself"},
		{"product of a row that stops before", func(r *refusal) Row { return Row{Of: r.inStep, Through: square(2), Skip: LayerRange(0, 3)} }, nil,
			"forest: a row begins at layer 3 as a product of the row at index 20, which runs layers 0 to 1; it must run some, from one that the other reaches on"},
		{"product that runs no layer", func(r *refusal) Row { return Row{Of: r.inStep, Through: square(2), Skip: LayerRange(0, 4)} }, nil,
			"forest: a row begins at layer -1 as a product of the row at index 20, which runs layers 0 to 1; it must run some, from one that the other reaches on"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRefusal(t)
			live, free, rows := r.f.Live(r.seq), r.f.free[0], len(r.step.Rows())
			row := tt.row(r)
			_, err := r.step.Add(row)
			want := strings.ReplaceAll(tt.want, "NODE", fmt.Sprintf("%#x", uint64(row.Parent|row.Resume|row.Of)))
			if err == nil || err.Error() != want || tt.is != nil && !errors.Is(err, tt.is) {
				t.Fatalf("Add: %v; want %s", err, want)
			}
			if r.f.Live(r.seq) != live || r.f.free[0] != free || len(r.step.Rows()) != rows {
				t.Error("the refused row left a trace")
			}
		})
	}
}

// square is a matrix of so many inputs and outputs.
type square int

func (s square) In() int  { return int(s) }
func (s square) Out() int { return int(s) }

// TestProduct: a row that begins as a product of another knows that row's number, and no hash names its keys.
func TestProduct(t *testing.T) {
	r := newRefusal(t)
	if p := r.step.Rows()[1]; p.Node != r.product || p.Source != 0 || p.Run != LayerRange(1, 2) {
		t.Errorf("%+v", p)
	}
	r.step.Reset()
	if err := r.f.Drop(r.seq, r.inStep); err != nil {
		t.Fatal(err)
	}
	a, err := r.step.Add(Row{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := r.step.Add(Row{Of: a, Through: square(2), Parent: a, Skip: LayerRange(0, 3)})
	if err != nil {
		t.Fatal(err)
	}
	if r.step.Plain() {
		t.Error("a step with a row that begins at layer 3 serves all layers alike")
	}
	if _, named := r.f.SlotEntry(SlotOf(n)); named {
		t.Error("a hash names the keys of a product")
	}
	if first, none := (LayerRange(70, 80)).First(), (Layers{}).First(); first != 70 || none != -1 {
		t.Errorf("first layers %d and %d", first, none)
	}
}

// expect fails the test unless err has the text and, where it is given, the cause.
func expect(t *testing.T, err error, want string, is error) {
	t.Helper()
	if err == nil || err.Error() != want || is != nil && !errors.Is(err, is) {
		t.Errorf("%v; want %s", err, want)
	}
}

// TestMoreRefusals expects the refusals that need more than one row.
func TestMoreRefusals(t *testing.T) {
	r := newRefusal(t)
	step := r.f.NewStep(100)
	add := func(row Row) (Node, error) { return step.Add(row) }
	must := func(row Row) Node {
		t.Helper()
		n, err := add(row)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	stopped := must(Row{To: 1})
	child := must(Row{Parent: stopped, To: 1})
	_, err := add(Row{Resume: stopped, From: 1})
	expect(t, err, "forest: the row at index 20 runs in this step; resume it in a later one", nil)
	step.Reset()
	_, err = add(Row{Resume: child, From: 1, To: 3})
	expect(t, err, "forest: resuming a row to layer 3, whose parent has reached 1; resume the parent first", nil)
	must(Row{Resume: stopped, From: 1, To: 3})
	must(Row{Resume: child, From: 1, To: 3})
	_, err = add(Row{Resume: child, From: 3})
	expect(t, err, "forest: the row at index 21 runs in this step; resume it in a later one", nil)
	step.Reset()

	_, err = r.f.Committable(r.seq, child)
	expect(t, err, "forest: the row at index 20 has run layers 0 to 3 of 4: resume it before it is committed", nil)
	expect(t, r.f.Commit(r.seq, r.skip), "forest: the row at index 20 skipped 2 layers and cannot be committed", nil)
	expect(t, r.f.Commit(r.seq, r.fed), "forest: the row at index 20 skipped feed-forward parts of layers and cannot be committed", nil)
	expect(t, r.f.Truncate(r.seq, 21), "forest: truncating a trunk of 20 tokens to 21; 0 to 20 are possible", nil)
	expect(t, r.f.Truncate(r.seq, -1), "forest: truncating a trunk of 20 tokens to -1; 0 to 20 are possible", nil)
	expect(t, r.f.Extend(r.seq, 1), "forest: extending a trunk with 9 live rows; drop them first", nil)
	if err := r.f.Drop(r.seq, Trunk); err != nil {
		t.Fatal(err)
	}
	expect(t, r.f.Extend(r.seq, 11), "forest: extending a trunk of 20 tokens by 11: context is full of 30", ErrContext)
	for _, err := range []error{r.f.Truncate(9, 0), r.f.Extend(9, 0), r.f.CloseSeq(9), r.f.Drop(9, Trunk), r.f.Commit(9, Trunk)} {
		expect(t, err, "forest: sequence 9: sequence is not open", ErrSeq)
	}

	n := Trunk
	for range 10 {
		n = must(Row{Parent: n})
	}
	_, err = add(Row{Parent: n})
	expect(t, err, "forest: index 30: context is full of 30", ErrContext)
	for r.f.free[0] != 0 {
		must(Row{})
	}
	_, err = add(Row{})
	expect(t, err, "forest: 64 live rows: no scratch slot is free", ErrScratch)
	if err := r.f.Drop(r.seq, n); err != nil {
		t.Fatal(err)
	}
	expect(t, step.Check(), fmt.Sprintf("forest: node %#x of sequence 0: node is not live", uint64(n)), ErrNode)
	small := r.f.NewStep(0)
	_, err = small.Add(Row{})
	expect(t, err, "forest: a step of more than 0 rows: no scratch slot is free", ErrScratch)
}

// TestEntries tells inputs apart: two rows may share keys only where their entries are equal.
func TestEntries(t *testing.T) {
	rows := []Row{
		{}, {ID: 1}, {ID: -1}, {ID: 1, Shift: 1}, {ID: 1, Shift: -1}, {Shift: 1},
		{Vector: []float32{0}}, {Vector: []float32{0, 0}}, {Vector: []float32{0}, Shift: 1}, {Vector: []float32{float32(math.Copysign(0, -1))}},
		{Mix: []Weighted{{0, 0}}}, {Mix: []Weighted{{1, 0}}}, {Mix: []Weighted{{0, 1}}}, {Mix: []Weighted{{0, 1}, {1, 0}}},
		{Mix: []Weighted{{1, 0}, {0, 1}}},
	}
	seen := map[Entry]int{}
	for i := range rows {
		e := rows[i].entry()
		if j, ok := seen[e]; ok {
			t.Errorf("rows %d and %d are the same to the cache", i, j)
		}
		seen[e] = i
	}
	if IDEntry(7) != (&Row{ID: 7, Want: Want{Logits: true}, Block: 3}).entry() {
		t.Error("what a row gives back is part of its entry")
	}
}

// TestSteadyState expects adding, asking for what is visible, committing and dropping to allocate
// nothing once slices have grown.
func TestSteadyState(t *testing.T) {
	f, err := New(2, 1<<20, 128)
	if err != nil {
		t.Fatal(err)
	}
	s := f.NewSeq()
	step := f.NewStep(16)
	var runs []Run
	round := func() {
		n := Trunk
		for i := range 12 {
			m, err := step.Add(Row{Seq: s, Parent: n, Block: i / 8})
			if err != nil {
				t.Fatal(err)
			}
			if i%3 != 1 || i > 6 {
				n = m
			}
		}
		for i := range step.Rows() {
			for l := range 2 {
				runs = step.Visible(runs[:0], i, l)
			}
		}
		step.Reset()
		if err := errors.Join(f.Commit(s, n), f.Drop(s, Trunk)); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

// TestRunsOfPath expects a path behind a trunk to be one run a page: attention then reads it without
// gathering.
func TestRunsOfPath(t *testing.T) {
	f, err := New(1, 1000, 256)
	if err != nil {
		t.Fatal(err)
	}
	s := f.NewSeq()
	if err := f.Extend(s, 37); err != nil {
		t.Fatal(err)
	}
	step := f.NewStep(100)
	n := Trunk
	for range 100 {
		if n, err = step.Add(Row{Seq: s, Parent: n}); err != nil {
			t.Fatal(err)
		}
	}
	want := []Run{{Slot: 37, Index: 37, N: 27}, {Slot: 64, Index: 64, N: 64}, {Slot: 128, Index: 128, N: 9}}
	if d := cmp.Diff(want, step.Visible(nil, 99, 0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestParts: a row runs the other part of a layer of which it skips one, and a layer of which it skips both is one that it skips. It has no keys where
// it skips attention.
func TestParts(t *testing.T) {
	f, err := New(4, 8, 64)
	if err != nil {
		t.Fatal(err)
	}
	step := f.NewStep(4)
	n, err := step.Add(Row{Seq: f.NewSeq(), SkipAttention: LayerRange(0, 2), SkipFeedForward: LayerRange(1, 3), To: 3})
	if err != nil {
		t.Fatal(err)
	}
	var attention, feed, keys []int
	check := func() {
		t.Helper()
		for l := range 4 {
			r := &step.Rows()[0]
			if r.Runs(l, false) {
				attention = append(attention, l)
			}
			if r.Runs(l, true) {
				feed = append(feed, l)
			}
			if len(step.Visible(nil, 0, l)) > 0 {
				keys = append(keys, l)
			}
		}
	}
	check()
	if run := step.Rows()[0].Run; run != LayerRange(0, 3).Minus(LayerRange(1, 2)) || step.Plain() {
		t.Errorf("the layers %v are run; plain: %v", run, step.Plain())
	}
	step.Reset()
	if _, err := step.Add(Row{Resume: n, From: 3, SkipFeedForward: LayerRange(3, 4)}); err != nil {
		t.Fatal(err)
	}
	check()
	step.Reset()
	n, err = step.Add(Row{To: 3})
	if err == nil {
		step.Reset()
		_, err = step.Add(Row{Resume: n, From: 3, SkipFeedForward: LayerRange(3, 4)})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(0, n); err == nil || !strings.Contains(err.Error(), "skipped feed-forward parts") {
		t.Errorf("committing a row that skipped a part when it was resumed: %v", err)
	}
	for name, got := range map[string][2][]int{"attention": {attention, {2, 3}}, "feed-forward": {feed, {0}}, "keys": {keys, {2, 2, 3}}} {
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%s of layers %v, want %v", name, got[0], got[1])
		}
	}
}

// TestResume resumes a node whose parent was committed meanwhile, and one past a skipped layer.
func TestResume(t *testing.T) {
	f, err := New(4, 30, 64)
	if err != nil {
		t.Fatal(err)
	}
	s := f.NewSeq()
	step := f.NewStep(8)
	add := func(r Row) Node {
		t.Helper()
		n, err := step.Add(r)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	parent := add(Row{})
	child := add(Row{Parent: parent, To: 2})
	step.Reset()
	add(Row{Resume: child, From: 2})
	if err := f.Commit(s, parent); err != nil {
		t.Fatal(err)
	}
	step.Abort()
	if path, err := f.Path(s, child); err != nil || len(path) != 1 {
		t.Errorf("the path behind the committed parent is %v, %v", path, err)
	}
	if _, err := f.Committable(s, child); err == nil {
		t.Error("an aborted resume is complete")
	}
	add(Row{Resume: child, From: 2, Skip: LayerRange(2, 3)})
	step.Reset()
	add(Row{Parent: child})
	if step.Plain() {
		t.Error("a step below a skipped layer is plain")
	}
	for l, want := range []int{2, 2, 1, 2} {
		n := 0
		for _, r := range step.Visible(nil, 0, l) {
			n += int(r.N)
		}
		if n != want {
			t.Errorf("layer %d: %d nodes are visible, want %d", l, n, want)
		}
	}
}
