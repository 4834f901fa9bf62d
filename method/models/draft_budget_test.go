package models

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
)

// pair is a random target and a draft model of a vocabulary, whose logits are the target's and noise.
type pair struct{ target, draft *growtest.Model }

func newPair(vocabulary int, sharp, noise float64, seed uint64) pair {
	rng := rand.New(rand.NewPCG(seed, 3))
	logits, others := make([]float64, vocabulary*vocabulary), make([]float64, vocabulary*vocabulary)
	for i := range logits {
		logits[i] = sharp * rng.NormFloat64()
		others[i] = logits[i] + noise*rng.NormFloat64()
	}
	of := func(l []float64) *growtest.Model {
		return growtest.Table(vocabulary, func(id, next int) float64 { return l[id*vocabulary+next] })
	}
	return pair{of(logits), of(others)}
}

// rejected returns the expected accepted tokens behind a node of a tree of draws, whose token is last, by recursive rejection.
func (c pair) rejected(t *method.Tree, node int, last token.ID) (tokens float64) {
	p, q, reach := slices.Clone(c.target.Probs(last)), slices.Clone(c.draft.Probs(last)), 1.0
	for _, at := range t.Children(nil, node) {
		id := t.Nodes()[at].ID
		accepted := reach * min(1, p[id]/q[id])
		tokens += accepted * (1 + c.rejected(t, at, id))
		reach -= accepted
		mass, left := 0.0, 0.0
		for i := range p {
			p[i] = max(0, p[i]-q[i])
			mass += p[i]
		}
		q[id] = 0
		for i := range q {
			left += q[i]
		}
		for i := range p {
			p[i], q[i] = p[i]/mass, q[i]/left
		}
		if reach < 1e-12 {
			break
		}
	}
	return tokens
}

// drawn returns the mean of the accepted tokens that trees of a method expect, and its standard error, after as many trees as
// these from whose rounds it learned.
func (c pair) drawn(t *testing.T, name string, trees int) (mean, err float64) {
	x := openDraft(t, name, c.draft, sample.Params{Temperature: 1, Seed: 11}, 0)
	v := len(c.target.Probs(0))
	tree, rates := method.NewTree(64, v), method.NewRates(1)
	view := growtest.View{Tree: tree, Target: c.target, Rng: rand.New(rand.NewPCG(5, 5))}
	sum, squares := 0.0, 0.0
	for x.Noise.SampleIndex = range 2 * trees {
		last := token.ID(x.Noise.SampleIndex % v)
		x.Begin(t, last)
		tree.Reset(16, rates)
		if err := x.Drafter.Draft(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		if x.Noise.SampleIndex < trees {
			view.Last = last
			at := method.Root
			for _, id := range view.Judge(t, verify.Reject) {
				tree.Learn(at, id)
				at, _ = tree.Child(at, id)
			}
			continue
		}
		got := c.rejected(tree, method.Root, last)
		sum, squares = sum+got, squares+got*got
	}
	n := float64(trees)
	mean = sum / n
	return mean, math.Sqrt((squares/n - mean*mean) / n)
}

// likeliest returns the expected accepted tokens of OPT-Tree's tree: the n likeliest paths of the draft model, of which the
// target's draws are looked up.
func (c pair) likeliest(n int) (tokens float64) {
	type path struct {
		last token.ID
		q, p float64
	}
	v := len(c.target.Probs(0))
	for last := range token.ID(v) {
		var ready []path
		offer := func(a path) {
			p, q := c.target.Probs(a.last), c.draft.Probs(a.last)
			for id := range token.ID(v) {
				ready = append(ready, path{id, a.q * q[id], a.p * p[id]})
			}
		}
		offer(path{last, 1, 1})
		for range n {
			best := slices.MaxFunc(ready, func(a, b path) int { return cmp.Compare(a.q, b.q) })
			ready = slices.DeleteFunc(ready, func(a path) bool { return a == best })
			tokens += best.p
			offer(best)
		}
	}
	return tokens / float64(v)
}

// coupled returns the mean of the accepted tokens of the n best drafts of the method draft, which shares the noise of the target's draws.
func (c pair) coupled(t *testing.T, n, rounds int) (mean float64) {
	p := sample.Params{Temperature: 1, Seed: 11}
	x := openDraft(t, "draft", c.draft, p, 0)
	v := len(c.target.Probs(0))
	tree, rates := method.NewTree(128, v), method.NewRates(1)
	accepted := 0
	for x.Noise.SampleIndex = range 2 * rounds {
		last := token.ID(x.Noise.SampleIndex % v)
		x.Begin(t, last)
		tree.Reset(16, rates)
		if err := x.Drafter.Draft(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		order := make([]int, tree.Len())
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tree.Score(b), tree.Score(a)) })
		order = order[:min(n, len(order))]
		chain, err := sample.NewChain(sample.Settings{Params: p, SampleIndex: x.Noise.SampleIndex}, v)
		if err != nil {
			t.Fatal(err)
		}
		for at, depth := method.Root, 0; ; depth++ {
			var first [1]sample.Candidate
			best, err := chain.Candidates(first[:], c.target.Next([]token.ID{last}, forest.Row{}), 1+depth)
			if err != nil {
				t.Fatal(err)
			}
			next, ok := tree.Child(at, best[0].ID)
			tree.Learn(at, best[0].ID)
			if !ok || !slices.Contains(order, next) {
				break
			}
			if at, last = next, best[0].ID; x.Noise.SampleIndex >= rounds {
				accepted++
			}
		}
	}
	return float64(accepted) / float64(rounds)
}

