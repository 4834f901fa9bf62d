// levels.go drafts by two models of different sizes: a small tree of the draft model is verified by a middle model, again and again, and
// the list of tokens that this gives is what the target verifies (SpecMQuant: a hierarchical framework, Zhang et al. 2025).
//
// The target runs a chain, which is as good as the middle model's text, and no tree. The middle model draws its tokens by the noise of the target's draw, as
// the draft model does: the list is the middle model's own text for the seed, whatever the draft model drafts.

package models

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// The size of the drafts.
const (
	enough        = 6  // tokens of a list behind which no further tree is drafted
	levelsLongest = 16 // tokens of a list
	rows          = 32 // of the draft model's tree, at most
)

// levelsShape is the draft model's tree: small, because each of its rows is one of the middle model.
var levelsShape = grow.Shape{Ranks: []int{2, 1, 1}, Beam: 2, Growth: grow.Fixed}

func init() {
	method.Register(method.Info{
		Name: "levels", Paper: "SpecMQuant: a draft, a middle model and the target, 2025", Kind: method.KindModel, Grade: method.Exact,
		NotAuto: "no family of three models here makes it pay",
		Needs:   "a draft model and a middle model, both with the same vocabulary", RunsRows: true,
		CheckNeeds: levelsMeets,
		Open:       func(e method.Env) (method.Method, error) { return levels{e}, nil },
	})
}

func levelsMeets(e method.Env) error {
	if e.Middle == nil {
		return fmt.Errorf("%w: the middle model is missing", method.ErrNeeds)
	}
	return grow.MeetsDraft(e, true)
}

// levels is the two models.
type levels struct{ env method.Env }

// NewDrafter implements [method.Method].
func (m levels) NewDrafter(method.Trunk) (method.Drafter, error) {
	d := &levelsDrafter{
		lower: grow.NewFollower(m.env.Draft, m.env.Vocabulary), middle: grow.NewFollower(m.env.Middle, m.env.Vocabulary),
		tree: method.NewTree(rows, m.env.Vocabulary), rates: method.NewRates(1),
		vocabulary: min(m.env.Vocabulary, m.env.Middle.Size().Vocabulary),
	}
	d.grower = grow.New(levelsShape, d.lower, min(m.env.Vocabulary, m.env.Draft.Size().Vocabulary))
	return d, nil
}

type levelsDrafter struct {
	history    *method.History
	lower      *grow.Follower // the draft model
	grower     *grow.Grower
	middle     *grow.Follower
	sampler    *sample.Chain
	vocabulary int // of the middle model's logits

	text    []token.ID // the history's, and behind it the list
	certain int        // tokens of the history
	tree    *method.Tree
	rates   *method.Rates
	rows    []grow.LiveRow // of the tree
	best    [1]sample.Candidate
	passes  grow.Passes
	mean    float64 // tokens of a tree, averaged
}

// Begin implements [method.Drafter].
func (d *levelsDrafter) Begin(h *method.History) (err error) {
	d.history, d.text = h, append(d.text[:0], h.IDs()...)
	d.certain = len(d.text)
	if d.mean == 0 {
		d.mean = 1
	}
	d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.vocabulary)
	if err == nil {
		err = d.lower.Begin()
	}
	if err == nil {
		err = d.middle.Begin()
	}
	if err == nil {
		err = d.grower.Begin(h.Noise)
	}
	return err
}

// Committed implements [method.Drafter].
func (d *levelsDrafter) Committed(r method.Update) {
	d.text = append(d.text[:d.certain], r.IDs...)
	d.certain = len(d.text)
}

// Draft implements [method.Drafter].
func (d *levelsDrafter) Draft(ctx context.Context, t *method.Tree) error {
	d.text = d.text[:d.certain]
	for at := method.Root; ; {
		start, before := time.Now(), len(d.text)
		end, err := d.list(ctx, t, at)
		if err != nil || end == method.Root {
			return err
		}
		d.passes.Observe(time.Since(start))
		d.mean += (float64(len(d.text)-before) - d.mean) / 8
		at = end
		if len(d.text)-d.certain >= enough || !d.passes.Pays(t, float64(t.Score(at))*d.mean) {
			return nil
		}
	}
}

// list lets the draft model grow a tree behind the text and the list, and the middle model verify it: what this gives is added to the text and, behind
// a node, to t. It returns the last draft, and [method.Root] where the list is at its end.
func (d *levelsDrafter) list(ctx context.Context, t *method.Tree, at int) (end int, err error) {
	d.lower.Follow(d.text, d.certain)
	d.tree.Reset(len(levelsShape.Ranks), d.rates)
	index := len(d.text) - d.history.SourceLen
	if err := d.grower.Grow(ctx, d.tree, index); err != nil {
		return method.Root, err
	}
	d.rows = d.rows[:0]
	for _, n := range d.tree.Nodes() {
		d.rows = append(d.rows, grow.LiveRow{ID: n.ID, Parent: int(n.Parent)})
	}
	d.middle.Follow(d.text, d.certain)
	n, err := d.middle.Join(ctx, d.rows)
	if err != nil {
		return method.Root, err
	}
	for node := method.Root; node+1 < n && len(d.text)-d.certain < levelsLongest; index++ {
		best, err := d.sampler.Candidates(d.best[:], d.middle.Logits(node+1), index)
		if err != nil {
			return method.Root, err
		}
		c := best[0]
		if at = t.Add(at, c.ID, grow.Class(0, c.P), grow.Belief(0, c.P)); at == method.Root {
			return method.Root, nil
		}
		end, d.text = at, append(d.text, c.ID)
		d.tree.Learn(node, c.ID)
		child, ok := d.tree.Child(node, c.ID)
		if !ok {
			return at, nil
		}
		node = child
	}
	return method.Root, nil
}

// Close implements [method.Closer].
func (d *levelsDrafter) Close() error { return errors.Join(d.lower.Close(), d.middle.Close()) }

// MemoryFor implements [method.Sized].
func (d *levelsDrafter) MemoryFor(drafts int, p sample.Params) method.Memory {
	r := d.grower.MemoryFor(drafts, p, d.lower.Size)
	r.Trees = method.TreeBytes(rows, 0)
	r.Logits += d.middle.MemoryOf(1 + levelsShape.FixedSize()).Logits
	return r
}

// Held implements [method.Sized].
func (d *levelsDrafter) Held() method.Memory {
	return method.Memory{Trees: d.tree.Bytes(), Logits: d.lower.HeldBytes() + d.middle.HeldBytes()}
}
