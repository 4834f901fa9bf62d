package sample

import (
	"grove/internal/kernel"
	"grove/internal/text/token"
)

// Top returns the n likeliest tokens by the model's own probabilities, the likeliest first and equal ones by id; fewer
// where the rest are masked. The slice is the caller's. Errors are those of Draw.
func (c *Chain) Top(logits []float32, n int) ([]Token, error) {
	s := c.sampler
	_, lse, err := s.sums(logits)
	if err != nil {
		return nil, err
	}
	top := make([]Token, 0, min(n, s.vocab))
	for _, k := range s.largest(logits, n) {
		top = append(top, Token{ID: token.ID(idOf(k)), Logprob: logits[idOf(k)] - lse})
	}
	return top, nil
}

// TopDrawn returns the n tokens that Draw draws most often, with the logarithms of the probabilities by which it does,
// and that of the token id; fewer where no others are drawn. The slice is the caller's. Errors are those of Draw.
func (c *Chain) TopDrawn(s State, logits []float32, index, n int, id token.ID) (top []Token, logprob float32, err error) {
	p := c.sampler.dense32()
	if err := c.sampler.distribution(p, c.row(s, logits, index)); err != nil {
		return nil, 0, c.blame(s, logits, err)
	}
	top = make([]Token, 0, min(n, c.vocab))
	for _, k := range c.sampler.largest(p, n) {
		if v := p[idOf(k)]; v > 0 {
			top = append(top, Token{ID: token.ID(idOf(k)), Logprob: kernel.Log32(v)})
		}
	}
	return top, kernel.Log32(p[id]), nil
}

// largest is best, with room of its own making.
func (s *sampler) largest(row []float32, n int) []uint64 {
	if n = min(n, s.vocab); n == 0 {
		return nil
	}
	if need := scratch(n, s.vocab); cap(s.keys) < need {
		s.keys = make([]uint64, 0, need)
	}
	return s.best(row, n)
}
