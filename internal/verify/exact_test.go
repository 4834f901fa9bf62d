package verify

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"grove/internal/text/token"
)

var (
	toyP = []float64{0.6, 0.3, 0.1}
	toyQ = []float64{0.2, 0.5, 0.3}
)

// TestAcceptance compares the probability that a draft is accepted with worked numbers, and the text with the target.
func TestAcceptance(t *testing.T) {
	for _, c := range []struct {
		rule         Rule
		draws, width int
		drawless     bool
		want         float64
	}{
		{rule: Reject, width: 1, want: 3.0 / 5},
		{rule: Reject, width: 2, want: 129.0 / 175},
		{rule: Reject, width: 3, want: 1},
		{rule: Block, width: 1, want: 3.0 / 5},
		{rule: SpecInfer, draws: 1, want: 3.0 / 5},
		{rule: SpecInfer, draws: 2, want: 17.0 / 25},
		{rule: SpecInfer, draws: 3, want: 93.0 / 125},
		{rule: Traversal, width: 1, want: 3.0 / 5}, // without deeper drafts it is recursive rejection
		{rule: Traversal, width: 2, want: 129.0 / 175},
		{rule: Traversal, width: 3, want: 1},
		{rule: TraversalIID, draws: 2, want: 17.0 / 25},
		{rule: TraversalIID, draws: 3, want: 93.0 / 125},
		{rule: KSEQ, draws: 1, want: 3.0 / 5},
		{rule: KSEQ, draws: 2, want: 0.708062},
		{rule: KSEQ, draws: 3, want: 0.789674},
		{rule: KSEQ, draws: 4, want: 0.850077},
		{rule: Match, width: 1, want: 0.3},
		{rule: Match, width: 2, want: 171.0 / 280},
		{rule: Match, width: 3, want: 1},
		{rule: Reject, width: 2, drawless: true, want: 171.0 / 280},
		{rule: Block, width: 1, drawless: true, want: 0.3},
		{rule: KSEQ, width: 1, drawless: true, want: 0.3},
		{rule: SpecInfer, width: 1, drawless: true, want: 0.3},
		{rule: Traversal, width: 2, drawless: true, want: 171.0 / 280},
	} {
		name := fmt.Sprintf("%s, %d draws, drawless %v", c.rule.Name, c.draws+c.width, c.drawless)
		g := game{rule: c.rule, p: steady(toyP...), q: steady(toyQ...), draws: c.draws, width: c.width, depth: 1, drawless: c.drawless}
		_, accepts, _ := g.play(t)
		nearly(t, name+": acceptance", accepts, c.want)
		nearly(t, name+": distance from the target", g.error(t), 0)
	}
}

// TestBlockTokens compares the expected tokens of a round with worked numbers, for chains of 1, 2 and 3 drafts.
func TestBlockTokens(t *testing.T) {
	p, q := steady(1.0/3, 2.0/3), steady(2.0/3, 1.0/3)
	for rule, want := range map[string][]float64{
		"block":         {5.0 / 3, 20.0 / 9, 8.0 / 3},
		"traversal":     {5.0 / 3, 20.0 / 9, 8.0 / 3},
		"traversal-iid": {5.0 / 3, 20.0 / 9, 8.0 / 3},
		"reject":        {5.0 / 3, 19.0 / 9, 65.0 / 27},
		"specinfer":     {5.0 / 3, 19.0 / 9, 65.0 / 27},
		"kseq":          {5.0 / 3, 19.0 / 9, 65.0 / 27},
	} {
		r, err := Find(rule)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range want {
			g := game{rule: r, p: p, q: q, width: 1, depth: i + 1}
			_, _, tokens := g.play(t)
			nearly(t, fmt.Sprintf("%s: tokens of a round with %d drafts", rule, i+1), tokens, want)
		}
	}
}

// TestMatchTokens compares the expected tokens of a round with worked numbers, for the best trees of up to 15 drafts
// where the drafts of a node are accepted with probabilities 0.6, 0.2 and 0.1.
func TestMatchTokens(t *testing.T) {
	p := steady(0.6, 0.2, 0.1, 0.1)
	y, score := newToy(p, nil, nil), []float64{}
	for n, want := range []float64{1, 1.6, 1.96, 2.176, 2.376, 2.5056, 2.6256, 2.7456, 2.8456, 2.9234, 2.9954, 3.0674,
		3.1394, 3.1994, 3.2594, 3.3060} {
		if n > 0 { // the likeliest draft that is not in the tree joins it
			best, most := draft{}, 0.0
			for parent := Root; parent < len(y.drafts); parent++ {
				above := 1.0
				if parent != Root {
					above = score[parent]
				}
				kids := y.Children(nil, parent)
				if len(kids) < 3 && above*p[0][len(kids)] > most {
					best, most = draft{parent: parent, id: token.ID(len(kids))}, above*p[0][len(kids)]
				}
			}
			y.drafts, score = append(y.drafts, best), append(score, most)
		}
		tokens := 0.0
		y.outcomes(t, Match.New(), func(r result, chance float64) { tokens += chance * float64(len(r.accepted)+1) })
		if tokens-want > 5e-5 || want-tokens > 5e-5 {
			t.Errorf("%d drafts: %v tokens, want %v", n, tokens, want)
		}
	}
}

// TestBound compares the factors of K-SEQ with worked numbers.
func TestBound(t *testing.T) {
	q := over(toyQ)
	for draws, want := range map[int]float64{1: 1, 2: 1.540312, 3: 1.948368, 4: 2.250387} {
		rho, _ := bound(toyP, q.IDs, toyQ, draws)
		nearly(t, fmt.Sprintf("rho of %d draws", draws), rho, want)
	}
	rho, beta := bound(toyQ, q.IDs, toyQ, 5)
	nearly(t, "rho of equal distributions", rho, 1)
	nearly(t, "beta of equal distributions", beta, 1)
	if _, beta := bound([]float64{1, 0, 0}, q.IDs[1:], toyQ[1:], 5); beta != 0 {
		t.Errorf("beta of distributions that share no token: %v, want 0", beta)
	}
}

