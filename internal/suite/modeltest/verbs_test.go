package modeltest

import (
	"errors"
	"math/rand/v2"
	"testing"

	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"

	"pgregory.net/rapid"
)

// naive is the expected state of a sequence: its tokens, and the live nodes with their paths.
type naive struct {
	seq   forest.Seq
	trunk []token.ID
	nodes []naiveNode
}

type naiveNode struct {
	node forest.Node
	path []token.ID // from the trunk's end
}

// TestVerbs grows, commits, drops, truncates, forks and closes at random. Now and then it compares a row behind the
// trunk or a node with plain decoding of the expected tokens.
func TestVerbs(t *testing.T) {
	for _, s := range []subject{
		{Spec{}, tensor.F16, false},
		{Spec{Arch: "gemma3", Type: tensor.Q8_0, Layers: 6, Window: 70}, tensor.Q8_0, false},
	} {
		t.Run(s.String(), func(t *testing.T) {
			file := s.spec.File(t)
			rapid.Check(t, func(rt *rapid.T) {
				h := &history{r: New(t, file, Config{CacheType: s.cache}), rt: rt, vocab: 48}
				for range 40 {
					h.move()
				}
				for i := range h.seqs {
					h.probe(i)
				}
			})
		})
	}
}

// history is a random walk over the verbs.
type history struct {
	r     *Runner
	rt    *rapid.T
	vocab int
	seqs  []*naive
}

// intN draws from 0 to n-1.
func (h *history) intN(label string, n int) int { return rapid.IntRange(0, n-1).Draw(h.rt, label) }

func (h *history) check(err error) {
	if err != nil {
		h.rt.Fatal(err)
	}
}

func (h *history) move() {
	if len(h.seqs) == 0 {
		h.seqs = append(h.seqs, &naive{seq: h.r.NewSeq("verbs")})
	}
	i := h.intN("sequence", len(h.seqs))
	n := h.seqs[i]
	switch rapid.SampledFrom(verbs).Draw(h.rt, "verb") {
	case "grow":
		h.grow(n, 1+h.intN("size", 12))
	case "grow much":
		h.grow(n, 40)
	case "commit":
		h.commit(n)
	case "drop":
		h.drop(n)
	case "truncate":
		h.truncate(n)
	case "fork":
		h.fork(i, n)
	case "probe":
		h.probe(i)
	}
}

// verbs are the verbs of move; those that lengthen texts are listed twice.
var verbs = []string{"grow", "grow much", "grow much", "commit", "commit", "commit", "drop", "truncate", "fork", "probe"}

// grow adds a random tree behind the trunk or a random node.
func (h *history) grow(n *naive, size int) {
	if len(n.trunk) > 200 || len(n.nodes) > 30 {
		return
	}
	at := naiveNode{node: forest.Trunk}
	if len(n.nodes) > 0 && h.intN("coin", 2) == 0 {
		at = n.nodes[h.intN("node", len(n.nodes))]
	}
	t := randomTree(rand.New(rand.NewPCG(uint64(h.intN("seed", 1000)), 1)), size, h.vocab)
	if h.intN("coin", 2) == 0 {
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
	return rapid.SampledFrom(n.nodes).Draw(h.rt, "node"), true
}

func (h *history) commit(n *naive) {
	c, ok := h.pick(n)
	if !ok {
		return
	}
	if h.intN("coin", 2) == 0 {
		c = n.nodes[len(n.nodes)-1] // mostly deep: trunks of several pages come about
	}
	h.r.Commit(n.seq, c.node)
	n.trunk = append(n.trunk, c.path...)
	var left []naiveNode
	for _, o := range n.nodes {
		if len(o.path) > len(c.path) && h.descends(n, o, c) {
			left = append(left, naiveNode{o.node, o.path[len(c.path):]})
		} else if _, err := h.r.Cache.Forest.Index(n.seq, o.node); !errors.Is(err, forest.ErrNode) {
			h.rt.Fatalf("a node off the committed path lives on: %v", err)
		}
	}
	n.nodes = left
}

// descends reports whether o descends from c. Equal tokens may be on different branches, so it asks the forest
// whether o lives, and the paths whether it may.
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
	h.r.Drop(n.seq, d.node)
	var left []naiveNode
	for _, o := range n.nodes {
		if _, err := h.r.Cache.Forest.Index(n.seq, o.node); err == nil {
			left = append(left, o)
		}
	}
	n.nodes = left
}

func (h *history) truncate(n *naive) {
	if len(n.trunk) == 0 {
		return
	}
	to := h.intN("length", len(n.trunk)+1)
	err := h.r.Cache.Truncate(n.seq, to)
	if errors.Is(err, kv.ErrEvicted) {
		if got := h.r.Cache.Forest.Len(n.seq); got != len(n.trunk) {
			h.rt.Fatalf("a refused truncation left %d of %d tokens", got, len(n.trunk))
		}
		return
	}
	h.check(err)
	n.trunk, n.nodes = n.trunk[:to], nil
}

func (h *history) fork(i int, n *naive) {
	if len(h.seqs) == 4 {
		h.r.Close(n.seq)
		h.seqs = append(h.seqs[:i], h.seqs[i+1:]...)
		return
	}
	at, ok := h.pick(n)
	if !ok {
		at = naiveNode{node: forest.Trunk}
	}
	s, err := h.r.Cache.Fork(n.seq, at.node)
	h.check(err)
	h.seqs = append(h.seqs, &naive{seq: s, trunk: append(append([]token.ID(nil), n.trunk...), at.path...)})
}

// probe runs one row behind the trunk, and one behind a live node, and compares them with plain decoding.
func (h *history) probe(i int) {
	n := h.seqs[i]
	if got := h.r.Cache.Forest.Len(n.seq); got != len(n.trunk) {
		h.rt.Fatalf("seq %d has %d tokens; want %d", n.seq, got, len(n.trunk))
	}
	if len(h.seqs) == 4 { // the reference needs a sequence too
		return
	}
	at, ok := h.pick(n)
	if !ok {
		at = naiveNode{node: forest.Trunk}
	}
	id := token.ID(h.intN("id", h.vocab))
	node := h.r.Add(forest.Row{Seq: n.seq, Parent: at.node, ID: id, Want: logits})
	h.r.Forward()
	got := h.r.bits(0)
	h.r.Drop(n.seq, node)
	text := append(append(append([]token.ID(nil), n.trunk...), at.path...), id)
	want := h.r.Reference(text)
	h.check(got.Diff(want[len(want)-1]))
}
