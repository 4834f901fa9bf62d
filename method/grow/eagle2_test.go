package grow

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// TestEAGLE2Toy grows the worked tree of EAGLE-2's paper's rule with K = 2 and one further pass: the best three of the candidates a .6, a c .42, b .3, b e .27,
// a d .12, b f .015 are a, a c and b. A tree keeps all candidates, and the planner runs the best: here the ones of the highest scores.
func TestEAGLE2Toy(t *testing.T) {
	const root, a, b, c, d, e, f = 0, 1, 2, 3, 4, 5, 6
	p := map[token.ID]map[int]float64{root: {a: .6, b: .3}, a: {c: .7, d: .2}, b: {e: .9, f: .05}}
	m := growtest.Table(8, func(int, int) float64 { return 0 })
	m.Next = func(path []token.ID, _ forest.Row) []float32 {
		of, left := p[path[len(path)-1]], 1.0
		for _, q := range of {
			left -= q
		}
		out := make([]float32, 8)
		for i := range out {
			q, ok := of[i]
			if !ok {
				q = left / float64(8-len(of))
			}
			out[i] = float32(math.Log(q))
		}
		return out
	}
	tree := grown(t, Shape{Growth: Fixed, Ranks: []int{2, 2}, Beam: 2}, m, sample.Params{}, 4)
	scores := map[string]float64{}
	for at := range tree.Nodes() {
		scores[pathOf(tree, at)] = probabilityOf(tree, at, p)
	}
	best := slices.SortedFunc(maps.Keys(scores), func(x, y string) int {
		if scores[x] > scores[y] {
			return -1
		}
		return 1
	})
	if want := []string{"/1", "/1/3", "/2", "/2/5", "/1/4", "/2/6"}; !slices.Equal(best, want) {
		t.Errorf("candidates are %v, want %v", best, want)
	}
}

func pathOf(t *method.Tree, at int) string {
	if at == method.Root {
		return ""
	}
	n := t.Nodes()[at]
	return pathOf(t, int(n.Parent)) + fmt.Sprint("/", n.ID)
}

func probabilityOf(t *method.Tree, at int, p map[token.ID]map[int]float64) float64 {
	n := t.Nodes()[at]
	if n.Parent == method.Root {
		return p[0][int(n.ID)]
	}
	return probabilityOf(t, int(n.Parent), p) * p[t.Nodes()[n.Parent].ID][int(n.ID)]
}
