package models

import (
	"math/rand/v2"
	"testing"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/stat"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

// trimmed is a random model whose logits outside the part of the vocabulary that a row wants are what the head leaves there.
func trimmed(vocabulary int, seed uint64) *growtest.Model {
	m := growtest.Random(vocabulary, seed)
	whole := m.Next
	m.Next = func(path []token.ID, r forest.Row) []float32 {
		logits := append([]float32(nil), whole(path, r)...)
		wanted := map[int32]bool{}
		for _, g := range r.Want.Subset {
			wanted[g] = true
		}
		for id := range logits {
			if !wanted[int32(id/compute.SubsetGroup)] {
				logits[id] = compute.Masked
			}
		}
		return logits
	}
	return m
}

// TestTrimmedDistribution: with a third of the tokens left out of the drafts, the first two tokens of texts have the target's distribution
// (chi-square), and tokens that are left out are drawn.
func TestTrimmedDistribution(t *testing.T) {
	const vocabulary, rounds = compute.SubsetGroup + 8, 4000
	for _, a := range all {
		if !a.draws() {
			continue
		}
		target, model := growtest.Random(vocabulary, 1), trimmed(vocabulary, 11)
		d := growtest.Drafter(t, a.name, method.Env{Vocabulary: vocabulary, Draft: model, DraftVocab: compute.SubsetGroup})
		x := &growtest.Text{Drafter: d}
		x.Noise.Sampling = sample.Params{Temperature: 1, Seed: 11}
		view := growtest.View{Tree: method.NewTree(128, vocabulary), Target: target, Rng: rand.New(rand.NewPCG(5, 5))}
		rates := method.NewRates(1)
		var counts, want [2][vocabulary]float64
		outside := 0
		for round := range rounds {
			x.Noise.SampleIndex = round
			x.Begin(t, 0)
			view.Reset(3, rates)
			if err := x.Drafter.Draft(t.Context(), view.Tree); err != nil {
				t.Fatal(err)
			}
			for _, n := range view.Nodes() {
				if n.ID >= compute.SubsetGroup {
					t.Fatalf("%s: token %d is drafted, which is left out", a.name, n.ID)
				}
			}
			view.Last = 0
			text := view.Judge(t, a.rule)
			if len(text) < 2 {
				text = append(text, view.Pick(method.Root, target.Probs(text[0])))
			}
			counts[0][text[0]]++
			counts[1][text[1]]++
			if text[0] >= compute.SubsetGroup {
				outside++
			}
		}
		for first, p := range target.Probs(0) {
			want[0][first] = p * rounds
			for second, q := range target.Probs(token.ID(first)) {
				want[1][second] += p * q * rounds
			}
		}
		for place := range counts {
			if err := stat.ChiSquare(counts[place][:], want[place][:]); err != nil {
				t.Errorf("%s, token %d: %v", a.name, place, err)
			}
		}
		if outside == 0 {
			t.Errorf("%s: no token that is left out was drawn", a.name)
		}
	}
}
