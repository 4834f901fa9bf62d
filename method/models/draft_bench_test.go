package models

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"grove/internal/gopher"
	_ "grove/internal/model/all" // links the architecture
	"grove/internal/par"
	"grove/internal/suite/gophertest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// BenchmarkDraftGopher reports the tokens a round that the methods of draws give with the gopher models, for the same texts and
// seeds. Every round drafts.
func BenchmarkDraftGopher(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	target, draft := gophertest.Open(b, pool, gopher.Name), gophertest.Open(b, pool, gopher.DraftName)
	for _, a := range all {
		if !a.draws() {
			continue
		}
		info, err := method.Find(a.name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(a.name, func(b *testing.B) {
			gophertest.Rounds(b, target, info, method.Env{Draft: draft.Model()}, 240)
		})
	}
}

// BenchmarkGopherBudgets is the same for trees of equal numbers of drafts, and for OPT-Tree's tree of as many.
func BenchmarkGopherBudgets(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	target, draft := gophertest.Open(b, pool, gopher.Name), gophertest.Open(b, pool, gopher.DraftName)
	for _, n := range []int{4, 8, 16, 24} {
		for _, name := range []string{"draft-dyspec", "draft-sequoia", "draft-dyspec-q", "draft-dyspec-levels"} {
			info, err := method.Find(fmt.Sprintf("%s:n=%d", name, n))
			if err != nil {
				b.Fatal(err)
			}
			b.Run(info.Name, func(b *testing.B) {
				gophertest.Rounds(b, target, info, method.Env{Draft: draft.Model()}, 120)
			})
		}
		info := method.Info{Name: "OPT-Tree", RunsRows: true, Open: func(e method.Env) (method.Method, error) { return optTree{e, n}, nil }}
		b.Run(fmt.Sprintf("OPT-Tree:n=%d", n), func(b *testing.B) {
			gophertest.Rounds(b, target, info, method.Env{Draft: draft.Model()}, 120)
		})
	}
}

// optTree drafts the n likeliest paths of a draft model (OPT-Tree, 2024), without the noise of the target's draws.
type optTree struct {
	env method.Env
	n   int
}

func (m optTree) NewDrafter(method.Trunk) (method.Drafter, error) {
	b := grow.NewBranch(m.env, nil)
	b.Vocabulary(m.env.Vocabulary)
	return &likeliestPaths{Branch: b, n: m.n}, nil
}

type likeliestPaths struct {
	*grow.Branch
	history *method.History
	n       int
}

func (d *likeliestPaths) Begin(h *method.History) error {
	d.history = h
	err := d.Branch.Begin(h)
	d.Branch.Committed(h.IDs(), true)
	return err
}

func (d *likeliestPaths) Committed(r method.Update) { d.Branch.Committed(r.IDs, false) }

func (d *likeliestPaths) Draft(ctx context.Context, t *method.Tree) error {
	type path struct {
		parent int
		id     token.ID
		p      float64
	}
	var ready []path
	offer := func(parent int, above float64) {
		logits, sum := d.Logits(0), 0.0
		for _, l := range logits {
			sum += math.Exp(float64(l) / gophertest.Temperature)
		}
		for id, l := range logits {
			ready = append(ready, path{parent, token.ID(id), above * math.Exp(float64(l)/gophertest.Temperature) / sum})
		}
		slices.SortFunc(ready, func(a, b path) int { return cmp.Compare(b.p, a.p) })
		ready = ready[:min(len(ready), d.n)]
	}
	if ok, err := d.Root(ctx); !ok || err != nil {
		return err
	}
	offer(method.Root, 1)
	for t.Len() < d.n && len(ready) > 0 {
		best := ready[0]
		ready = ready[1:]
		at := t.Add(best.parent, best.id, 0, 0.5)
		if at == method.Root {
			continue
		}
		if err := d.Expand(ctx, t, []int{at}); err != nil {
			return err
		}
		offer(at, best.p)
	}
	return nil
}
