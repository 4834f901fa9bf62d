package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"grove/internal/forest"
	"grove/method"
)

// TestResumed holds the predicted time of steps with resumed rows to the sum over layers, each of which runs the rows that have not passed it.
func TestResumed(t *testing.T) {
	c := &Cost{
		Rows: []int{1, 2, 4, 8}, Layers: []float64{10, 12, 15, 24}, Head: Curve{X: []int{1, 4, 8}, Y: []float64{3, 3.5, 5}},
		Depth: Curve{X: []int{1, 8}, Y: []float64{0.01, 0.02}}, Correction: []float64{1, 1.5, 1, 1},
	}
	const layers, depth = 8, 50
	for _, lives := range [][]int{{3, 3, 3, 0}, {3, 0, 0, 0}, {7, 5, 5, 0}, {1, 1, 1, 1}, {0, 0, 0, 0}} { // of the text's last token, and of a chain
		p := &Planner{Layers: layers}
		p.Begin(c, depth)
		tree := method.NewTree(8, 10)
		tree.Reset(8, method.NewRates(1))
		if lives[0] > 0 {
			tree.Resume(method.Root, method.Live{Node: 1, Layer: lives[0]})
		}
		at := method.Root
		for i, l := range lives[1:] {
			if at = tree.Add(at, 1, 0, 0.9); l > 0 {
				tree.Resume(at, method.Live{Node: forest.Node(i + 2), Parent: forest.Node(i + 1), Layer: l})
			}
		}
		least := layers // the planner takes rows at several layers for rows at the first of these
		for _, l := range lives {
			if l > 0 {
				least = min(least, l)
			}
		}
		p.tree = tree
		r := p.resume(tree)
		for n := 0; n <= tree.Len(); n++ {
			if n > 0 {
				r.add(int32(n - 1))
			}
			want := c.Seconds(StepSize{Rows: n + 1, Depth: depth, Logits: n + 1}) - c.Seconds(StepSize{Rows: n + 1, Depth: depth})
			for l := range layers {
				rows := 0
				for _, from := range lives[:n+1] {
					if from == 0 || l >= least {
						rows++
					}
				}
				if rows > 0 {
					want += c.Seconds(StepSize{Rows: rows, Depth: depth}) / layers
				}
			}
			if got := r.seconds(n + 1); math.Abs(got-want) > 1e-9 {
				t.Errorf("rows left at %v, %d drafts: %v s, want %v", lives, n, got, want)
			}
		}
	}
}

// TestExtra: extra rows count as rows that run anew, behind the text always and behind a draft where that runs, up to as many as there is room for.
func TestExtra(t *testing.T) {
	c := &Cost{Rows: []int{1, 80}, Layers: []float64{10, 89}, Head: Curve{X: []int{1}, Y: []float64{0}}, Correction: []float64{1, 1}} // a row costs 1
	p := &Planner{Layers: 10, MaxDrafts: 6}
	p.Begin(c, 0)
	tree := method.NewTree(8, 10)
	tree.Reset(8, method.NewRates(1))
	tree.Resume(method.Root, method.Live{Node: 1, Layer: 5})
	first := tree.Add(method.Root, 1, 0, 0.9)
	second := tree.Add(first, 2, 0, 0.9)
	for node, n := range map[int]int{method.Root: 2, first: 1, second: 4} {
		for range n {
			tree.AddExtra(node, method.Root, forest.Row{})
		}
	}
	p.tree = tree
	r := p.resume(tree)
	resumed := func(rows, fresh float64) float64 { return 9 + rows - (rows-fresh)/2 }
	for n, want := range []float64{resumed(3, 2), resumed(5, 4), resumed(7, 6)} { // 10 rows have no room
		if n > 0 {
			r.add(int32(n - 1))
		}
		if got := r.seconds(n + 1); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d drafts: %v s, want %v", n, got, want)
		}
	}
	for _, step := range []struct{ chosen, room, want int }{{0, 64, 2}, {1, 64, 3}, {2, 64, 4}, {2, 3, 3}, {2, 0, 0}} {
		p.noExtra = false
		p.chosen = []int32{0, 1}[:step.chosen]
		if p.LimitExtra(step.room); p.ExtraRows() != step.want {
			t.Errorf("%+v: %d", step, p.ExtraRows())
		}
	}
	p.LimitExtra(64)
	if fewer := p.Limit(0); fewer == 0 || p.ExtraRows() != 0 || p.Limit(0) != 0 {
		t.Errorf("limited to nothing: %d fewer, %d extra rows", fewer, p.ExtraRows())
	}
}

