// Package ppd drafts with learned input vectors of the target itself (Parallel Prompt Decoding, Chen et al. 2024).
//
// Behind each token that a step verifies stand a few vectors as further rows. The target's output at the k-th of them is nearly the distribution of the
// token k places behind the next one. So a step drafts for the next one: what the vectors behind the last accepted draft gave are the lists of candidates
// of a tree. Their keys are dropped with those of rejected drafts.
package ppd

import (
	"context"
	"fmt"

	"grove/forest"
	"grove/method"
	"grove/method/grow"
	"grove/sample"
)

// family is the family of modules.
const family = "ppd"

const (
	candidates = 10   // of a depth, as in the paper
	most       = 16   // drafts of a tree; the paper's have more, for accelerators
	follows    = 0.6  // share of the vectors' candidates that are accepted, for the decision how many vectors stand behind a draft
	worthwhile = 0.15 // chance of a draft and its candidates below which no vector stands for them
)

func init() {
	method.Register(method.Info{
		Name: "ppd", Paper: "Parallel prompt decoding: learned input vectors, 2024", Kind: method.KindHeads, Grade: method.Exact, Auto: true,
		Needs: "heads of the family " + family + " (--heads)", CheckNeeds: method.MeetsModule(family), Open: open,
	})
}

// open returns an error where the module has no vectors.
func open(e method.Env) (method.Method, error) {
	m := &ppd{e.Module(family).Vectors, e.Vocabulary}
	if len(m.vectors) == 0 {
		return nil, fmt.Errorf("ppd: %w: the heads have no vectors", method.ErrNeeds)
	}
	return m, nil
}

// ppd is the vectors, first the one right behind a token.
type ppd struct {
	vectors    [][]float32
	vocabulary int
}

// NewDrafter implements [method.Method].
func (m *ppd) NewDrafter(method.Trunk) (method.Drafter, error) {
	d := &drafter{ppd: m, lists: make([][]sample.Candidate, len(m.vectors)), room: make([]sample.Candidate, candidates*len(m.vectors))}
	return d, nil
}

// drafter keeps the lists that the last round's vectors gave.
type drafter struct {
	*ppd
	history *method.History
	sampler *sample.Chain
	product grow.Product
	first   int // place in the text of the tokens of the first list
	known   int // lists
	lists   [][]sample.Candidate
	room    []sample.Candidate // of the lists
	err     error              // of an update
}

// Begin implements [method.Drafter].
func (d *drafter) Begin(h *method.History) (err error) {
	d.history, d.known, d.err = h, 0, nil
	d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.vocabulary)
	return err
}

// length returns the number of the text's tokens, without a source.
func (d *drafter) length() int { return len(d.history.IDs()) - d.history.SourceLen }

// Committed implements [method.Drafter]. The k-th vector's row has a place in the text, and gives candidates for the place behind it.
func (d *drafter) Committed(r method.Update) {
	if len(r.Extra) == 0 {
		return // lists of an earlier round stay, for the places that are still to come
	}
	d.known, d.first = 0, int(r.Extra[0].Index)+1
	for i := range r.Extra {
		room := d.room[i*candidates:][:candidates]
		list, err := d.sampler.Candidates(room, r.Extra[i].Logits[:d.vocabulary], d.first+i)
		if err != nil {
			d.err = err
			return
		}
		d.lists[i], d.known = list, i+1
	}
}

// Draft implements [method.Drafter]: the most probable paths through the lists, and vectors behind the text and behind drafts that are likely enough.
func (d *drafter) Draft(_ context.Context, t *method.Tree) error {
	if d.err != nil || len(d.history.IDs()) == 0 {
		return d.err
	}
	before := t.Len()
	if passed := d.length() - d.first; d.known > 0 && passed >= 0 && passed < d.known {
		d.product.Grow(t, d.lists[passed:d.known], most)
	}
	d.behind(t, method.Root, len(d.vectors))
	for at := before; at < t.Len(); at++ {
		n := 0
		for p := t.Score(at) * follows; p >= worthwhile && n < len(d.vectors); p *= follows {
			n++
		}
		d.behind(t, at, n)
	}
	return nil
}

// behind puts the first n vectors behind a draft, where there are places left in the text.
func (d *drafter) behind(t *method.Tree, node, n int) {
	after := method.Root
	for _, v := range d.vectors[:min(n, max(0, t.Depth()-t.DepthOf(node)))] {
		if after = t.AddExtra(node, after, v, forest.Want{Logits: true}); after == method.Root {
			return
		}
	}
}