// TestBudgets compares the accepted tokens that trees of equal numbers of drafts expect, on random tables of eight tokens whose draft
// models are the target's logits with noise: each tree is drawn by its method, which has learned from as many rounds before, and its
// expectation is exact.
func TestBudgets(t *testing.T) {
	trees, tables, budgets := 160, uint64(2), []int{8, 24}
	if os.Getenv("GROVE_LONG") != "" {
		trees, tables, budgets = 1000, 4, []int{4, 8, 16, 24}
	}
	for _, f := range []struct {
		name         string
		sharp, noise float64
	}{{"close", 1.5, 0.4}, {"near", 1.5, 1}, {"far", 1.5, 2}, {"sharp", 3, 1}, {"flat", 0.7, 0.4}} {
		for _, n := range budgets {
			mean := func(name string) (mean, deviation float64) {
				for seed := range tables {
					m, e := newPair(8, f.sharp, f.noise, seed).drawn(t, fmt.Sprintf("%s:n=%d", name, n), trees)
					mean, deviation = mean+m/float64(tables), deviation+e/float64(tables)
				}
				return mean, deviation
			}
			slots, deviation := mean("draft-dyspec")
			published, _ := mean("draft-dyspec-q")
			levels, _ := mean("draft-dyspec-levels")
			static, other := mean("draft-sequoia")
			likeliest, coupled := 0.0, 0.0
			for seed := range tables {
				c := newPair(8, f.sharp, f.noise, seed)
				likeliest, coupled = likeliest+c.likeliest(n)/float64(tables), coupled+c.coupled(t, n, trees)/float64(tables)
			}
			t.Logf("%-5s, %2d drafts: dyspec %.2f (+- %.2f), sequoia %.2f, dyspec-q %.2f, levels %.2f, OPT-Tree %.2f, draft %.2f",
				f.name, n, slots, deviation, static, published, levels, likeliest, coupled)
			if slots < static-3*(deviation+other) || slots < likeliest || published < likeliest {
				t.Errorf("%s, %d drafts: dyspec %.3f, dyspec-q %.3f, sequoia %.3f, OPT-Tree %.3f", f.name, n, slots, published, static, likeliest)
			}
		}
	}
}
