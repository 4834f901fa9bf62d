package draft

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"grove/internal/stat"
	"grove/method"
	"grove/sample"
	"grove/text/token"
	"grove/verify"
)

// randomTable is a model of n tokens with random log-probabilities.
func randomTable(n int, seed uint64) *table {
	rng := rand.New(rand.NewPCG(seed, 7))
	m := &table{context: 100, chunk: 64}
	for range n {
		row := make([]float64, n)
		for i := range row {
			row[i] = 1.2 * rng.NormFloat64()
		}
		m.next = append(m.next, row)
	}
	return m
}

func softmax(logits []float64) []float64 {
	p, sum := make([]float64, len(logits)), 0.0
	for i, l := range logits {
		p[i] = math.Exp(float64(float32(l)))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// round is a tree of drafts behind a token, as a rule sees it.
type round struct {
	*method.Tree
	target *table
	last   token.ID
	rng    *rand.Rand
}

func (r *round) Children(dst []int, node int) []int {
	for _, id := range r.Tree.Children(nil, node) {
		child, _ := r.Child(node, id)
		dst = append(dst, child)
	}
	return dst
}

func (r *round) Token(node int) token.ID {
	if node == method.Root {
		return r.last
	}
	return r.Nodes()[node].ID
}

func (r *round) Ran(int) bool { return true }

func (r *round) Samples(node int) uint64 {
	return 1 << slices.Index(r.Tree.Children(nil, int(r.Nodes()[node].Parent)), r.Token(node))
}

func (r *round) Drafts(node int) verify.Distribution { return r.Laws()[node+1] }

func (r *round) Draw(int) (token.ID, error) {
	return token.None, errors.New("a rule for draws asks for a plain draw")
}

func (r *round) Probs(node int) ([]float64, error) { return softmax(r.target.next[r.Token(node)]), nil }

func (r *round) Number(int, verify.Use) float64 { return r.rng.Float64() }

func (r *round) Pick(_ int, p []float64) token.ID { return pick(r.rng, p) }

// pick draws a token from p.
func pick(rng *rand.Rand, p []float64) token.ID {
	x := rng.Float64()
	for id, v := range p {
		if x -= v; x < 0 {
			return token.ID(id)
		}
	}
	return token.ID(len(p) - 1)
}

// TestLaws draws many texts of three tokens by every same-distribution shape, with a draft model that is not the target,
// and compares with the target's distribution by a chi-square test. The same test must fail where the distributions are
// not those that drafts were drawn from.
func TestLaws(t *testing.T) {
	rounds := 6000
	if os.Getenv("GROVE_LONG") != "" {
		rounds = 200_000
	}
	for _, s := range shapes {
		if s.rule == method.Match {
			continue
		}
		for seed := range uint64(2) {
			target, model := randomTable(3, seed), randomTable(3, seed+10)
			for _, honest := range []bool{true, false} {
				err := compare(t, s, target, model, rounds, honest)
				if honest && err != nil {
					t.Errorf("%s, tables %d: %v", s.name, seed, err)
				}
				if !honest && err == nil {
					t.Errorf("%s, tables %d: a distribution that was not drawn from passes", s.name, seed)
				}
			}
		}
	}
}

// compare draws texts by a shape and compares how often each comes with the target's distribution.
func compare(t *testing.T, s shape, target, model *table, rounds int, honest bool) error {
	d := open(t, s.name, model, sample.Params{Temperature: 1, Seed: 11}, 0)
	tree, rates := method.NewTree(128, 3), method.NewRates(1)
	sampler, _ := sample.NewChain(sample.Settings{Params: sample.Params{Temperature: 1, Seed: 11}}, 3)
	rule, err := verify.Find(string(s.rule))
	if err != nil {
		t.Fatal(err)
	}
	acceptor, out := rule.New(), verify.Outcome{}
	view := &round{tree, target, 0, rand.New(rand.NewPCG(5, 5))}
	counts, expected, accepted := make([]float64, 27), make([]float64, 27), 0
	for i := range rounds {
		if err := d.Begin(method.Text{Prompt: []token.ID{0}, Sampler: sampler, SampleIndex: i}); err != nil {
			t.Fatal(err)
		}
		model.live = model.live[:0]
		tree.Reset(3, rates)
		if err := d.Draft(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		if !honest {
			for i, law := range tree.Laws() {
				if len(law.P) == 3 {
					tree.Draw(i-1, verify.Distribution{IDs: law.IDs, P: []float32{law.P[1], law.P[2], law.P[0]}})
				}
			}
		}
		if err := acceptor.Accept(view, &out); err != nil {
			t.Fatal(err)
		}
		var text []token.ID
		for _, node := range out.Accepted {
			text = append(text, view.Token(node))
		}
		accepted += len(text)
		for text = append(text, out.Next); len(text) < 3; {
			text = append(text, pick(view.rng, softmax(target.next[text[len(text)-1]])))
		}
		counts[9*text[0]+3*text[1]+text[2]]++
	}
	if accepted == 0 {
		t.Errorf("%s: no draft is accepted", s.name)
	}
	for i := range expected {
		a, b, c := i/9, i/3%3, i%3
		expected[i] = softmax(target.next[0])[a] * softmax(target.next[a])[b] * softmax(target.next[b])[c] * float64(rounds)
	}
	return stat.ChiSquare(counts, expected)
}

// TestBeamOfOne: stochastic beam search with one beam draws a chain from the draft model.
func TestBeamOfOne(t *testing.T) {
	model := randomTable(3, 1)
	s := shape{name: "test", rule: method.Reject, ranks: []int{3}, beam: 1, growth: beams}
	opened, err := newTrees(s, method.Env{Draft: model, Vocabulary: 3}).NewDrafter()
	if err != nil {
		t.Fatal(err)
	}
	sampler, _ := sample.NewChain(sample.Settings{Params: sample.Params{Temperature: 1, Seed: 6}}, 3)
	tree, rates := method.NewTree(16, 3), method.NewRates(1)
	const rounds = 6000
	counts, expected := make([]float64, 9), make([]float64, 9)
	for round := range rounds {
		if err := opened.Begin(method.Text{Prompt: []token.ID{0}, Sampler: sampler, SampleIndex: round}); err != nil {
			t.Fatal(err)
		}
		model.live = model.live[:0]
		tree.Reset(2, rates)
		if err := opened.Draft(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		n := tree.Nodes()
		if len(n) != 2 || n[1].Parent != 0 {
			t.Fatalf("not a chain of two: %v", n)
		}
		counts[3*n[0].ID+n[1].ID]++
	}
	for i := range expected {
		expected[i] = rounds * softmax(model.next[0])[i/3] * softmax(model.next[i/3])[i%3]
	}
	if err := stat.ChiSquare(counts, expected); err != nil {
		t.Error(err)
	}
}
