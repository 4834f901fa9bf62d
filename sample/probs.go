package sample

import (
	"math"

	"grove/internal/kernel"
	"grove/text/token"
)

// Probs writes the probabilities by which Sample draws to p, as [Sampler.Distribution] does, in float64 and summing to
// 1 as nearly as that allows: what acceptance rules compute with.
func (s *Sampler) Probs(p []float64, logits []float32) error {
	if cap(s.dense) < s.vocab {
		s.dense = make([]float32, s.vocab)
	}
	if len(p) != s.vocab {
		return s.lengthError(len(p))
	}
	if err := s.Distribution(s.dense[:s.vocab], logits); err != nil {
		return err
	}
	sum := 0.0
	for id, v := range s.dense[:s.vocab] {
		p[id] = float64(v)
		sum += p[id]
	}
	for id := range p {
		p[id] /= sum
	}
	return nil
}

// A Use tells apart what random numbers at one index are for, besides the draw of a token, whose number is 0. Those of
// a drafter and of the rule that judges it must differ (N5).
type Use uint32

// Number returns a number above 0 and below 1, the same for the same arguments and seed.
func (s *Sampler) Number(choice, index int, use Use) float64 {
	return kernel.Uniform(s.key(choice, index, use), 0)
}

// Noise returns the Gumbel noise of a token for a use.
func (s *Sampler) Noise(choice, index int, use Use, id token.ID) float64 {
	return float64(kernel.Noise(s.key(choice, index, use), uint32(id)))
}

// Pick draws a token by the probabilities p, the same for the same arguments and seed. Tokens without probability are
// never drawn.
func (s *Sampler) Pick(p []float64, choice, index int, use Use) token.ID {
	key := s.key(choice, index, use)
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

func (s *Sampler) key(choice, index int, use Use) kernel.Key {
	return kernel.MakeKey(s.params.Seed, uint32(choice), uint32(index), uint32(use))
}

// Logprob returns the natural logarithm of the model's own probability of a token.
func (s *Sampler) Logprob(logits []float32, id token.ID) float32 {
	_, lse, _ := kernel.LogSumExp(logits)
	return logits[id] - lse
}
