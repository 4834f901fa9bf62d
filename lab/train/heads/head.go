package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// rejectedWeight is the weight of the class rejected in the loss; accepted has 1.
const rejectedWeight = 6

// head is residual blocks x + SiLU(W x + b), which are all the same one, and the scores of rejected and accepted. Its parameters are w: W and b, where there are
// blocks, then the scores' weights, then their biases.
type head struct {
	d, blocks int
	w         []float64
}

func newHead(d, blocks int, seed uint64) *head {
	h, rng := &head{d: d, blocks: blocks}, rand.New(rand.NewPCG(seed, 2))
	if blocks > 0 {
		h.w = make([]float64, d*d+d)
		for i := range h.w[:d*d] {
			h.w[i] = rng.NormFloat64() * 0.1 / math.Sqrt(float64(d))
		}
	}
	h.w = append(h.w, make([]float64, 2*d+2)...)
	return h
}

// parts returns the parameters, or their gradients, by what they are.
func (h *head) parts(w []float64) (weight, bias, scores, biases []float64) {
	d := h.d
	if h.blocks > 0 {
		weight, bias, w = w[:d*d], w[d*d:d*d+d], w[d*d+d:]
	}
	return weight, bias, w[:2*d], w[2*d:]
}

// tensors returns the head as the published files have it; the block is stored once.
func (h *head) tensors() (all []tensor) {
	weight, bias, scores, biases := h.parts(h.w)
	if h.blocks > 0 {
		all = append(all, tensor{"model.0.linear.weight", []int{h.d, h.d}, weight}, tensor{"model.0.linear.bias", []int{h.d}, bias})
	}
	last := fmt.Sprintf("model.%d.", h.blocks)
	return append(all, tensor{last + "weight", []int{2, h.d}, scores}, tensor{last + "bias", []int{2}, biases})
}

// accepted returns the probability of acceptance, and what each block reads and adds before SiLU.
func (h *head) accepted(state []float64) (p float64, xs, zs [][]float64) {
	weight, bias, scores, biases := h.parts(h.w)
	x := state
	for range h.blocks {
		z, next := make([]float64, h.d), make([]float64, h.d)
		for i := range z {
			z[i] = bias[i] + dot(weight[i*h.d:(i+1)*h.d], x)
			next[i] = x[i] + z[i]*sigmoid(z[i])
		}
		xs, zs, x = append(xs, x), append(zs, z), next
	}
	return sigmoid(biases[1] + dot(scores[h.d:], x) - biases[0] - dot(scores[:h.d], x)), append(xs, x), zs
}

// gradient adds the gradient of an example's loss to g, and returns the loss: -(6 (1-a) log(1-p) + a log p).
func (h *head) gradient(g []float64, e example) float64 {
	p, xs, zs := h.accepted(e.state)
	weight, _, scores, _ := h.parts(h.w)
	dWeight, dBias, dScores, dBiases := h.parts(g)
	slope := rejectedWeight*(1-e.accepted)*p - e.accepted*(1-p) // by the difference of the scores
	x, dx := xs[h.blocks], make([]float64, h.d)
	for i := range x {
		dScores[i] -= slope * x[i]
		dScores[h.d+i] += slope * x[i]
		dx[i] = slope * (scores[h.d+i] - scores[i])
	}
	dBiases[0] -= slope
	dBiases[1] += slope
	for l := h.blocks - 1; l >= 0; l-- {
		below := slices.Clone(dx)
		for i, z := range zs[l] {
			s := sigmoid(z)
			dz := dx[i] * s * (1 + z*(1-s))
			dBias[i] += dz
			for k, v := range xs[l] {
				dWeight[i*h.d+k] += dz * v
				below[k] += dz * weight[i*h.d+k]
			}
		}
		dx = below
	}
	const least = 1e-12
	return -(rejectedWeight*(1-e.accepted)*math.Log(max(least, 1-p)) + e.accepted*math.Log(max(least, p)))
}

