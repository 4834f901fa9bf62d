package draft

import (
	"context"
	"fmt"
	"math"
	"slices"

	"grove/method"
	"grove/sample"
	"grove/token"
	"grove/verify"
)

func init() {
	for _, i := range []method.Info{
		{Name: "draft-block", Paper: "Block verification, 2024", Rule: method.Block},
		{Name: "draft-rsd", Paper: "Recursive speculative decoding (RSD-C), 2024", Rule: method.Reject},
	} {
		i.Kind, i.Grade, i.Needs = method.KindModel, method.SameLaw, needs
		children := []int{3, 2} // of nodes by depth; 1 below
		if i.Rule == method.Block {
			children = nil
		}
		i.Open = func(e method.Env) (method.Method, error) {
			if e.Draft == nil {
				return nil, method.ErrNeeds
			}
			if e.Words.Way() != method.SameVocabulary {
				return nil, fmt.Errorf("%w: a draft model with the same vocabulary (this one's: %v)", method.ErrNeeds, e.Words)
			}
			return &lawModel{*newModel(e), children}, nil
		}
		method.Register(i)
	}
}

type lawModel struct {
	model
	children []int
}

// NewDrafter implements [method.Method].
func (m *lawModel) NewDrafter() (method.Drafter, error) {
	d, err := m.newDrafter()
	if err != nil {
		return nil, err
	}
	return &lawDrafter{drafter: *d, children: m.children, dense: make([]float32, d.vocabulary)}, nil
}

// lawDrafter draws its guesses from the draft model's distributions, which go with them. What it draws stays in the
// tree; only whether to draw more depends on what was drawn.
type lawDrafter struct {
	drafter
	children []int
	dense    []float32
	laws     []verify.Law
	drawn    []token.ID
	scores   []float64
}

// Draft implements [method.Drafter].
func (d *lawDrafter) Draft(ctx context.Context, t *method.Tree) error {
	logits, ok, err := d.begin(ctx)
	if !ok || err != nil {
		return err
	}
	root := len(d.text)
	if err := d.draw(t, method.Root, none, root, logits); err != nil {
		return err
	}
	for depth := 1; depth < deepest && root+depth < d.runner.Context() && d.pays(t); depth++ {
		err := d.expand(ctx, t, func(l leaf, row int, logits []float32) error { return d.draw(t, l.guess, row, root, logits) })
		if err != nil {
			return err
		}
	}
	return nil
}

// draw draws children of a node without replacement: the tokens with the highest sums of log-probability and noise.
func (d *lawDrafter) draw(t *method.Tree, node, row, root int, logits []float32) error {
	if err := d.sampler.Distribution(d.dense, logits); err != nil {
		return err
	}
	law := d.law(node + 1)
	law.IDs, law.P = law.IDs[:0], law.P[:0]
	d.drawn, d.scores = d.drawn[:0], d.scores[:0]
	count, depth := 1, 0
	if node != method.Root {
		depth = int(t.Nodes()[node].Depth)
	}
	if depth < len(d.children) {
		count = d.children[depth]
	}
	for id, p := range d.dense {
		if p > 0 {
			law.IDs, law.P = append(law.IDs, token.ID(id)), append(law.P, p)
			d.offer(count, token.ID(id), math.Log(float64(p))+d.sampler.Noise(d.choice, root, 2+method.NodeUses*sample.Use(node+1), token.ID(id)))
		}
	}
	t.Draw(node, *law)
	for _, id := range d.drawn {
		p := law.Of(id)
		class := min(int(p*buckets), buckets-1)
		at := t.Add(node, id, class, float32(max(0.3, p)))
		if at == method.Root {
			return nil // the tree is full, and so for all that would come
		}
		d.next = append(d.next, leaf{at, row})
	}
	return nil
}

// offer keeps the count tokens with the best scores, best first.
func (d *lawDrafter) offer(count int, id token.ID, score float64) {
	at := len(d.scores)
	for at > 0 && d.scores[at-1] < score {
		at--
	}
	if at == count {
		return
	}
	d.drawn, d.scores = slices.Insert(d.drawn, at, id), slices.Insert(d.scores, at, score)
	if len(d.drawn) > count {
		d.drawn, d.scores = d.drawn[:count], d.scores[:count]
	}
}

// law returns the storage of a node's law.
func (d *lawDrafter) law(i int) *verify.Law {
	for len(d.laws) <= i {
		d.laws = append(d.laws, verify.Law{})
	}
	return &d.laws[i]
}
