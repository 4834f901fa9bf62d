package sample

import (
	"errors"
	"fmt"
	"math"

	"grove/internal/kernel"
	"grove/internal/text/token"
)

// ErrNotFinite means that logits hold a NaN or plus infinity, so that no token can be chosen.
var ErrNotFinite = errors.New("sample: a logit is not finite: the model's weights or activations hold NaN or infinity")

// ErrAllMasked means that every logit is minus infinity: nothing may be chosen.
var ErrAllMasked = errors.New("sample: every token is masked: no logit is above minus infinity")

// A Token is a token and how likely the model found it.
type Token struct {
	ID token.ID
	// Logprob is the natural logarithm of the model's own probability, before stages, temperature and
	// truncation.
	Logprob float32
}

// A row is what one draw depends on, besides the sampler's parameters.
type row struct {
	logits []float32
	index  int     // of the token in the sequence
	mu     float64 // mirostat's limit, in bits
}

// A sampler truncates and draws. It holds scratch space and no other state: what it returns depends on its parameters
// and arguments alone.
type sampler struct {
	params      Params
	sampleIndex int
	vocab       int
	invT        float32    // factor of the logits in the draw
	general     bool       // truncation goes stage by stage over candidates
	ends        []token.ID // XTC leaves one of them
	keys        []uint64
	block       []float32
	dense       []float32
	pool        pool
}

// newSampler returns a sampler for rows of vocab logits, or the error of [Params.Validate].
func newSampler(p Params, vocab int) (*sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if vocab < 1 {
		return nil, fmt.Errorf("sample: a vocabulary of %d tokens", vocab)
	}
	p = p.effective(vocab)
	s := &sampler{params: p, vocab: vocab, general: p.general()}
	if p.Greedy() {
		return s, nil
	}
	s.invT = 1 / p.Temperature
	if s.truncates() {
		n := p.TopK
		if s.general && p.tempersAll() {
			n = 0
		}
		s.keys = make([]uint64, 0, scratch(n, vocab))
		s.block = make([]float32, min(vocab, 4096))
	}
	return s, nil
}

// effective returns the parameters with 0 for all that changes nothing.
func (p Params) effective(vocab int) Params {
	if p.TopK >= vocab {
		p.TopK = 0
	}
	if p.TopP == 1 {
		p.TopP = 0
	}
	if p.TypicalP == 1 {
		p.TypicalP = 0
	}
	p.TopNSigma = max(p.TopNSigma, 0)
	if !p.XTC.on() {
		p.XTC = XTC{}
	}
	if p.DynamicTemperature.Exponent == 0 {
		p.DynamicTemperature.Exponent = 1
	}
	if p.Mirostat.Version != 0 {
		p.TopK, p.TopP, p.MinP = 0, 0, 0
	}
	return p
}

// general reports whether effective parameters have top-k, or need more than top-p and min-p.
func (p Params) general() bool {
	return p.TopK > 0 || p.TypicalP > 0 || p.TopNSigma > 0 || p.XTC.on() || p.DynamicTemperature.Range > 0 || p.Mirostat.Version != 0 ||
		p.MinKeep > 1 && (p.TopP > 0 || p.MinP > 0)
}

// truncates reports whether any token may be removed.
func (s *sampler) truncates() bool {
	return s.general || s.params.TopP > 0 || s.params.MinP > 0
}

// sample draws the token of a row. Logits of minus infinity are masked tokens, which are never drawn; equal scores go
// to the lowest id. It allocates nothing. Errors: [ErrNotFinite], [ErrAllMasked], or logits of another length than the
// vocabulary.
func (s *sampler) sample(r row) (Token, error) {
	if len(r.logits) != s.vocab {
		return Token{}, s.lengthError(len(r.logits))
	}
	key := s.key(r.index, purposeDraw)
	if !s.params.Greedy() && !s.truncates() {
		id, _, lse, finite := kernel.GumbelMax(r.logits, s.invT, key)
		return chosen(r.logits, id, lse, check(r.logits, finite))
	}
	top, lse, err := s.sums(r.logits)
	if err != nil {
		return Token{}, err
	}
	if s.params.Greedy() {
		return chosen(r.logits, kernel.ArgMax(r.logits), lse, nil)
	}
	kept, scale := s.truncate(r, top, lse)
	return chosen(r.logits, draw(kept, r.logits, scale, key), lse, nil)
}

// truncate returns the keys of the tokens that truncation keeps, at least one, in the sampler's scratch space, and the
// factor of their logits in the draw. top and lse are the largest logit and the log-sum-exp.
func (s *sampler) truncate(r row, top, lse float32) (kept []uint64, scale float32) {
	if s.general {
		return s.truncateByStages(r, top)
	}
	return s.keep(r.logits, top, lse), s.invT
}

// distribution writes the probabilities by which sample draws to dst: zero for the tokens that
// truncation or a mask removes, and all on one token where sampling is greedy. Both slices are as
// long as the vocabulary and may not overlap. Errors are those of sample.
func (s *sampler) distribution(dst []float32, r row) error {
	if len(dst) != s.vocab {
		return s.lengthError(len(dst))
	}
	top, lse, err := s.sums(r.logits)
	if err != nil {
		return err
	}
	clear(dst)
	switch {
	case s.params.Greedy():
		dst[kernel.ArgMax(r.logits)] = 1
		return nil
	case s.truncates():
		kept, scale := s.truncate(r, top, lse)
		if s.general {
			top = s.pool.top // the likeliest token may be gone
		}
		for _, k := range kept {
			dst[idOf(k)] = weight(r.logits[idOf(k)], top, scale)
		}
	default:
		for id, l := range r.logits {
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

// sums returns the largest of a row's logits and their log-sum-exp. Errors are those of sample.
func (s *sampler) sums(logits []float32) (top, lse float32, err error) {
	if len(logits) != s.vocab {
		return 0, 0, s.lengthError(len(logits))
	}
	top, lse, finite := kernel.LogSumExp(logits)
	return top, lse, check(logits, finite)
}

func (s *sampler) lengthError(n int) error {
	return fmt.Errorf("sample: the row has %d logits; the vocabulary has %d tokens", n, s.vocab)
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

// chosen returns the token of an id, unless err says that there is none.
func chosen(logits []float32, id int, lse float32, err error) (Token, error) {
	if err != nil {
		return Token{}, err
	}
	return Token{ID: token.ID(id), Logprob: logits[id] - lse}, nil
}

// draw returns the kept token with the highest noisy score: the score of kernel.GumbelMax, so
// that keeping every token changes nothing.
func draw(kept []uint64, logits []float32, scale float32, key kernel.Key) int {
	best, bestScore := -1, float32(0)
	for _, k := range kept {
		id := idOf(k)
		score := float32(logits[id]*scale) + kernel.Noise(key, uint32(id))
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

// dense32 returns scratch space of the vocabulary's length.
func (s *sampler) dense32() []float32 {
	if s.dense == nil {
		s.dense = make([]float32, s.vocab)
	}
	return s.dense
}
