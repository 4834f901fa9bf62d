package plan

import (
	"math"
	"testing"

	"grove/method"
	"grove/text/token"
)

// fullTree grows a tree whose drafts of each rank come true as often as acceptance says: always behind the best guess so
// far, as drafters do.
func fullTree(acceptance []float32, nodes int) *method.Tree {
	t := method.NewTree(nodes, 1000)
	t.Reset(nodes, method.NewRates(1))
	grown := map[int]bool{}
	at := method.Root
	for {
		for rank, p := range acceptance {
			if t.Add(at, token.ID(rank), rank, p) == method.Root {
				return t
			}
		}
		grown[at] = true
		at = method.Root
		best := float32(0)
		for i, n := range t.Nodes() {
			if !grown[i] && n.Score > best {
				at, best = i, n.Score
			}
		}
		if best == 0 {
			return t
		}
	}
}

// TestBestTrees holds what the planner chooses to the best trees there are, by expected tokens for a number of nodes: those
// of the toy of three ranks, and of Sequoia's acceptance vector, which is known to four places.
func TestBestTrees(t *testing.T) {
	for _, c := range []struct {
		name       string
		acceptance []float32
		tokens     map[int]float64 // by nodes, the root included
	}{
		{"toy", []float32{0.6, 0.2, 0.1}, map[int]float64{
			1: 1, 2: 1.6, 3: 1.96, 4: 2.176, 5: 2.376, 6: 2.5056, 7: 2.6256, 8: 2.7456, 9: 2.8456, 10: 2.9234, 11: 2.9954,
			12: 3.0674, 13: 3.1394, 14: 3.1994, 15: 3.2594, 16: 3.3060,
		}},
		{"Sequoia", []float32{0.6342, 0.1079, 0.0570, 0.0225, 0.0195, 0.0150}, map[int]float64{
			1: 1, 2: 1.6342, 4: 2.2914, 8: 2.7322, 16: 3.1303, 32: 3.5007,
		}},
	} {
		tree := fullTree(c.acceptance, 600)
		for nodes, want := range c.tokens {
			chosen, expected := choose(tree, nodes)
			if math.Abs(expected-want) > 1.5e-4 || len(chosen) != nodes-1 {
				t.Errorf("%s, %d nodes: %.4f tokens by %d drafts, want %.4f", c.name, nodes, expected, len(chosen), want)
			}
			in := map[int32]bool{method.Root: true}
			for _, i := range chosen {
				if !in[tree.Nodes()[i].Parent] {
					t.Errorf("%s, %d nodes: guess %d without its parent", c.name, nodes, i)
				}
				in[i] = true
			}
		}
	}
}

// choose plans with steps that cost the same up to a number of rows, and cannot be paid beyond.
func choose(tree *method.Tree, rows int) (chosen []int32, tokens float64) {
	p := Planner{Throughput: Throughput{1, 1}}
	for n := 1; n < len(p.table); n++ {
		p.table[n] = 1
		if n > rows {
			p.table[n] = 1e9
		}
	}
	p.Choose(tree)
	chosen = p.Chosen()
	tokens = 1
	for _, i := range chosen {
		tokens += float64(tree.Nodes()[i].Score)
	}
	return chosen, tokens
}

// TestChain expects the best length of a chain on a curve of costs: the one that gives the most tokens a second.
func TestChain(t *testing.T) {
	points := Curve{X: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32}, Y: []float64{100, 104, 108, 112, 118, 122, 126, 130, 140, 160, 190, 200, 260, 340}}
	for _, alpha := range []float32{0.02, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99} {
		tree := fullTree([]float32{alpha}, 60)
		p := Planner{Throughput: Throughput{1, 100}}
		best, most := 0, 0.0
		expected, path := 1.0, 1.0
		for n := 1; n < len(p.table); n++ {
			p.table[n] = points.At(n)
			if rate := expected / p.table[n]; rate > most && (n == 1 || rate > (1+gainNeeded)/p.table[1]) {
				best, most = n-1, rate
			}
			if n <= 60 {
				path *= float64(alpha)
				expected += path
			}
		}
		p.Choose(tree)
		chosen := p.Chosen()
		if len(chosen) != best {
			t.Errorf("acceptance %v: %d drafts, want %d", alpha, len(chosen), best)
		}
	}
}

// TestTurn: a drafter that costs more than it brings is asked ever less, over texts too; one that begins to pay is asked
// always; reading a prompt is not held against it.
func TestTurn(t *testing.T) {
	var turn Turn
	texts := func(n int, worth float64) (asked int) {
		for range n {
			turn.Begin()
			for round, first := 0, true; round < 40; round++ {
				if !turn.Due(0.5) {
					continue
				}
				asked++
				if first {
					turn.Judge(-100)
				} else {
					turn.Judge(worth)
				}
				first = false
			}
		}
		return asked
	}
	if n := texts(20, -1); n < 4 || n > 20 {
		t.Errorf("asked %d times in 800 rounds, although it is not worth it", n)
	}
	if n := texts(200, 2); n < 200*30 {
		t.Errorf("asked %d times in 8000 rounds, although it is worth it by now", n)
	}
	if n := texts(1, 2); n != 40 {
		t.Errorf("asked %d times in 40 rounds that it is worth it in", n)
	}
}

// TestShareMost: rounds that share a step run no more drafts than each of them may.
func TestShareMost(t *testing.T) {
	rounds := []*Planner{{Most: 2}, {Most: 3}, {}}
	for _, p := range rounds {
		p.table[1] = 1
		p.Choose(fullTree([]float32{0.9}, 5))
	}
	if n := Share(rounds, 30, 1, func(int) float64 { return 1 }); n != 10 {
		t.Errorf("%d drafts run, want 10", n)
	}
	for i, want := range []int{2, 3, 5} {
		if n := len(rounds[i].Chosen()); n != want {
			t.Errorf("round %d runs %d drafts, want %d", i, n, want)
		}
	}
}

// TestObserve: a step that was far off moves the correction of its size as one of twice or half the prediction does, and a step beyond
// the sizes that were measured none.
func TestObserve(t *testing.T) {
	for _, c := range []struct {
		rows    int
		seconds float64
		want    float64
	}{{4, 1, 1}, {4, 1.5, 1 + 0.5/32}, {4, 2, 1 + 1.0/32}, {4, 100, 1 + 1.0/32}, {4, 0.5, 1 - 0.5/32}, {4, 0, 1 - 0.5/32}, {5, 2, 1}} {
		cost := Cost{Rows: []int{1, 4}, Layers: []float64{1, 1}, Correction: []float64{1, 1}}
		cost.Observe(StepSize{Rows: c.rows}, c.seconds)
		if cost.Correction[0] != 1 || math.Abs(cost.Correction[1]-c.want) > 1e-12 {
			t.Errorf("a step of %d rows in %v s: corrections %v, want %v", c.rows, c.seconds, cost.Correction, c.want)
		}
	}
}
