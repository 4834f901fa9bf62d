package sample

import (
	"math"

	"grove/internal/kernel"
	"grove/internal/text/token"
)

// probs writes the probabilities by which sample draws to p, as distribution does, in float64 and summing to
// 1 as nearly as that allows: what acceptance rules compute with.
func (s *sampler) probs(p []float64, r row) error {
	if len(p) != s.vocab {
		return s.lengthError(len(p))
	}
	dense := s.dense32()
	if err := s.distribution(dense, r); err != nil {
		return err
	}
	sum := 0.0
	for id, v := range dense {
		p[id] = float64(v)
		sum += p[id]
	}
	for id := range p {
		p[id] /= sum
	}
	return nil
}

// A Purpose tells apart what random numbers at one index are for, besides the draw of a token, whose number is 0. Those of
// a drafter and of the rule that judges it must differ (N5). Numbers from 1<<31 up are the chain's own.
type Purpose uint32

const (
	purposeDraw Purpose = 0       // the noise that chooses a row's token
	purposeXTC  Purpose = 1 << 31 // whether XTC removes tokens
)

// Number returns a number above 0 and below 1, the same for the same arguments, sample index and seed.
func (c *Chain) Number(index int, use Purpose) float64 {
	return kernel.Uniform(c.sampler.key(index, use), 0)
}

// Noise returns the Gumbel noise of a token for a use.
func (c *Chain) Noise(index int, use Purpose, id token.ID) float64 {
	return float64(kernel.Noise(c.sampler.key(index, use), uint32(id)))
}

// Pick draws a token by the probabilities p, the same for the same arguments, sample index and seed. Tokens without
// probability are never drawn; it returns [token.None] where no token has any.
func (c *Chain) Pick(p []float64, index int, use Purpose) token.ID {
	key := c.sampler.key(index, use)
	best, most := token.None, math.Inf(-1)
	for id, v := range p {
		if v > 0 {
			if score := float64(kernel.Log32(float32(v)) + kernel.Noise(key, uint32(id))); score > most {
				best, most = token.ID(id), score
			}
		}
	}
	return best
}

func (s *sampler) key(index int, use Purpose) kernel.Key {
	return kernel.MakeKey(s.params.Seed, uint32(s.sampleIndex), uint32(index), uint32(use))
}

// Logprob returns the natural logarithm of the model's own probability of a token.
func (c *Chain) Logprob(logits []float32, id token.ID) float32 {
	_, lse, _ := kernel.LogSumExp(logits)
	return logits[id] - lse
}
