package plan

import (
	"math"
	"slices"
	"testing"

	"grove/internal/text/token"
	"grove/method"
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

// TestTurn: a drafter that costs more than it brings is asked ever less, over texts too, and the less the more it cost; one that begins to pay is asked
// always, unless reading the prompts costs more than it brings in texts of their length.
func TestTurn(t *testing.T) {
	const length = 40
	for _, c := range []struct {
		name         string
		prompt       float64 // tokens that reading one costs
		worth        float64
		texts        int
		least, most  int // times that it is asked
		before       float64
		textsOfWorth int // before that
	}{
		{"it is not worth it", 0, -1, 20, 4, 22, 0, 0},
		{"nor for long", 0, -1, 2000, 100, 2000, 0, 0},
		{"prompts cost much", 20, -1, 2000, 20, 140, 0, 0},
		{"it begins to pay", 5, 2, 200, 100 * length, 200 * length, -1, 20},
		{"it pays from the beginning", 5, 2, 20, 20 * length, 20 * length, 0, 0},
		{"prompts cost more than texts bring", 100, 2, 200, 4, 10 * length, 0, 0},
	} {
		var turn Backoff
		texts := func(n int, worth float64) (asked int) {
			for range n {
				turn.Begin()
				for round, first := 0, true; round < length; round++ {
					if !turn.Due(0.5) {
						continue
					}
					if asked++; first {
						turn.Observe(worth - c.prompt)
					} else {
						turn.Observe(worth)
					}
					first = false
				}
			}
			return asked
		}
		texts(c.textsOfWorth, c.before)
		if n := texts(c.texts, c.worth); n < c.least || n > c.most {
			t.Errorf("%s: asked %d times in %d rounds, want %d to %d", c.name, n, c.texts*length, c.least, c.most)
		}
	}
}

// TestShareMost: rounds that share a step run no more drafts than each of them may.
func TestShareMost(t *testing.T) {
	rounds := []*Planner{{MaxDrafts: 2}, {MaxDrafts: 3}, {}}
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

// costing returns a planner whose steps of rows take the given seconds, and as long as the last for more.
func costing(seconds ...float64) *Planner {
	p := &Planner{Throughput: Throughput{1, 1}}
	for n := 1; n < len(p.table); n++ {
		p.table[n] = seconds[min(n, len(seconds))-1]
	}
	return p
}

// TestGain expects what the chosen drafts promise, less the tokens that their time is worth, and none by which a step gives less than
// 3 % more.
func TestGain(t *testing.T) {
	for _, c := range []struct {
		score   float32
		seconds []float64
		drafts  int
		gain    float64
	}{
		{0.9, []float64{1, 1.2, 9}, 1, 0.7}, {0.5, []float64{1, 1, 1.25}, 1, 0.5}, {0.04, []float64{1, 1, 9}, 1, 0.04}, {0.02, []float64{1, 1, 9}, 0, 0},
	} {
		p := costing(c.seconds...)
		gain := p.Choose(fullTree([]float32{c.score}, 2))
		if len(p.Chosen()) != c.drafts || math.Abs(gain-c.gain) > 1e-6 {
			t.Errorf("a score of %v: %d drafts promise %v, want %d and %v", c.score, len(p.Chosen()), gain, c.drafts, c.gain)
		}
	}
}

// TestTrials expects drafts that do not pay to be run now and then, ever more rarely.
func TestTrials(t *testing.T) {
	p, tree := costing(1, 9), fullTree([]float32{0.6}, 4)
	var at []int
	for round := range 1600 {
		if p.Choose(tree); len(p.Chosen()) > 0 {
			at = append(at, round+1)
		}
	}
	if want := []int{32, 96, 224, 480, 992, 1504}; !slices.Equal(at, want) {
		t.Errorf("drafts were run in the rounds %v, want %v", at, want)
	}
}

// TestShareBeyondDip: where a further row does not pay by itself, and one more does, all rounds keep theirs.
func TestShareBeyondDip(t *testing.T) {
	a, b := costing(1), costing(1)
	a.Choose(fullTree([]float32{0.9}, 2))
	b.Choose(fullTree([]float32{0.85}, 1))
	if n := Share([]*Planner{a, b}, 9, 2, func(n int) float64 { return []float64{1, 1, 1.35, 1.35}[n] }); n != 3 || len(a.Chosen()) != 2 || len(b.Chosen()) != 1 {
		t.Errorf("%d drafts, %d of the first round and %d of the second; want 3, 2 and 1", n, len(a.Chosen()), len(b.Chosen()))
	}
}

// TestAskedAgain: a drafter that was worth it, and no longer is, is asked once more.
func TestAskedAgain(t *testing.T) {
	d := Backoff{rounds: firstRounds, worth: -1, again: true, probe: pause{left: 10}}
	for i, want := range []bool{true, false, false} {
		if d.Due(0) != want {
			t.Errorf("round %d: asked is %v", i, !want)
		}
	}
}

// TestNotAsked: rounds in which a drafter is not asked teach nothing about it.
func TestNotAsked(t *testing.T) {
	c := Credit{rounds: trialRounds, seconds: 1, probe: pause{left: 9}}
	before := c
	if c.Due(1e9) {
		t.Fatal("it is asked")
	}
	c.Observe(5)
	if before.calls = c.calls; c.rounds != before.rounds || c.gain != before.gain || c.given != 0 {
		t.Errorf("%+v, want %+v", c, before)
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		limit float64
		most  int
		want  int
	}{{3, 10, 3}, {3.5, 10, 3}, {0.5, 10, 0}, {100, 10, 10}, {3, 0, 0}, {3, -1, 0}} {
		if got := Within(c.limit, c.most, func(n int) float64 { return float64(n) }); got != c.want {
			t.Errorf("within %v of %d at a second each: %d, want %d", c.limit, c.most, got, c.want)
		}
	}
}

// TestCount expects the figures of a round whose best draft was accepted and whose third was not run.
func TestCount(t *testing.T) {
	p := costing(1)
	p.Choose(fullTree([]float32{0.9}, 3))
	var s Stats
	s.Count(p, 2, []int{0}, func(place int32) bool { return place < 2 }, 3, 4)
	want := Stats{Rounds: 1, Tokens: 2, Drafted: 2, Accepted: 1, Drafting: 3, Stepping: 4}
	want.RanByRank[0], want.RanByRank[1], want.RanByRank[2], want.AcceptedByRank[0] = 1, 1, 1, 1
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}
