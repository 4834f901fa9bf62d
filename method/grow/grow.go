// Package grow turns logits into trees of drafts, for every method that drafts token by token. A [LogitSource] gives the
// logits behind the text and behind drafts, a [Shape] says how the tree grows, and a [Grower] adds the drafts.
package grow

import (
	"cmp"
	"context"
	"slices"
	"time"

	"grove/internal/compute"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// LogitSource gives the logits behind the end of a text and behind drafts. It is for one goroutine.
type LogitSource interface {
	// Root gets the logits behind the text's last token. It returns false where there are none to draft from.
	Root(ctx context.Context) (ok bool, err error)
	// Expand gets the logits behind drafts, which are places in the tree. The parent of each is the root or was
	// expanded before.
	Expand(ctx context.Context, t *method.Tree, drafts []int) error
	// Logits returns the logits behind the i-th draft of the last Expand or, for 0 after Root, behind the text. They
	// are valid until the next call of a method.
	Logits(i int) []float32
	// State returns the final state that Logits(i) are of, valid as long; nil: the source was not told to give states.
	State(i int) []float32
	// Room returns how many drafts the next Expand may take, and the greatest depth of a draft that can be expanded.
	Room() (drafts, depth int)
}

// Shape says how a tree grows behind the text, level by level.
type Shape struct {
	Draw   Draw
	Growth Growth
	Ranks  []int // drafts behind a node, by its depth; the last number counts below, too; at most [MaxRanks]
	Beam   int   // drafts that a pass expands, the ones of the best scores
	Depth  int   // levels at most; 0: [Depth]

	// Of the growth Slots: the drafts of a tree at most, what its places are worth, and whether the tree grows level by level, by all
	// places that are worth more than 1/Drafts, in place of best first.
	Drafts int
	Value  Value
	Levels bool

	// Width, if it is not nil, returns how many of the drafts behind a node are made, by the largest of their
	// probabilities. greedy says that the text is decoded greedily.
	Width func(p float32, greedy bool) int
	// Spine expands only the first draft behind a node, and only where its probability is at least Least.
	Spine bool
	Least float32

	// Stop makes the rule by which chains end, of shapes with one draft behind a node: passes go on until it ends them, whether they
	// pay or not. nil: they go on while they pay. State says that the rule reads the draft model's states.
	Stop  func() Stop
	State bool
}

// Draw says which tokens are drafted behind a node.
type Draw int

// The draws.
const (
	Likeliest          Draw = iota // those that the target is likeliest to draw, if its logits are these
	WithoutReplacement             // draws without replacement, for [verify.Block] and [verify.Reject]
	WithReplacement                // draws with replacement: Ranks[0] chains, of which equal beginnings are one path, for [verify.KSEQ]
)

// Growth says which drafts of a level are made.
type Growth int

// The growths.
const (
	BestFirst Growth = iota // as many behind each node as its depth has, and further levels while they pay
	Fixed                   // the same, and as many levels as Ranks has numbers, whether they pay or not
	Beams                   // the best of all nodes of a level together, Beam of them, by stochastic beam search; WithoutReplacement only
	Slots                   // the best places of the tree, Drafts at most, by Value; WithoutReplacement only
)

// Value says how much a place of the tree is worth, before its draft is drawn.
type Value int

// The values.
const (
	ByShare       Value = iota // that a draft there is accepted, by the shares of those that were: of its rank, of the ranks and probabilities on its path
	ByProbability              // that the rule gets there, if draws are accepted with their probabilities (DySpec, 2024)
	ByRank                     // that a draft there is accepted, by the shares of the ranks on its path (Sequoia, 2024)
)

// Bounds of shapes.
const (
	MaxRanks = 10 // drafts behind a node
	Depth    = 16 // levels, where a shape gives none
)

// Grower adds drafts to trees by a shape. It is for one goroutine; in steady use it does not allocate.
type Grower struct {
	shape      Shape
	source     LogitSource
	vocabulary int
	sampler    *sample.Chain
	index      int // length of the text
	passes     Passes
	chain      chain

	next  []int // drafts that are not expanded
	level []int // those that a pass expands
	best  [MaxRanks]sample.Candidate

	dense   []float32
	pairs   verify.Distribution   // the room of dists
	dists   []verify.Distribution // of the root, and of nodes by place
	values  []value               // the same
	drawn   []token.ID
	scores  []float64
	entries []entry           // of a level of stochastic beam search
	slots   []slot            // that may be filled, of rising values
	draws   []draws           // of the root, and of nodes by place
	shares  [MaxRanks]float32 // of draws that are accepted, by rank: the average over those that were made
}

// New makes a grower of trees over a vocabulary, which is that of the source's logits.
func New(s Shape, from LogitSource, vocabulary int) *Grower {
	if s.Depth == 0 {
		s.Depth = Depth
	}
	g := &Grower{shape: s, source: from, vocabulary: vocabulary}
	if s.Stop != nil {
		g.chain.stop = s.Stop()
	}
	return g
}

// Begin starts a text, whose random numbers are n. It returns an error of n's sampling parameters.
func (g *Grower) Begin(n method.Noise) (err error) {
	g.chain.begin()
	for k := range g.shares {
		_, g.shares[k] = rankClass(k)
	}
	g.sampler, err = sample.NewChain(sample.Settings{Params: n.Sampling, SampleIndex: n.SampleIndex}, g.vocabulary)
	return err
}

// Committed tells which tokens were added to the text, for the rule by which chains end.
func (g *Grower) Committed(ids []token.ID) { g.chain.followed(ids) }

// Grow adds drafts behind a text of length tokens.
func (g *Grower) Grow(ctx context.Context, t *method.Tree, length int) error {
	g.chain.followed(nil)
	g.next, g.values, g.index = g.next[:0], append(g.values[:0], value{}), length
	g.slots = g.slots[:0]
	for i := range g.draws {
		g.draws[i].ran = false
	}
	ok, err := g.source.Root(ctx)
	if !ok || err != nil {
		return err
	}
	if err := g.behind(t, method.Root, g.source.Logits(0)); err != nil {
		return err
	}
	g.settle(t, false)
	for pass := 1; g.goesOn(t, pass); pass++ {
		if err := g.expand(ctx, t); err != nil {
			return err
		}
		g.settle(t, false)
	}
	g.settle(t, true)
	return nil
}

// First returns the token that is drafted first behind a text of length tokens where the logits there are these.
func (g *Grower) First(logits []float32, length int) (token.ID, error) {
	best, err := g.sampler.Candidates(g.best[:1], logits, length)
	if err != nil {
		return token.None, err
	}
	return best[0].ID, nil
}

// goesOn picks the drafts to expand, the ones of the best scores, and reports whether there is another pass: the
// source has room, and the pass pays.
func (g *Grower) goesOn(t *method.Tree, pass int) bool {
	room, _ := g.source.Room()
	room = min(room, g.shape.Beam)
	if pass >= max(g.shape.Depth, g.shape.Drafts) || room < 1 {
		return false
	}
	if g.shape.Growth != Slots { // these come best first
		slices.SortFunc(g.next, func(a, b int) int { return cmp.Or(cmp.Compare(t.Score(b), t.Score(a)), a-b) })
	}
	n := min(room, len(g.next))
	g.level, g.next = append(g.level[:0], g.next[:n]...), append(g.next[:0], g.next[n:]...)
	switch {
	case g.chain.stop != nil:
		return n > 0 && !g.chain.ended
	case g.shape.Growth == Fixed:
		return n > 0 && pass < len(g.shape.Ranks)
	}
	expected := 0.0
	for _, at := range g.level {
		expected += float64(t.Score(at))
	}
	return n > 0 && g.passes.Pays(t, expected)
}

// expand runs a pass over the level and adds drafts behind it.
func (g *Grower) expand(ctx context.Context, t *method.Tree) error {
	start := time.Now()
	if err := g.source.Expand(ctx, t, g.level); err != nil {
		return err
	}
	for i, at := range g.level {
		if err := g.behind(t, at, g.source.Logits(i)); err != nil {
			return err
		}
	}
	g.passes.Observe(time.Since(start))
	return nil
}

// behind adds drafts behind a node, by the logits there.
func (g *Grower) behind(t *method.Tree, node int, logits []float32) error {
	switch g.shape.Draw {
	case WithoutReplacement:
		return g.distinct(t, node, logits)
	case WithReplacement:
		return g.independent(t, node, logits)
	}
	return g.likeliest(t, node, logits)
}

// likeliest adds the tokens that are likeliest to be drawn.
func (g *Grower) likeliest(t *method.Tree, node int, logits []float32) error {
	depth := t.DepthOf(node)
	best, err := g.sampler.Candidates(g.best[:g.ranks(depth)], logits, g.index+depth)
	if err != nil {
		return err
	}
	for rank, c := range best[:g.width(best)] {
		if logits[c.ID] == compute.Masked {
			continue // the source has no logit of it
		}
		at := t.Add(node, c.ID, Class(rank, c.P), Belief(rank, c.P))
		if at == method.Root {
			continue // a less likely one may be of a class that does better
		}
		g.chain.tell(c.ID, c.P, g.source)
		if !g.shape.Spine || rank == 0 && c.P >= g.shape.Least {
			g.leave(t, at)
		}
	}
	return nil
}

// ranks returns how many drafts are made behind a node of a depth.
func (g *Grower) ranks(depth int) int { return g.shape.Ranks[min(depth, len(g.shape.Ranks)-1)] }

// width returns how many of the drafts behind a node are made.
func (g *Grower) width(best []sample.Candidate) int {
	if g.shape.Width == nil {
		return len(best)
	}
	p := float32(0)
	for _, c := range best {
		p = max(p, c.P)
	}
	return min(len(best), g.shape.Width(p, g.sampler.Params().Greedy()))
}

// leave notes a draft as one that may be expanded, unless no draft may follow it.
func (g *Grower) leave(t *method.Tree, at int) {
	if g.reaches(t, at) {
		g.next = append(g.next, at)
	}
}

// reaches reports whether a draft may follow another.
func (g *Grower) reaches(t *method.Tree, at int) bool {
	_, reach := g.source.Room()
	depth := t.DepthOf(at)
	return depth < min(g.shape.Depth, t.Depth()) && depth <= reach
}

// buckets is the number of classes of probabilities.
const buckets = 16

// Class returns the class of a draft, by its rank among its siblings and its probability.
func Class(rank int, p float32) int {
	return min(rank, method.Classes/buckets-1)*buckets + min(int(p*buckets), buckets-1)
}

// Belief returns how often a draft is accepted, before anything is known.
func Belief(rank int, p float32) float32 {
	if rank == 0 {
		return max(0.3, p)
	}
	return p / 2
}
