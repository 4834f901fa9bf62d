package draft

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

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

// judge turns a tree into tokens by the rule of its method, as the engine does.
func judge(r *verify.Rules, rule method.Rule, target *table, last token.ID, tree *method.Tree, rng *rand.Rand) (text []token.ID) {
	behind := func(id token.ID) []float64 { return softmax(target.next[id]) }
	u := func(int) float64 { return rng.Float64() }
	pick := func(p []float64) token.ID {
		x := rng.Float64()
		for id, v := range p {
			if x -= v; x < 0 {
				return token.ID(id)
			}
		}
		return token.ID(len(p) - 1)
	}
	if rule == method.Block {
		p := [][]float64{behind(last)}
		for _, n := range tree.Nodes() {
			text = append(text, n.ID)
			p = append(p, behind(n.ID))
		}
		n := r.Block(text, func(i int) []float64 { return p[i] }, tree.Laws(), u)
		return append(text[:n], pick(p[n]))
	}
	for node := method.Root; ; {
		p, children := behind(last), tree.Children(nil, node)
		k := r.Reject(p, tree.Laws()[node+1], children, u)
		if k < 0 {
			return append(text, pick(p))
		}
		last = children[k]
		text = append(text, last)
		node, _ = tree.Child(node, last)
	}
}

// TestLaws draws many texts of three tokens by every same-distribution shape, with a draft model that is not the target, and
// compares with the target's law by a chi-square test. The same test must fail where laws are not what guesses
// were drawn from.
func TestLaws(t *testing.T) {
	const vocabulary = 3
	rounds := 6000
	if os.Getenv("GROVE_LONG") != "" {
		rounds = 200_000
	}
	for _, s := range shapes {
		if s.rule == method.Match {
			continue
		}
		for seed := range uint64(2) {
			target, model := randomTable(vocabulary, seed), randomTable(vocabulary, seed+10)
			for _, honest := range []bool{true, false} {
				chi, accepted := chiSquare(t, s, target, model, rounds, honest)
				// 26 degrees of freedom: 60 is exceeded twice in ten thousand times.
				if honest && chi > 60 || accepted == 0 {
					t.Errorf("%s, tables %d: chi-square %.1f, %d accepted", s.name, seed, chi, accepted)
				}
				if !honest && chi < 60 {
					t.Errorf("%s, tables %d: a law that was not drawn from passes: chi-square %.1f", s.name, seed, chi)
				}
			}
		}
	}
}

func chiSquare(t *testing.T, s shape, target, model *table, rounds int, honest bool) (chi float64, accepted int) {
	rng := rand.New(rand.NewPCG(5, 5))
	counts := map[[3]token.ID]int{}
	d := open(t, s.name, model, sample.Params{Temperature: 1, Seed: 11}, 0)
	tree, rates := method.NewTree(128, 3), method.NewRates(1)
	sampler, _ := sample.New(sample.Params{Temperature: 1, Seed: 11}, 3)
	var rules verify.Rules
	for round := range rounds {
		if err := d.Begin(method.Text{Prompt: []token.ID{0}, Sampler: sampler, SampleIndex: round}); err != nil {
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
		text := judge(&rules, s.rule, target, 0, tree, rng)
		accepted += len(text) - 1
		for len(text) < 3 {
			text = append(text, judge(&rules, method.Reject, target, text[len(text)-1], empty, rng)...)
		}
		counts[[3]token.ID(text)]++
	}
	for a := range token.ID(3) {
		for b := range token.ID(3) {
			for c := range token.ID(3) {
				p := softmax(target.next[0])[a] * softmax(target.next[a])[b] * softmax(target.next[b])[c]
				want := p * float64(rounds)
				chi += math.Pow(float64(counts[[3]token.ID{a, b, c}])-want, 2) / want
			}
		}
	}
	return chi, accepted
}

// empty is a tree without guesses whose law is known.
var empty = func() *method.Tree {
	t := method.NewTree(1, 3)
	t.Reset(1, method.NewRates(1))
	t.Draw(method.Root, verify.Distribution{})
	return t
}()

// TestBeamOfOne: stochastic beam search with one beam draws a chain from the draft model.
func TestBeamOfOne(t *testing.T) {
	model := randomTable(3, 1)
	s := shape{name: "test", rule: method.Reject, ranks: []int{3}, beam: 1, growth: beams}
	opened, err := newTrees(s, method.Env{Draft: model, Vocabulary: 3}).NewDrafter()
	if err != nil {
		t.Fatal(err)
	}
	sampler, _ := sample.New(sample.Params{Temperature: 1, Seed: 6}, 3)
	tree, rates := method.NewTree(16, 3), method.NewRates(1)
	const rounds = 6000
	counts := map[[2]token.ID]float64{}
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
		counts[[2]token.ID{n[0].ID, n[1].ID}]++
	}
	chi := 0.0
	for a := range token.ID(3) {
		for b := range token.ID(3) {
			want := rounds * softmax(model.next[0])[a] * softmax(model.next[a])[b]
			chi += math.Pow(counts[[2]token.ID{a, b}]-want, 2) / want
		}
	}
	if chi > 32 { // 8 degrees of freedom: one in ten thousand
		t.Errorf("chi-square %.1f", chi)
	}
}
