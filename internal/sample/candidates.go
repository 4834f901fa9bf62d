package sample

import (
	"grove/internal/kernel"
	"grove/internal/text/token"
)

// A Candidate is a token that may be drawn, and the probability by which it is.
type Candidate struct {
	ID token.ID
	P  float32
}

// considered is how many of the likeliest tokens Candidates looks at besides the one that it would draw.
const considered = 64

// Candidates writes the tokens that Draw is most likely to draw from nearly these logits with the same noise to dst,
// best first, and returns those there are, len(dst) at most: the tokens with the highest noisy scores, or the
// likeliest ones where sampling is greedy. It serves a drafter, whose logits are near to the target's: the token
// drawn there is often among them. Where nothing is truncated only the likeliest tokens and the draw itself are
// looked at. It knows no state: logit stages are not applied, and mirostat stands at its beginning. Errors are those of
// Draw.
func (c *Chain) Candidates(dst []Candidate, logits []float32, index int) ([]Candidate, error) {
	s := c.sampler
	top, lse, err := s.sums(logits)
	if err != nil {
		return nil, err
	}
	if s.params.Greedy() {
		best := s.largest(logits, len(dst))
		for i, k := range best {
			dst[i] = Candidate{token.ID(idOf(k)), kernel.Exp32(logits[idOf(k)] - lse)}
		}
		return dst[:len(best)], nil
	}
	key := s.key(index, purposeDraw)
	var kept []uint64
	drawn, scale := -1, s.invT
	if s.truncates() {
		kept, scale = s.truncate(row{logits, index, c.firstMu()}, top, lse)
	} else {
		drawn, _, _, _ = kernel.GumbelMax(logits, s.invT, key)
		kept = s.largest(logits, considered)
	}
	if s.general {
		top = s.pool.top
	}
	mass := 0.0
	for _, k := range kept {
		mass += float64(weight(logits[idOf(k)], top, scale))
	}
	n := 0
	score := func(id int) float32 { return float32(logits[id]*scale) + kernel.Noise(key, uint32(id)) }
	add := func(id int) {
		at := n
		for at > 0 && score(int(dst[at-1].ID)) < score(id) {
			at--
		}
		if at == len(dst) {
			return
		}
		n = min(n+1, len(dst))
		copy(dst[at+1:n], dst[at:n-1])
		dst[at] = Candidate{token.ID(id), float32(float64(weight(logits[id], top, scale)) / mass)}
	}
	for _, k := range kept {
		if id := idOf(k); id != drawn {
			add(id)
		}
	}
	if drawn >= 0 {
		add(drawn)
	}
	return dst[:n], nil
}
