// Package sample turns the logits of one row into a token.
//
// A draw is the argmax of logit / temperature + Gumbel noise over the tokens that truncation
// keeps, which is an exact sample of their softmax; the noise is a pure function of seed, choice,
// index and token id. So whoever computes the same logits draws the same token: a verifier that
// draws at each node of a draft tree and walks to the child that matches reproduces plain
// sampling token for token (rules N5 and N6 of DESIGN.md).
package sample

import (
	"errors"
	"fmt"
	"math"

	"grove/internal/kernel"
	"grove/text/token"
)

// ErrNotFinite means that logits hold a NaN or plus infinity, so that no token can be chosen.
var ErrNotFinite = errors.New("sample: a logit is not finite: the model's weights or activations hold NaN or infinity")

// ErrAllMasked means that every logit is minus infinity: nothing may be chosen.
var ErrAllMasked = errors.New("sample: every token is masked: no logit is above minus infinity")

// purposeDraw keys the noise that chooses a row's token.
const purposeDraw = 0

// A Token is a token and how likely the model found it.
type Token struct {
	ID token.ID
	// Logprob is the natural logarithm of the model's own probability, before temperature and
	// truncation.
	Logprob float32
}

// A Sampler draws tokens by fixed parameters. It holds scratch space and no other state: what it
// returns depends on its arguments alone. It is not safe for concurrent use.
type Sampler struct {
	params Params
	vocab  int
	invT   float32 // factor of the logits in the draw
	keys   []uint64
	block  []float32
	dense  []float32
}

// New returns a sampler for rows of vocab logits, or the error of [Params.Validate].
func New(p Params, vocab int) (*Sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if vocab < 1 {
		return nil, fmt.Errorf("sample: a vocabulary of %d tokens", vocab)
	}
	if p.TopK >= vocab {
		p.TopK = 0
	}
	if p.TopP == 1 {
		p.TopP = 0
	}
	s := &Sampler{params: p, vocab: vocab}
	if p.Greedy() {
		return s, nil
	}
	s.invT = 1 / p.Temperature
	if s.truncates() {
		s.keys = make([]uint64, 0, scratch(p.TopK, vocab))
		s.block = make([]float32, min(vocab, 4096))
	}
	return s, nil
}

// truncates reports whether any token may be removed.
func (s *Sampler) truncates() bool {
	return s.params.TopK > 0 || s.params.TopP > 0 || s.params.MinP > 0
}

// Sample draws the token of a row: choice is the number of the answer within its request, index
// the row's place in the sequence. Logits of minus infinity are masked tokens, which are never
// drawn; equal scores go to the lowest id. It allocates nothing. Errors: [ErrNotFinite],
// [ErrAllMasked], or logits of another length than the vocabulary.
func (s *Sampler) Sample(logits []float32, choice, index int) (Token, error) {
	if len(logits) != s.vocab {
		return Token{}, s.lengthError(len(logits))
	}
	key := kernel.MakeKey(s.params.Seed, uint32(choice), uint32(index), purposeDraw)
	if !s.params.Greedy() && !s.truncates() {
		id, _, lse, finite := kernel.GumbelMax(logits, s.invT, key)
		return chosen(logits, id, lse, check(logits, finite))
	}
	top, lse, finite := kernel.LogSumExp(logits)
	if err := check(logits, finite); err != nil {
		return Token{}, err
	}
	if s.params.Greedy() {
		return chosen(logits, kernel.ArgMax(logits), lse, nil)
	}
	return chosen(logits, s.draw(s.keep(logits, top, lse), logits, key), lse, nil)
}

// Distribution writes the probabilities by which Sample draws to dst: zero for the tokens that
// truncation or a mask removes, and all on one token where sampling is greedy. Both slices are as
// long as the vocabulary and may not overlap. Errors are those of Sample.
func (s *Sampler) Distribution(dst, logits []float32) error {
	if len(logits) != s.vocab || len(dst) != s.vocab {
		return s.lengthError(min(len(logits), len(dst)))
	}
	top, lse, finite := kernel.LogSumExp(logits)
	if err := check(logits, finite); err != nil {
		return err
	}
	clear(dst)
	switch {
	case s.params.Greedy():
		dst[kernel.ArgMax(logits)] = 1
		return nil
	case s.truncates():
		for _, k := range s.keep(logits, top, lse) {
			dst[idOf(k)] = weight(logits[idOf(k)], top, s.invT)
		}
	default:
		for id, l := range logits {
			dst[id] = weight(l, top, s.invT)
		}
	}
	sum := 0.0
	for _, w := range dst {
		sum += float64(w)
	}
	for id, w := range dst {
		dst[id] = float32(float64(w) / sum)
	}
	return nil
}

func (s *Sampler) lengthError(n int) error {
	return fmt.Errorf("sample: a row of %d values for a vocabulary of %d tokens", n, s.vocab)
}

// check returns the error of logits that the kernel finds not finite.
func check(logits []float32, finite bool) error {
	if finite {
		return nil
	}
	for _, l := range logits {
		if l != float32(math.Inf(-1)) {
			return ErrNotFinite
		}
	}
	return ErrAllMasked
}

// chosen returns the choice of an id, unless err says that there is none.
func chosen(logits []float32, id int, lse float32, err error) (Token, error) {
	if err != nil {
		return Token{}, err
	}
	return Token{ID: token.ID(id), Logprob: logits[id] - lse}, nil
}

// draw returns the kept token with the highest noisy score: the score of kernel.GumbelMax, so
// that keeping every token changes nothing.
func (s *Sampler) draw(kept []uint64, logits []float32, key kernel.Key) int {
	best, bestScore := -1, float32(0)
	for _, k := range kept {
		id := idOf(k)
		score := float32(logits[id]*s.invT) + kernel.Noise(key, uint32(id))
		if best < 0 || score > bestScore || score == bestScore && id < best {
			best, bestScore = id, score
		}
	}
	return best
}

// weight returns exp((l - top) * scale), at most 1.
func weight(l, top, scale float32) float32 {
	return kernel.Exp32(float32((l - top) * scale))
}