// TestLateRows: layers that extra rows do not run cost nothing.
func TestLateRows(t *testing.T) {
	c := &Cost{Rows: []int{1, 80}, Layers: []float64{10, 89}, Head: Curve{X: []int{1}, Y: []float64{0}}, Correction: []float64{1, 1}} // a row costs 1, a tenth a layer
	p := &Planner{Layers: 10, MaxDrafts: 20}
	p.Begin(c, 0)
	tree := method.NewTree(8, 10)
	tree.Reset(8, method.NewRates(1))
	at := tree.Add(method.Root, 1, 0, 0.9)
	for node, skip := range map[int]int{method.Root: 5, at: 3} {
		for range 2 {
			tree.AddExtra(node, method.Root, forest.Row{Skip: forest.LayerRange(0, skip)})
		}
	}
	p.tree = tree
	r := p.resume(tree)
	if got, want := r.seconds(1), 10+2*0.5; math.Abs(got-want) > 1e-9 {
		t.Errorf("two rows that begin at layer 5: %v s, want %v", got, want)
	}
	r.add(0)
	if got, want := r.seconds(2), 11+2*0.5+2*0.7; math.Abs(got-want) > 1e-9 {
		t.Errorf("two more that begin at layer 3: %v s, want %v", got, want)
	}
}

// chained is a text whose drafts come from the first layers of its model, in time that passes as a cost predicts it.
type chained struct {
	p           Planner
	turn        Backoff
	rates       *method.Rates
	cost        *Cost
	rng         *rand.Rand
	exit, depth int
	adapter     float64 // what a module behind them costs, in layers
	alpha       float64 // share of drafts that are accepted
	asked       int
	took, plain float64
}

// round drafts, verifies, and adds the time that this takes.
func (x *chained) round(tree *method.Tree) {
	x.p.Begin(x.cost, 100)
	tree.Reset(x.depth, x.rates)
	tree.Floor, tree.Throughput, tree.Steps = x.p.Least(), x.p.Throughput.Rate(), &x.p
	x.p.Spent = 0
	spent, gain, pass := 0.0, x.p.Choose(tree), x.p.LayerSeconds(1, x.exit)+x.adapter*x.p.LayerSeconds(1, 1)+x.p.HeadSeconds(1)
	if x.turn.Due(gain) {
		x.asked++
		live := method.Live{Node: 1, Layer: x.exit}
		for at := method.Root; ; {
			spent += pass
			tree.Resume(at, live)
			if at = tree.Add(at, 1, 0, 0.7); at == method.Root || tree.DepthOf(at) == x.depth || 0.7*float64(tree.Score(at)) <= tree.Throughput*pass {
				break
			}
			live.Node, live.Parent = live.Node+1, live.Node
		}
		x.p.Spent = spent
		gain = x.p.Choose(tree)
		x.turn.Observe(gain - x.p.Throughput.Rate()*spent)
	}
	r, tokens, at := x.p.resume(tree), 1, method.Root
	for _, c := range x.p.Chosen() {
		n := &tree.Nodes()[c]
		if r.add(c); tokens == int(n.Depth) && x.rng.Float64() < x.alpha {
			tokens++
			tree.Learn(at, 1)
			at = int(c)
		}
	}
	tree.Learn(at, 2)
	took := spent + r.seconds(len(x.p.Chosen())+1)
	x.p.Throughput.Add(tokens, took)
	x.took, x.plain = x.took+took, x.plain+float64(tokens)*x.p.StepSeconds(1)
}

// kangaroo is what attention without a feed-forward block costs, in layers.
const kangaroo = 1.0 / 3

// TestLayerDrafting replays texts at the costs of models: drafting on the first layers goes on where it pays, and stops where the model has
// too few layers, or its drafts are seldom accepted.
func TestLayerDrafting(t *testing.T) {
	for _, c := range []struct {
		cost         string
		layers, exit int
		adapter      float64
		alpha        float64
		pays         bool
	}{
		{"7b-q4_0", 32, 8, 0, 0.8, true}, {"7b-q4_0", 32, 8, 0, 0.1, false}, {"7b-q4_0", 32, 30, 0, 0.9, false},
		{"0.5b-q8_0", 24, 6, 0, 0.85, true}, {"0.5b-q8_0", 24, 6, 0, 0.2, false}, {"gopher", 4, 2, 0, 0.5, false}, {"gopher", 4, 3, 0, 0.7, false},
		{"7b-q4_0", 32, 2, kangaroo, 0.6, true}, {"7b-q4_0", 32, 2, kangaroo, 0.05, false}, {"0.5b-q8_0", 24, 2, kangaroo, 0.6, true}, {"gopher", 4, 1, kangaroo, 0.4, false},
	} {
		text, err := os.ReadFile("../../../bench/costs/" + c.cost + ".json")
		if err != nil {
			t.Fatal(err)
		}
		cost := new(Cost)
		if err := json.Unmarshal(text, cost); err != nil {
			t.Fatal(err)
		}
		x := &chained{p: Planner{Layers: c.layers}, rates: method.NewRates(1), cost: cost, rng: rand.New(rand.NewPCG(1, 2)), exit: c.exit, adapter: c.adapter, depth: 6, alpha: c.alpha}
		tree := method.NewTree(8, 10)
		const rounds = 600
		for range rounds {
			x.round(tree)
		}
		faster := x.plain / x.took
		says := fmt.Sprintf("%s, %d of %d layers, %.2f accepted: asked in %d of %d rounds, %.2f times as fast", c.cost, c.exit, c.layers, c.alpha, x.asked, rounds, faster)
		t.Log(says)
		if c.pays && (x.asked < 9*rounds/10 || faster < 1.1) || !c.pays && (x.asked > rounds/10 || faster < 0.97) {
			t.Error(says)
		}
	}
}
