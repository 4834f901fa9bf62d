package verify

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/internal/text/token"
	"grove/internal/verify/reference"
)

// references are the rules as package reference has them.
var references = reference.Rules(importance, 0.5)

var keyedHead = &Head{Weight: []float32{1, 0.25}, Bias: -1.5, Threshold: 0.5}

// importance is that of the last token and the length of a text, of which the first token is the prompt.
func importance(text []int) float64 {
	return keyedHead.Importance([]float32{float32(text[len(text)-1]), float32(len(text) - 1)})
}

// keyed is a toy whose random numbers depend on their place alone, as those of the engine do.
type keyed struct {
	*toy
	seed uint64
}

func (k keyed) number(place, use int) float64 {
	return rand.New(rand.NewPCG(k.seed, uint64(place)<<32|uint64(use))).Float64()
}

func (k keyed) draw(p []float64, place, use int) int {
	u := k.number(place, use)
	for x, v := range p {
		if u -= v; u < 0 && v > 0 {
			return x
		}
	}
	return slices.Index(p, slices.Max(p)) // rounding
}

func (k keyed) Number(node int, use Purpose) float64 { return k.number(1+k.depth(node), int(use)) }

func (k keyed) Draw(node int) (token.ID, error) {
	return token.ID(k.draw(k.p[k.row(node)], 1+k.depth(node), 0)), nil
}

func (k keyed) Pick(node int, p []float64) token.ID {
	return token.ID(k.draw(p, 1+k.depth(node), int(PurposeNext)))
}

// dice are the same numbers for the reference.
type dice struct{ keyed }

func (d dice) Draw(text []int, p []float64) int { return d.draw(p, len(text), 0) }

func (d dice) Pick(p []float64, place int) int { return d.draw(p, place, int(PurposeNext)) }

func (d dice) Pass(chance float64, place, test int) bool {
	return d.number(place, int(PurposeTest)+int(NodePurposes)*test) < chance
}

// grown copies a reference's tree to a toy, equal draws as one draft.
func (y *toy) grown(n *reference.Node, at int) {
	for k, child := range n.Next {
		if i := slices.Index(n.Next, child); i < k {
			continue
		}
		d := draft{parent: at, id: token.ID(child.Token)}
		for j, other := range n.Next {
			if other == child && n.Q != nil {
				d.samples |= 1 << j
			}
		}
		y.drafts = append(y.drafts, d)
		y.grown(child, len(y.drafts)-1)
	}
}

// drawless makes drafts of a tree that are no draws.
func drawless(n *reference.Node) {
	n.Q = nil
	for _, child := range n.Next {
		drawless(child)
	}
}

// TestReference expects every rule to accept the drafts that the reference accepts of random tables and trees by the same random
// numbers, and to go on with the same token.
func TestReference(t *testing.T) {
	for _, rule := range Rules() {
		a := WithHead(rule, keyedHead).New()
		t.Run(rule.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				for round := range uint64(10) {
					compareRound(t, rule, a, seed+round)
				}
			})
		})
	}
}

// compareRound compares a rule with the reference on a table and a tree that a seed makes.
func compareRound(t *rapid.T, rule Rule, a Acceptor, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 9))
	vocabulary := 2 + r.IntN(9)
	y := newToy(randomTable(r, vocabulary), randomTable(r, vocabulary), nil)
	widths := []int{1, 1, 1, 1}
	if !rule.Needs.Chain {
		widths = [][]int{{1, 1, 1}, {2, 2, 1}, {4, 1}, {3, 2}, {1, 3}}[r.IntN(5)]
	}
	behind := func(rows table) reference.Model {
		return func(text []int) []float64 {
			if len(text) == 1 {
				return rows[len(rows)-1]
			}
			return rows[text[len(text)-1]]
		}
	}
	q := make(table, len(y.q))
	for i := range q { // as float32 has them
		q[i] = make([]float64, vocabulary)
		for j, id := range y.q[i].IDs {
			q[i][id] = float64(y.q[i].P[j])
		}
	}
	own := dice{keyed{y, seed + 1}} // of the drafter
	root := reference.Draws(behind(q), rule.Needs.WithReplacement, widths, pcg{r, own})([]int{0})
	if r.IntN(4) == 0 {
		drawless(root)
		y.q = nil
	}
	y.grown(root, Root)
	view := keyed{y, seed}
	path, next := reference.Round([]int{0}, behind(y.p), func([]int) *reference.Node { return root }, references[rule.Name], dice{view})
	var want, got []token.ID
	for _, n := range path {
		want = append(want, token.ID(n.Token))
	}
	var out Outcome
	y.reset()
	if err := a.Accept(view, &out); err != nil || y.misuse != "" {
		t.Fatal(err, y.misuse)
	}
	for _, n := range out.Accepted {
		got = append(got, y.Token(n))
	}
	if d := cmp.Diff(append(want, token.ID(next)), append(got, out.Next)); d != "" {
		t.Errorf("seed %d, %d drafts (-reference +rule):\n%s", seed, len(y.drafts), d)
	}
}

// pcg are dice of a drafter, which fall anew each time.
type pcg struct {
	*rand.Rand
	dice
}

func (p pcg) Pick(q []float64, _ int) int {
	p.seed = p.Uint64()
	return p.draw(q, 0, 0)
}