// checkGradient compares the gradient of an example with finite differences, and returns an error where they differ.
func (h *head) checkGradient(e example) error {
	at, rng := slices.Clone(h.w), rand.New(rand.NewPCG(3, 3))
	defer func() { h.w = at }()
	h.w = slices.Clone(at)
	for i := range h.w {
		h.w[i] += 0.1 * rng.NormFloat64() / math.Sqrt(float64(h.d))
	}
	g, none := make([]float64, len(h.w)), make([]float64, len(h.w))
	h.gradient(g, e)
	for range 40 {
		i := rng.IntN(len(h.w))
		was := h.w[i]
		h.w[i] = was + 1e-5
		up := h.gradient(none, e)
		h.w[i] = was - 1e-5
		slope := (up - h.gradient(none, e)) / 2e-5
		if h.w[i] = was; math.Abs(slope-g[i]) > 1e-4*(1+math.Abs(slope)) {
			return fmt.Errorf("the gradient of parameter %d is %v, and by differences %v", i, g[i], slope)
		}
	}
	return nil
}

// train minimises the mean loss by Adam in batches of 64, with a rate that rises over the first 3 % of the steps and falls as a cosine.
func (h *head) train(all []example, epochs int, rate float64, seed uint64) {
	const batch = 64
	rng := rand.New(rand.NewPCG(seed, 4))
	mean, square, g := make([]float64, len(h.w)), make([]float64, len(h.w)), make([]float64, len(h.w))
	steps, step := epochs*((len(all)+batch-1)/batch), 0
	order := rng.Perm(len(all))
	for epoch := range epochs {
		sum := 0.0
		rng.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		for part := range slices.Chunk(order, batch) {
			clear(g)
			for _, i := range part {
				sum += h.gradient(g, all[i])
			}
			step++
			done := float64(step) / float64(steps)
			now := rate * min(1, done/0.03) * 0.5 * (1 + math.Cos(math.Pi*done))
			for i := range g {
				v := g[i] / float64(len(part))
				mean[i] += 0.1 * (v - mean[i])
				square[i] += 0.001 * (v*v - square[i])
				h.w[i] -= now * mean[i] / (1 - math.Pow(0.9, float64(step))) / (math.Sqrt(square[i]/(1-math.Pow(0.999, float64(step)))) + 1e-8)
			}
		}
		fmt.Printf("epoch %d: loss %.4f\n", epoch+1, sum/float64(len(all)))
	}
}

// figures returns what the head makes of examples that were held out.
func (h *head) figures(all []example) map[string]string {
	var accepted, expected, by, own []float64
	for _, e := range all {
		p, _, _ := h.accepted(e.state)
		accepted, expected = append(accepted, e.accepted), append(expected, p/(p+(1-p)/rejectedWeight)) // without the classes' weights
		by, own = append(by, p), append(own, e.own)
	}
	return map[string]string{
		"accepted, held out": fmt.Sprintf("%.3f", average(accepted)), "expected, held out": fmt.Sprintf("%.3f", average(expected)),
		"AUC, held out": fmt.Sprintf("%.3f", auc(by, accepted)), "AUC of the draft's probability, held out": fmt.Sprintf("%.3f", auc(own, accepted)),
	}
}

// auc returns how often an accepted example has a higher score than a rejected one; equal scores count half. An example is accepted to the degree of its label.
func auc(scores, labels []float64) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	below, pairs, rejected, accepted := 0.0, 0.0, 0.0, 0.0
	for i := 0; i < len(order); {
		k, r, a := i, 0.0, 0.0
		for ; k < len(order) && scores[order[k]] == scores[order[i]]; k++ {
			r, a = r+1-labels[order[k]], a+labels[order[k]]
		}
		below += a * (rejected + r/2)
		rejected, accepted, i = rejected+r, accepted+a, k
	}
	pairs = rejected * accepted
	return below / pairs
}

func average(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
