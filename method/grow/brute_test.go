package grow

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// branching is a model of a tiny vocabulary whose distributions differ behind every path.
func branching(vocabulary int, seed byte) *growtest.Model {
	m := growtest.Cycle(vocabulary, 1)
	m.Dims.Rows, m.Dims.Context = 64, 1000
	m.Next = func(path []token.ID, _ forest.Row) []float32 {
		out := make([]float32, vocabulary)
		for id := range out {
			h := fnv.New32a()
			fmt.Fprint(h, seed, path, id)
			out[id] = float32(h.Sum32()%9973) / 2500
		}
		return out
	}
	return m
}

// possible is a path of drafts that a shape allows, with its score: the product of the shares of its drafts that are expected to be accepted.
type possible struct {
	path  []token.ID
	score float64
}

// enumerate lists every path behind a text, of a shape with the ranks likeliest tokens behind each node, to a depth: each token's probability is by softmax.
func enumerate(m *growtest.Model, t *method.Tree, text []token.ID, ranks, depth int) (all []possible) {
	level := []possible{{nil, 1}}
	for range depth {
		var next []possible
		for _, p := range level {
			logits := m.Next(slices.Concat(text, p.path), forest.Row{})
			order, sum := make([]int, len(logits)), 0.0
			for id, x := range logits {
				order[id], sum = id, sum+math.Exp(float64(x))
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
			for rank, id := range order[:ranks] {
				share := float32(math.Exp(float64(logits[id])) / sum)
				next = append(next, possible{append(slices.Clone(p.path), token.ID(id)), p.score * float64(t.Estimate(Class(rank, share), Belief(rank, share)))})
			}
		}
		all, level = append(all, next...), next
	}
	slices.SortStableFunc(all, func(a, b possible) int { return cmp.Compare(b.score, a.score) })
	return all
}

// paths returns the drafts of a tree as texts, sorted.
func paths(t *method.Tree) (out []string) {
	var all [][]token.ID
	for _, n := range t.Nodes() {
		var path []token.ID
		if n.Parent != method.Root {
			path = append(path, all[n.Parent]...)
		}
		all = append(all, append(path, n.ID))
		out = append(out, fmt.Sprint(all[len(all)-1]))
	}
	slices.Sort(out)
	return out
}

// TestBestFirst compares trees that grow best first (EAGLE-2) with the enumeration of all paths. With one draft a pass, the drafts that are expanded are the best of all
// paths that there are, by their product; with four, each pass expands the four best of those whose parents were expanded before.
func TestBestFirst(t *testing.T) {
	const vocabulary, ranks, depth = 5, 4, 6
	text := []token.ID{1, 2, 3}
	for seed := range byte(8) {
		for _, beam := range []int{1, 4} {
			m := branching(vocabulary, seed)
			x, _ := open(t, Shape{Ranks: []int{ranks}, Beam: beam, Depth: depth}, m, sample.Params{})
			x.Begin(t, text...)
			tree := method.NewTree(128, vocabulary)
			tree.Reset(128, method.NewRates(1))
			if err := x.Drafter.Draft(t.Context(), tree); err != nil {
				t.Fatal(err)
			}
			all := enumerate(m, tree, text, ranks, depth)
			expanded := map[string]bool{"[]": true}
			for range depth - 1 {
				var best []string
				for _, p := range all {
					parent, own := fmt.Sprint(p.path[:len(p.path)-1]), fmt.Sprint(p.path)
					if len(best) < beam && len(p.path) < depth && !expanded[own] && (beam == 1 || expanded[parent]) {
						best = append(best, own)
					}
				}
				for _, own := range best {
					expanded[own] = true
				}
			}
			var want []string
			for _, p := range all {
				if expanded[fmt.Sprint(p.path[:len(p.path)-1])] {
					want = append(want, fmt.Sprint(p.path))
				}
			}
			slices.Sort(want)
			if diff := gocmp.Diff(want, paths(tree)); diff != "" {
				t.Errorf("seed %d, %d drafts a pass (-enumerated +grown):\n%s", seed, beam, diff)
			}
		}
	}
}
