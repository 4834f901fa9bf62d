package constrain

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"grove/internal/sample"
	"grove/internal/text/token"
)

// ErrConstraint is in every error of a text that cannot go on under its constraint: no token of the vocabulary is legal, or the
// grammar takes more work than its limits allow.
var ErrConstraint = errors.New("the text cannot go on under the constraint")

// Stage holds one text to a [Constraint]. It is a [sample.Legal], a [sample.Preparer], a [sample.Failing], a [sample.Expecting], a
// [sample.Ender], a [sample.Keeper] and a [sample.Forker].
type Stage struct {
	c      *Constraint
	head   []byte // that the text must begin with; see [Constraint.Stages]
	nodes  []node
	forced []token.ID
	kept   int // tokens
}

// node is the text behind one state.
type node struct {
	cursor
	mask mask  // legal tokens, where known; nil: all
	err  error // why there are none
	done bool  // mask and err are known
}

var (
	_ sample.Legal     = (*Stage)(nil)
	_ sample.Preparer  = (*Stage)(nil)
	_ sample.Failing   = (*Stage)(nil)
	_ sample.Expecting = (*Stage)(nil)
	_ sample.Ender     = (*Stage)(nil)
	_ sample.Keeper    = (*Stage)(nil)
	_ sample.Forker    = (*Stage)(nil)
)

// String returns the name of the stage.
func (g *Stage) String() string { return "constraint" }

// Start implements [sample.Stage].
func (g *Stage) Start(prompt []token.ID) sample.StageState {
	prev, inside := token.None, false
	if len(prompt) > 0 {
		prev = prompt[len(prompt)-1]
	}
	switch {
	case g.c.thoughts != nil:
		inside = g.c.v.thinking.Count(prompt).Inside()
	case g.c.channels:
		n := max(0, len(prompt)-len(g.c.v.final))
		inside = slices.Equal(prompt[n:], g.c.v.final)
	}
	g.nodes = append(g.nodes[:0], node{cursor: g.c.begin(prev, inside, g.head)})
	return 0
}

// Next implements [sample.Stage].
func (g *Stage) Next(s sample.StageState, id token.ID) sample.StageState {
	from := &g.nodes[s]
	to, err := g.c.advance(from.cursor, id, g.head)
	n := node{cursor: to}
	if err != nil {
		n.done, n.err = true, fmt.Errorf("constrain: token %d behind byte %d: %w: %w", id, from.n, ErrConstraint, err)
	}
	g.nodes = append(g.nodes, n)
	return sample.StageState(len(g.nodes) - 1)
}

// Keep implements [sample.Keeper].
func (g *Stage) Keep(s sample.StageState) sample.StageState {
	g.nodes[0] = g.nodes[s]
	g.nodes = g.nodes[:1]
	if g.kept++; g.kept%trimEvery == 0 || g.nodes[0].mode == over {
		g.c.grown()
	}
	return 0
}

// Fork implements [sample.Forker].
func (g *Stage) Fork(s sample.StageState) (sample.Stage, sample.StageState) {
	return &Stage{c: g.c, head: g.head, nodes: []node{g.nodes[s]}}, 0
}

// Prepare implements [sample.Preparer].
func (g *Stage) Prepare(s sample.StageState) { g.node(s) }

// node returns the node of a state, with its mask.
func (g *Stage) node(s sample.StageState) *node {
	n := &g.nodes[s]
	if !n.done {
		n.mask, n.err = g.c.mask(n.cursor, g.head)
		if n.err == nil && n.mask != nil && n.mask.empty() {
			n.err = g.c.stuck(n.cursor)
		} else if n.err != nil {
			n.err = fmt.Errorf("constrain: behind byte %d: %w: %w", n.n, ErrConstraint, n.err)
		}
		n.done = true
	}
	return n
}

// Expected implements [sample.Expecting].
func (g *Stage) Expected(s sample.StageState) string {
	switch n := &g.nodes[s]; n.mode {
	case active, gap, opening:
		if g.c.rec != nil {
			return fmt.Sprintf("byte %d: expected %s", n.n, g.c.rec.expected(n.at))
		}
	}
	return ""
}

// Err implements [sample.Failing].
func (g *Stage) Err(s sample.StageState) error { return g.node(s).err }

// Ended implements [sample.Ender].
func (g *Stage) Ended(s sample.StageState) bool {
	n := &g.nodes[s]
	return n.err == nil && (n.mode == over || n.mode == active && !g.c.repeats && g.c.complete(n.at))
}

// forbidden is the logits of a word of a mask without a token.
var forbidden = func() (all [64]float32) {
	for i := range all {
		all[i] = float32(math.Inf(-1))
	}
	return all
}()

// Apply implements [sample.Stage].
func (g *Stage) Apply(s sample.StageState, logits []float32) {
	n := g.node(s)
	if n.err == nil && n.mask == nil {
		return
	}
	for from := 0; from < len(logits); from += 64 {
		of, word := logits[from:min(from+64, len(logits))], uint64(0)
		if i := from >> 6; n.err == nil && i < len(n.mask) {
			word = n.mask[i]
		}
		switch word {
		case ^uint64(0):
		case 0:
			copy(of, forbidden[:])
		default:
			for word = ^word; word != 0; word &= word - 1 {
				if i := bits.TrailingZeros64(word); i < len(of) {
					of[i] = float32(math.Inf(-1))
				}
			}
		}
	}
}

// Allows implements [sample.Legal].
func (g *Stage) Allows(s sample.StageState, id token.ID) bool {
	n := &g.nodes[s]
	switch {
	case !g.c.v.valid(id):
		return false
	case n.done:
		return n.err == nil && (n.mask == nil || n.mask.has(id))
	}
	ok, err := g.c.allows(n.cursor, id, g.head)
	return ok && err == nil
}

// Forced implements [sample.Legal].
func (g *Stage) Forced(s sample.StageState) []token.ID {
	g.forced = g.c.force(g.forced[:0], &g.nodes[s].cursor)
	return g.forced
}
