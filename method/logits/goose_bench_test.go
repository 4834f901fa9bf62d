package logits

import (
	"context"
	"fmt"
	"testing"

	"grove/internal/gopher"
	_ "grove/internal/model/all" // links the architecture
	"grove/internal/par"
	"grove/internal/suite/gophertest"
	"grove/internal/text/token"
	"grove/method"
)

// BenchmarkGopher measures the paper's claim with gopher-target: of the same cycle, the tree accepts no fewer tokens than its spine alone
// would, or its branches alone, with the whole budget. It reports the mean of each, and the share of cycles in which one alone accepts more.
func BenchmarkGopher(b *testing.B) {
	pool := par.New(2)
	defer pool.Close()
	target := gophertest.Open(b, pool, gopher.Name)
	for _, n := range []int{8, 16, 24, 60} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := &figures{}
			info := method.Info{Name: "goose", Open: func(e method.Env) (method.Method, error) {
				return beside{goose{method.NewSuccessors(e.Vocabulary, pairs)}, n, f}, nil
			}}
			gophertest.Rounds(b, target, info, method.Env{}, 240)
			for i, name := range []string{"tree", "spine", "branches"} {
				b.ReportMetric(f.accepted[i]/f.cycles, name+"/cycle")
				if i > 0 {
					b.ReportMetric(100*f.more[i]/f.cycles, name+"-more-%")
				}
			}
			b.ReportMetric(100*f.spines/f.cycles, "with-spine-%")
		})
	}
}

// figures are the tokens that the tree, the spine alone and the branches alone accept.
type figures struct {
	accepted, more [3]float64
	spines, cycles float64 // cycles that have a spine, and all
}

// beside is goose with trees of n nodes, beside which each source drafts alone.
type beside struct {
	goose
	n int
	f *figures
}

func (m beside) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &cycles{gooseDrafter: gooseDrafter{known: m.Successors, budget: m.n}, f: m.f}, nil
}

type cycles struct {
	gooseDrafter
	f   *figures
	all []cycle
}

// cycle is where trees were drafted, and their paths.
type cycle struct {
	at    int
	trees [3]*method.Tree
}

// Close implements [method.Closer]: the text is known to its end, and the cycles are counted.
func (d *cycles) Close() error {
	for _, c := range d.all {
		var n [3]int
		for i, t := range c.trees {
			n[i] = follows(t, d.history.IDs()[c.at:])
			d.f.accepted[i] += float64(n[i])
			if n[i] > n[0] {
				d.f.more[i]++
			}
		}
		d.f.cycles++
	}
	return nil
}

// follows returns how many tokens of a text a tree has.
func follows(t *method.Tree, text []token.ID) (n int) {
	at, ok := method.Root, true
	for ; n < len(text); n++ {
		if at, ok = t.Child(at, text[n]); !ok {
			break
		}
	}
	return n
}

func (d *cycles) Draft(_ context.Context, t *method.Tree) error {
	text := d.history.IDs()
	if len(text) == 0 {
		return nil
	}
	c := cycle{at: len(text)}
	confidence := d.copy()
	all := append([]token.ID(nil), d.spine...)
	total, spine := plan(d.budget, confidence, d.accepted)
	for i := range c.trees {
		c.trees[i] = method.NewTree(128, 1<<20)
		c.trees[i].Reset(t.Depth(), method.NewRates(1))
	}
	d.spine = all[:min(len(all), total-1)] // the spine alone
	d.addSpine(c.trees[1])
	d.spine, d.nodes = d.spine[:0], d.nodes[:0] // the branches alone
	d.addBranches(c.trees[2], total-1)
	d.spine = append([]token.ID(nil), all[:min(len(all), spine)]...)
	for _, tree := range []*method.Tree{c.trees[0], t} {
		d.addSpine(tree)
		d.addBranches(tree, total-1-len(d.spine))
	}
	if len(all) > 0 {
		d.f.spines++
	}
	d.all = append(d.all, c)
	return nil
}
