package diffuse

import (
	"grove/sample"
	"grove/text/token"
)

// NewSampler returns a sampler that draws by a chain, for an answer whose first token has an index in the text, from a vocabulary. The random numbers of a place and a pass
// are those of the place's index and a use of the pass's own.
func NewSampler(chain *sample.Chain, first, vocabulary int) Sampler {
	return &chained{chain: chain, first: first, p: make([]float64, vocabulary)}
}

type chained struct {
	chain *sample.Chain
	first int
	p     []float64
}

// Draw implements [Sampler].
func (s *chained) Draw(logits []float32, index, pass int) (token.ID, error) {
	if s.chain.Params().Greedy() {
		t, err := s.chain.Draw(0, logits, s.first+index)
		return t.ID, err
	}
	if err := s.chain.Probs(s.p, 0, logits, s.first+index); err != nil {
		return token.None, err
	}
	return s.chain.Pick(s.p, s.first+index, purpose(pass)), nil
}

// Number implements [Sampler].
func (s *chained) Number(index, pass int) float64 {
	return s.chain.Number(s.first+index, purpose(pass)+1)
}

// purpose is what the random numbers of a pass are for: there are two uses of each.
func purpose(pass int) sample.Purpose { return sample.Purpose(1<<20 + 2*pass) }
