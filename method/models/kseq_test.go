package models

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"os"
	"testing"

	"grove/internal/sample"
	"grove/internal/stat"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/internal/verify"
	"grove/method"
	"grove/method/grow"
)

// play is a text that chains are drawn for, and its round as the rule sees it.
type play struct {
	growtest.View
	text  growtest.Text
	rule  verify.Rule
	rates *method.Rates
}

// newPlay makes a play of a shape.
func newPlay(t *testing.T, s grow.Shape, r verify.Rule, target, model *growtest.Model) *play {
	t.Helper()
	m := &kseq{shape: s, env: method.Env{Vocabulary: target.Dims.Vocabulary, Draft: model}}
	d, err := m.NewDrafter(nil)
	if err != nil {
		t.Fatal(err)
	}
	y := &play{rule: r, rates: method.NewRates(1)}
	y.View = growtest.View{Tree: method.NewTree(128, target.Dims.Vocabulary), Target: target, Rng: rand.New(rand.NewPCG(4, 4))}
	y.text.Drafter = d
	return y
}

// round returns what the rule makes of the drafts behind a text of one token, 3 tokens deep at most. change changes
// the tree before.
func (y *play) round(t *testing.T, index int, first token.ID, change func(*method.Tree)) []token.ID {
	t.Helper()
	y.draft(t, index, first)
	if change != nil {
		change(y.Tree)
	}
	y.Last = first
	return y.Judge(t, y.rule)
}

func (y *play) draft(t *testing.T, index int, first token.ID) {
	t.Helper()
	y.text.Noise = method.Noise{Sampling: sample.Params{Temperature: 1, Seed: 9}, SampleIndex: index}
	y.text.Begin(t, first)
	y.Reset(3, y.rates)
	if err := y.text.Drafter.Draft(t.Context(), y.Tree); err != nil {
		t.Fatal(err)
	}
}

// oneChain is the shape of draft-block, with chains as long as ours.
var oneChain = grow.Shape{Draw: grow.WithoutReplacement, Ranks: []int{1}, Beam: 1, Depth: kseqLength}

func TestMeets(t *testing.T) {
	if err := grow.MeetsDraft(method.Env{Vocabulary: 9}, true); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("without a draft model: %v", err)
	}
	if err := grow.MeetsDraft(method.Env{Vocabulary: 9, Draft: growtest.Random(9, 1)}, true); err != nil {
		t.Errorf("with one: %v", err)
	}
}

// TestChains expects three chains of three tokens, whose draws are numbered behind each node without gaps, and chains
// that begin with the same tokens to share them.
func TestChains(t *testing.T) {
	m, shared := growtest.Random(4, 2), 0
	y := newPlay(t, kseqShape, verify.KSEQ, m, m)
	for round := range 200 {
		y.draft(t, round, 0)
		levels := make([]int, kseqLength+1)
		for node := method.Root; node < y.Len(); node++ {
			draws, depth := chains, 0
			if node != method.Root {
				n := y.Nodes()[node]
				draws, depth = bits.OnesCount64(n.Samples), int(n.Depth)
			}
			levels[depth] += draws
			all := uint64(0)
			for _, c := range y.Children(nil, node) {
				samples := y.Samples(c)
				if all&samples != 0 {
					t.Fatalf("round %d: two drafts behind %d stand for the same draw", round, node)
				}
				all |= samples
			}
			if depth < kseqLength && all != 1<<draws-1 {
				t.Fatalf("round %d: %d draws behind %d, numbered %b", round, draws, node, all)
			}
		}
		if levels[kseqLength] != chains {
			t.Fatalf("round %d: %v draws a level", round, levels)
		}
		if y.Len() < chains*kseqLength {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no two chains share a token")
	}
}

// TestDistribution holds texts of three tokens to the target's distribution, by each rule for independent draws, and expects drafts whose distributions
// are not those of the draws to fail.
func TestDistribution(t *testing.T) {
	rounds := 10_000
	if os.Getenv("GROVE_LONG") != "" {
		rounds = 100_000
	}
	wrong := func(tree *method.Tree) {
		for node := method.Root; node < tree.Len(); node++ {
			if q := tree.DraftDistribution(node); len(q.P) == 3 {
				tree.SetDistribution(node, verify.Distribution{IDs: q.IDs, P: []float32{q.P[1], q.P[2], q.P[0]}})
			}
		}
	}
	for i, rule := range []verify.Rule{verify.KSEQ, verify.KSEQ, verify.KSEQ, verify.SpecInfer, verify.TraversalIID} {
		seed := uint64(i)
		target, model := growtest.Random(3, seed), growtest.Random(3, seed+10)
		for _, change := range []func(*method.Tree){nil, wrong} {
			y := newPlay(t, kseqShape, rule, target, model)
			counts, want := make([]float64, 27), make([]float64, 27)
			for round := range rounds {
				text := y.round(t, round, 0, change)
				for len(text) < 3 {
					text = append(text, y.Pick(method.Root, target.Probs(text[len(text)-1])))
				}
				counts[text[0]*9+text[1]*3+text[2]]++
			}
			for i := range want {
				a, b, c := token.ID(i/9), token.ID(i/3%3), token.ID(i%3)
				want[i] = target.Probs(0)[a] * target.Probs(a)[b] * target.Probs(b)[c] * float64(rounds)
			}
			if err := stat.ChiSquare(counts, want); (err != nil) != (change != nil) {
				t.Errorf("%s, models %d, wrong distributions: %v: %v", rule.Name, seed, change != nil, err)
			}
		}
	}
}

// TestAcceptsMore reproduces the claim of the paper: three chains give more tokens a round than one chain of the same
// length, which [verify.Block] verifies better than any other rule.
func TestAcceptsMore(t *testing.T) {
	const rounds = 1500
	var sum [2]int
	for seed := range uint64(6) {
		target, model := growtest.Random(8, seed), growtest.Random(8, seed+10)
		var tokens [2]int
		for i, y := range []*play{newPlay(t, kseqShape, verify.KSEQ, target, model), newPlay(t, oneChain, verify.Block, target, model)} {
			for round := range rounds {
				tokens[i] += len(y.round(t, round, token.ID(round%8), nil))
			}
			sum[i] += tokens[i]
		}
		if tokens[0] < tokens[1] {
			t.Errorf("models %d: K-SEQ gives %d tokens in %d rounds, one chain %d", seed, tokens[0], rounds, tokens[1])
		}
	}
	t.Logf("tokens a round: K-SEQ %.3f, one chain %.3f", float64(sum[0])/(6*rounds), float64(sum[1])/(6*rounds))
}
