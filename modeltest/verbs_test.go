package modeltest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"grove/forest"
	"grove/kv"
	"grove/token"
)

// naive is what a sequence must be: its tokens, and the live nodes with their paths.
type naive struct {
	seq   forest.Seq
	trunk []token.ID
	nodes []naiveNode
}

type naiveNode struct {
	node forest.Node
	path []token.ID // from the trunk's end
}

// checkVerbs grows, commits, drops, truncates, forks and closes at random, and compares now and then
// what a row behind the trunk gives with plain decoding of the tokens that should be there.
func checkVerbs(r *Runner, rng *rand.Rand, _ []token.ID, _ []Bits) error {
	h := &history{r: r, rng: rng, vocab: r.Model.Info().Vocabulary}
	for range 40 {
		if err := h.move(); err != nil {
			return fmt.Errorf("after %v: %w", h.log, err)
		}
	}
	for len(h.seqs) > 0 {
		if err := h.probe(0); err != nil {
			return fmt.Errorf("after %v: %w", h.log, err)
		}
		r.Close(h.seqs[0].seq)
		h.seqs = h.seqs[1:]
	}
	return nil
}

// history is a random walk over the verbs.
type history struct {
	r     *Runner
	rng   *rand.Rand
	vocab int
	seqs  []*naive
	log   []string
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *history) move() error {
	if len(h.seqs) == 0 {
		h.seqs = append(h.seqs, &naive{seq: h.r.Cache.NewSeq("verbs")})
	}
	i := h.rng.IntN(len(h.seqs))
	n := h.seqs[i]
	switch k := h.rng.IntN(10); {
	case k < 3:
		h.grow(n, 1+h.rng.IntN(12))
	case k == 3:
		h.grow(n, 40)
	case k < 6:
		return h.commit(n)
	case k == 6:
		h.drop(n)
	case k == 7:
		return h.truncate(n)
	case k == 8:
		return h.fork(i, n)
	default:
		return h.probe(i)
	}
	return nil
}

// grow hangs a random tree from a random place.
func (h *history) grow(n *naive, size int) {
	if len(n.trunk) > 200 || len(n.nodes) > 30 {
		return
	}
	at := naiveNode{node: forest.Trunk}
	if len(n.nodes) > 0 && h.rng.IntN(2) == 0 {
		at = n.nodes[h.rng.IntN(len(n.nodes))]
	}
	h.note("grow %d of seq %d", size, n.seq)
	t := randomTree(h.rng, size, h.vocab)
	if h.rng.IntN(2) == 0 {
		t = Chain(t.IDs)
	}
	nodes := make([]forest.Node, size)
	for i, id := range t.IDs {
		parent := at.node
		if t.Parent[i] >= 0 {
			parent = nodes[t.Parent[i]]
		}
		nodes[i] = h.r.Add(forest.Row{Seq: n.seq, Parent: parent, ID: id})
		n.nodes = append(n.nodes, naiveNode{nodes[i], append(append([]token.ID(nil), at.path...), t.Path(i)...)})
	}
	h.r.Forward()
}

func (h *history) pick(n *naive) (naiveNode, bool) {
	if len(n.nodes) == 0 {
		return naiveNode{}, false
	}
	return n.nodes[h.rng.IntN(len(n.nodes))], true
}

func (h *history) commit(n *naive) error {
	c, ok := h.pick(n)
	if !ok {
		return nil
	}
	h.note("commit %d to seq %d", len(c.path), n.seq)
	h.r.Commit(n.seq, c.node)
	n.trunk = append(n.trunk, c.path...)
	var left []naiveNode
	for _, o := range n.nodes {
		if len(o.path) > len(c.path) && h.descends(n, o, c) {
			left = append(left, naiveNode{o.node, o.path[len(c.path):]})
		} else if _, err := h.r.Cache.Forest.Index(n.seq, o.node); !errors.Is(err, forest.ErrNode) {
			return fmt.Errorf("a node off the committed path lives on: %v", err)
		}
	}
	n.nodes = left
	return nil
}

// descends tells by index whether o is below c: equal tokens may stand on different branches, so the
// forest is asked whether o still lives and the naive model whether it may.
func (h *history) descends(n *naive, o, c naiveNode) bool {
	for i, id := range c.path {
		if o.path[i] != id {
			return false
		}
	}
	_, err := h.r.Cache.Forest.Index(n.seq, o.node)
	return err == nil
}

func (h *history) drop(n *naive) {
	d, ok := h.pick(n)
	if !ok {
		return
	}
	h.note("drop in seq %d", n.seq)
	h.r.Drop(n.seq, d.node)
	var left []naiveNode
	for _, o := range n.nodes {
		if _, err := h.r.Cache.Forest.Index(n.seq, o.node); err == nil {
			left = append(left, o)
		}
	}
	n.nodes = left
}

func (h *history) truncate(n *naive) error {
	if len(n.trunk) == 0 {
		return nil
	}
	to := h.rng.IntN(len(n.trunk) + 1)
	h.note("truncate seq %d from %d to %d", n.seq, len(n.trunk), to)
	err := h.r.Cache.Truncate(n.seq, to)
	if errors.Is(err, kv.ErrPassed) {
		if got := h.r.Cache.Forest.Len(n.seq); got != len(n.trunk) {
			return fmt.Errorf("a refused truncation left %d of %d tokens", got, len(n.trunk))
		}
		h.note("refused")
		return nil
	}
	n.trunk, n.nodes = n.trunk[:to], nil
	return err
}

func (h *history) fork(i int, n *naive) error {
	if len(h.seqs) == 4 {
		h.note("close seq %d", n.seq)
		h.r.Close(n.seq)
		h.seqs = append(h.seqs[:i], h.seqs[i+1:]...)
		return nil
	}
	at, ok := h.pick(n)
	if !ok {
		at = naiveNode{node: forest.Trunk}
	}
	h.note("fork seq %d at %d+%d", n.seq, len(n.trunk), len(at.path))
	s, err := h.r.Cache.Fork(n.seq, at.node)
	if err != nil {
		return err
	}
	h.seqs = append(h.seqs, &naive{seq: s, trunk: append(append([]token.ID(nil), n.trunk...), at.path...)})
	return nil
}

// probe runs one row behind the trunk, and one behind a live node, and compares them with plain decoding.
func (h *history) probe(i int) error {
	n := h.seqs[i]
	if got := h.r.Cache.Forest.Len(n.seq); got != len(n.trunk) {
		return fmt.Errorf("seq %d has %d tokens; want %d", n.seq, got, len(n.trunk))
	}
	if len(h.seqs) == 4 { // the reference needs a sequence too
		return nil
	}
	at, ok := h.pick(n)
	if !ok {
		at = naiveNode{node: forest.Trunk}
	}
	id := token.ID(h.rng.IntN(h.vocab))
	node := h.r.Add(forest.Row{Seq: n.seq, Parent: at.node, ID: id, Want: logits})
	h.r.Forward()
	got := h.r.bits(0)
	h.r.Drop(n.seq, node)
	text := append(append(append([]token.ID(nil), n.trunk...), at.path...), id)
	want := h.r.Reference(text)
	return got.Diff(want[len(want)-1])
}
