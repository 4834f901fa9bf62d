package module

import (
	"context"
	"slices"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/method"
	"grove/method/grow"
)

const (
	standingRanks  = 10       // candidates of a place, as in the papers
	standingDrafts = 16       // of a tree at most; the papers' have more, for accelerators
	follows        = 0.6      // share of texts' tokens that are among a place's candidates, before any were seen
	worthwhile     = 0.05     // tokens that a row must promise to stand behind a draft
	seen           = 1.0 / 32 // weight of a list among those that were counted
)

// Standing drafts by rows of the target itself that stand behind the tokens of a step (Parallel Prompt Decoding, Chen et al. 2024; Hidden Transfer, Wu et al.
// 2024): [method.Module.Rows]. The target's output at the k-th of them is nearly the distribution of the token k places behind the next one. So a step
// drafts for the next one: what the rows behind the last accepted draft gave are the lists of candidates of a tree. Their keys are
// dropped with those of rejected drafts. It is a complete [method.Drafter], and allocates nothing in the steady state.
type Standing struct {
	rows    []forest.Row
	words   int // of the target's vocabulary
	history *method.History
	sampler *sample.Chain
	product grow.Product
	first   int // place in the text of the tokens of the first list
	known   int // lists
	lists   [][]sample.Candidate
	room    []sample.Candidate // of the lists
	kept    int                // rows whose logits an update had at most
	shares  []float32          // by list: of texts' tokens that are among the candidates, where those before were
	ends    []float32          // by draft: the chance that it is the last one that is accepted
	err     error              // of an update
}

// NewStanding returns a drafter by the rows of a module, for a target's vocabulary. Each wants its logits.
func NewStanding(m *method.Module, vocabulary int) *Standing {
	d := &Standing{rows: slices.Clone(m.Rows), words: vocabulary, lists: make([][]sample.Candidate, len(m.Rows)), room: make([]sample.Candidate, standingRanks*len(m.Rows))}
	for i := range d.rows {
		d.rows[i].Want = forest.Want{Logits: true}
		d.shares = append(d.shares, follows)
	}
	return d
}

// Begin implements [method.Drafter].
func (d *Standing) Begin(h *method.History) (err error) {
	d.history, d.known, d.err, d.product.Share = h, 0, nil, nil
	if !h.Noise.Sampling.Greedy() {
		d.product.Share = share
	}
	d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.words)
	return err
}

// length returns the number of the text's tokens, without a source.
func (d *Standing) length() int { return len(d.history.IDs()) - d.history.SourceLen }

// Committed implements [method.Drafter]. The k-th row has a place in the text, and gives candidates for the place behind it.
func (d *Standing) Committed(r method.Update) {
	if len(r.Extra) == 0 {
		return // lists of an earlier round stay, for the places that are still to come
	}
	d.judge()
	d.known, d.first, d.kept = 0, int(r.Extra[0].Index)+1, max(d.kept, len(r.Extra))
	for i := range r.Extra {
		room := d.room[i*standingRanks:][:standingRanks]
		list, err := d.sampler.Candidates(room, r.Extra[i].Logits[:d.words], d.first+i)
		if err != nil {
			d.err = err
			return
		}
		d.lists[i], d.known = list, i+1
	}
}

// judge counts which of the lists' places had one of their candidates, up to the first that had not.
func (d *Standing) judge() {
	ids := d.history.IDs()[d.history.SourceLen:]
	for i := 0; i < d.known && d.first+i < len(ids); i++ {
		had := float32(0)
		if slices.ContainsFunc(d.lists[i], func(c sample.Candidate) bool { return c.ID == ids[d.first+i] }) {
			had = 1
		}
		if d.shares[i] += seen * (had - d.shares[i]); had == 0 {
			return
		}
	}
}

// Draft implements [method.Drafter]: the most probable paths through the lists, and rows behind the text and behind drafts that are likely enough.
func (d *Standing) Draft(_ context.Context, t *method.Tree) error {
	if d.err != nil || len(d.history.IDs()) == 0 {
		return d.err
	}
	if passed := d.length() - d.first; d.known > 0 && passed >= 0 && passed < d.known {
		d.product.Grow(t, d.lists[passed:d.known], standingDrafts)
	}
	d.behind(t, method.Root, len(d.rows))
	d.ends = d.ends[:0]
	for at := range t.Len() {
		d.ends = append(d.ends, t.Score(at))
	}
	for at, n := range t.Nodes() {
		if n.Parent != int32(method.Root) {
			d.ends[n.Parent] -= t.Score(at)
		}
	}
	for at := range t.Len() {
		d.behind(t, at, d.worth(d.ends[at]))
	}
	return nil
}

// worth returns how many rows are worth their place behind a draft that is the last accepted one with a chance: the tokens that a row promises fall from
// row to row (the paper's tree optimisation, for one tree at a time).
func (d *Standing) worth(chance float32) (n int) {
	for n < len(d.rows) {
		if chance *= d.shares[n]; chance < worthwhile {
			break
		}
		n++
	}
	return n
}

// behind puts the first n rows behind a draft, where there are places left in the text.
func (d *Standing) behind(t *method.Tree, node, n int) {
	after := method.Root
	for _, row := range d.rows[:min(n, max(0, t.Depth()-t.DepthOf(node)))] {
		if after = t.AddExtra(node, after, row); after == method.Root {
			return
		}
	}
}

// MemoryFor implements [method.Sized]: the logits of the rows behind the last accepted draft are kept for it.
func (d *Standing) MemoryFor(int, sample.Params) method.Memory {
	return method.Memory{Logits: 4 * len(d.rows) * d.words}
}

// Held implements [method.Sized].
func (d *Standing) Held() method.Memory { return method.Memory{Logits: 4 * d.kept * d.words} }