// lossless are the shapes of trees in which rules are compared with the target.
var lossless = []game{
	{rule: Match, width: 2, depth: 2, drawless: true},
	{rule: Block, width: 1, depth: 1},
	{rule: Block, width: 1, depth: 2},
	{rule: Block, width: 1, depth: 3},
	{rule: Reject, width: 1, depth: 2},
	{rule: Reject, width: 2, depth: 2},
	{rule: Reject, width: 3, depth: 1},
	{rule: SpecInfer, draws: 2, depth: 2},
	{rule: SpecInfer, draws: 3, depth: 1},
	{rule: Traversal, width: 1, depth: 3},
	{rule: Traversal, width: 2, depth: 2},
	{rule: Traversal, width: 3, depth: 1},
	{rule: TraversalIID, draws: 2, depth: 2},
	{rule: TraversalIID, draws: 3, depth: 1},
	{rule: KSEQ, draws: 1, depth: 2},
	{rule: KSEQ, draws: 2, depth: 2},
	{rule: KSEQ, draws: 4, depth: 1},
}

// randomTable returns a model of n tokens, some of them without probability.
func randomTable(r *rand.Rand, n int) table {
	t := make(table, n+1)
	for i := range t {
		t[i] = randomRow(r, n)
	}
	return t
}

func randomRow(r *rand.Rand, n int) []float64 {
	p, sum := make([]float64, n), 0.0
	for sum == 0 {
		for i := range p {
			if r.IntN(4) > 0 {
				p[i] = float64(1 + r.IntN(64))
				sum += p[i]
			}
		}
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// losses are ways in which drafts are not run. That they look at the tokens must not change the text.
var losses = map[string]func(y *toy, node int) bool{
	"all are run": nil,
	"the second draft behind a node, and what follows it": func(y *toy, node int) bool {
		return y.drafts[node].samples&1 == 0
	},
	"space for three": func(_ *toy, node int) bool { return node >= 3 },
	"no space":        func(*toy, int) bool { return true },
	"by token":        func(y *toy, node int) bool { return y.drafts[node].id == 0 },
	"by probability": func(y *toy, node int) bool {
		return y.q != nil && y.q[y.row(y.drafts[node].parent)].Of(y.drafts[node].id) < 0.5
	},
}

// TestExact recovers the target's distribution of whole texts from random tables, by enumeration of all trees of drafts
// and all outcomes.
func TestExact(t *testing.T) {
	tables := 6
	if testing.Short() {
		tables = 2
	}
	for _, r := range Rules() {
		if r.Grade != Lossy && !slices.ContainsFunc(lossless, func(g game) bool { return g.rule.Name == r.Name }) {
			t.Errorf("rule %s is %s, and the list lossless has no tree for it", r.Name, r.Grade)
		}
	}
	for _, g := range lossless {
		r := rand.New(rand.NewPCG(1, uint64(g.depth)))
		for i := range tables {
			g.p, g.q = randomTable(r, 3), randomTable(r, 3)
			for name, lost := range losses {
				g.prepare = func(y *toy) { y.lost = lost }
				if e := g.error(t); e > 1e-6 {
					t.Errorf("%s, %d draws, depth %d, table %d, %s: a text's probability is off by %v",
						g.rule.Name, g.draws+g.width, g.depth, i, name, e)
				}
			}
		}
	}
}

// TestPlantedBugs shows that TestExact fails where drafts are not what a rule needs.
func TestPlantedBugs(t *testing.T) {
	half, skewed := steady(0.5, 0.5), steady(0.75, 0.25)
	hidden := func(y *toy) { y.hide, y.lost = true, losses["by probability"] }
	for _, c := range []struct {
		name string
		game
	}{
		{"a draft is removed for its probability", game{rule: Reject, p: half, q: skewed, width: 1, depth: 1, prepare: hidden}},
		{"the same in a chain", game{rule: Block, p: half, q: skewed, width: 1, depth: 1, prepare: hidden}},
		{"drawn from another distribution", game{rule: KSEQ, p: steady(toyP...), q: steady(toyQ...), draws: 2, depth: 1,
			prepare: func(y *toy) { y.q = newToy(steady(toyP...), steady(0.5, 0.2, 0.3), nil).q }}},
		{"without replacement", game{rule: KSEQ, p: steady(toyP...), q: steady(toyQ...), width: 2, depth: 1}},
		{"without replacement, by the rule of independent draws", game{rule: SpecInfer, p: steady(0.45, 0.45, 0.1), q: steady(0.2, 0.3, 0.5), width: 2, depth: 1}},
		{"the same from the leaves on", game{rule: TraversalIID, p: steady(toyP...), q: steady(toyQ...), width: 2, depth: 2}},
		{"a draft with leaves is removed for its probability", game{rule: Traversal, p: half, q: skewed, width: 2, depth: 2, prepare: hidden}},
		{"equal draws are tested together", game{rule: KSEQ, p: steady(toyP...), q: steady(toyQ...), draws: 3, depth: 1,
			prepare: group}},
	} {
		if e := c.error(t); e < 1e-3 {
			t.Errorf("%s: texts are off by %v only: the check cannot fail", c.name, e)
		}
	}
}

// group moves equal draws next to each other.
func group(y *toy) {
	k := 0
	for i := range y.drafts {
		n := bits.OnesCount64(y.drafts[i].samples)
		y.drafts[i].samples = (1<<n - 1) << k
		k += n
	}
}
