// Package medusa drafts with heads that each predict one of the next tokens from the target's last state alone (Medusa, Cai et al. 2024).
//
// Heads know nothing of each other's drafts, so one pass of all of them gives the candidates of every depth, and a path is worth the product of its
// candidates. Drafts above temperature 0 are those that the random numbers of the text draw from the heads' logits: the tree holds what the target will
// draw more often, and the rule is match. The paper's typical acceptance is the rule typical, which is lossy.
package medusa

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"grove/method"
	"grove/method/grow"
	"grove/sample"
)

// most is the drafts of the published trees. The planner runs those that pay.
const most = 63

func init() {
	method.Register(method.Info{
		Name: "medusa", Paper: "Medusa: heads that predict the tokens behind the next one, 2024", Kind: method.KindHeads, Grade: method.Exact, RunsRows: true, Auto: true,
		Needs: "heads of the family medusa (--heads)", CheckNeeds: method.MeetsModule("medusa"),
		Open: opener(most), WithOption: sized, Options: fmt.Sprintf("n=%d", most),
	})
}

// sized reads the option n.
func sized(option string) (func(method.Env) (method.Method, error), string, error) {
	value, ok := strings.CutPrefix(option, "n=")
	n, err := strconv.Atoi(value)
	if !ok || err != nil || n < 1 || n > method.MaxLive {
		return nil, "", fmt.Errorf("option %q is not known; use n=N, the drafts of a tree, from 1 to %d", option, method.MaxLive)
	}
	return opener(n), fmt.Sprintf("n=%d", n), nil
}

func opener(drafts int) func(method.Env) (method.Method, error) {
	return func(e method.Env) (method.Method, error) {
		return medusa{e.Module("medusa"), drafts, e.Vocabulary}, nil
	}
}

// medusa is heads, and the drafts of a tree at most.
type medusa struct {
	module     *method.Module
	drafts     int
	vocabulary int
}

// NewDrafter implements [method.Method].
func (m medusa) NewDrafter(method.Trunk) (method.Drafter, error) {
	d := &drafter{medusa: m, heads: grow.NewHeads(m.module, m.vocabulary)}
	d.best, d.lists = make([][grow.MaxRanks]sample.Candidate, m.module.Heads), make([][]sample.Candidate, m.module.Heads)
	return d, nil
}

// drafter makes a tree of the heads' candidates.
type drafter struct {
	medusa
	heads   *grow.Heads
	text    *method.History
	sampler *sample.Chain
	rows    []method.Row
	best    [][grow.MaxRanks]sample.Candidate // of each head
	lists   [][]sample.Candidate              // in best
	tree    grow.Product
	err     error // of an update
}

// Wants implements [method.Wanter].
func (d *drafter) Wants() method.Wants { return d.module.Wants() }

// Begin implements [method.Drafter].
func (d *drafter) Begin(h *method.History) (err error) {
	d.text, d.err, d.tree.Share = h, nil, nil
	if !h.Noise.Sampling.Greedy() {
		d.tree.Share = share
	}
	if d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.vocabulary); err != nil {
		return err
	}
	return d.heads.Begin(h)
}

// share returns how often candidates of a rank and a probability are accepted.
func share(t *method.Tree, rank int, p float32) float32 {
	return t.Estimate(grow.Class(rank, p), grow.Belief(rank, p))
}

// Committed implements [method.Drafter].
func (d *drafter) Committed(r method.Update) { d.err = d.heads.Committed(r) }

// Draft implements [method.Drafter].
func (d *drafter) Draft(ctx context.Context, t *method.Tree) error {
	if d.err != nil {
		return d.err
	}
	if ok, err := d.heads.Read(ctx); !ok || err != nil {
		return err
	}
	room, _ := d.heads.Room()
	n := min(d.module.Heads, t.Depth(), room)
	if n < 1 {
		return nil
	}
	d.rows = d.rows[:0]
	for k := range n {
		d.rows = append(d.rows, d.heads.Row(k))
	}
	if err := d.heads.Run(ctx, d.rows); err != nil {
		return err
	}
	index := len(d.text.IDs()) - d.text.SourceLen
	for k := range n {
		best, err := d.sampler.Candidates(d.best[k][:], d.heads.Logits(k), index+k)
		if err != nil {
			return err
		}
		d.lists[k] = best
	}
	d.tree.Grow(t, d.lists[:n], min(d.drafts, t.Room()))
	return nil
}

// Close implements [method.Closer].
func (d *drafter) Close() error { return d.heads.Close() }

// MemoryFor implements [method.Sized].
func (d *drafter) MemoryFor(_ int, p sample.Params) method.Memory {
	return d.heads.MemoryFor(d.module.Heads, p)
}

// Held implements [method.Sized].
func (d *drafter) Held() method.Memory { return d.heads.Held() }

// Ran implements [method.Counter].
func (d *drafter) Ran() method.Ran { return d.heads.Ran() }
