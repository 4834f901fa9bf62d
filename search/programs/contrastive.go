// contrastive.go is contrastive search (A Contrastive Framework for Neural Text Generation, 2022): of the k likeliest tokens it takes the one that is likely and
// whose state is unlike those of the text before it, so that the text repeats itself less. The k rows are one step, and the row of the token that is
// taken stays. Nothing is random. It is lossy. With alpha=0 it is greedy decoding.

package programs

import (
	"context"
	"math"

	"grove/internal/options"
	"grove/internal/text/token"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "contrastive", Paper: "Contrastive Search, 2022", Options: "k=4,alpha=0.6,back=4096",
		Open: func(o *options.Options) search.Program {
			return contrastive{o.Int("k", 4, 1, 16), o.Float("alpha", .6, 0, 1), o.Int("back", 4096, 1, 1<<20)}
		},
	})
}

type contrastive struct {
	k     int     // tokens that are tried
	alpha float64 // share of the likeness in a score
	back  int     // tokens of the text that a candidate is compared with, the last ones
}

// Samples implements [search.Program]: all candidates have one slot.
func (contrastive) Samples() int { return 1 }

// Check implements [search.Program].
func (contrastive) Check(*search.Problem) error { return nil }

// Run implements [search.Program].
func (c contrastive) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.Fork(ctx, p, 0, 1)
	if err != nil {
		return nil, err
	}
	r := &contrastiveRun{contrastive: c, b: b, figures: map[string]float64{"tried_tokens": 0, "other_tokens": 0}}
	if c.alpha > 0 {
		first := max(0, p.First.Len()-c.back)
		err = p.First.States(ctx, first, func(at int, state []float32) {
			if at >= first {
				r.seen.put(at-first, state)
			}
		})
		if err != nil {
			return nil, err
		}
		r.next = p.First.Len() - first
	}
	return b.First(r.figures, func() error { return r.advance(ctx) })
}

// A contrastiveRun is a search on its way.
type contrastiveRun struct {
	contrastive
	b       *search.Samples
	seen    states
	next    int // tokens of the text whose states were kept
	ids     []token.ID
	figures map[string]float64
}

// advance gives the answer a token.
func (r *contrastiveRun) advance(ctx context.Context) error {
	list, err := r.b.All[0].Seq.Likeliest(ctx, r.k)
	if err != nil {
		return err
	}
	r.ids = r.ids[:0]
	for _, t := range list {
		r.ids = append(r.ids, t.ID)
	}
	return r.b.Try(ctx, 0, r.ids, func(states [][]float32) int {
		best, most := 0, math.Inf(-1)
		for i, state := range states {
			score := (1 - r.alpha) * math.Exp(float64(list[i].Logprob))
			if r.alpha > 0 {
				score -= r.alpha * r.seen.likeness(state)
			}
			if score > most {
				best, most = i, score
			}
		}
		r.figures["tried_tokens"] += float64(len(states))
		if best > 0 {
			r.figures["other_tokens"]++
		}
		if r.alpha > 0 {
			r.seen.put(r.next%r.back, states[best])
			r.next++
		}
		return best
	})
}

// states are those of a text's last tokens, with the length 1, one behind the other.
type states struct{ values []float32 }

// put keeps a state at a place, of those that are kept or the next one.
func (s *states) put(at int, state []float32) {
	width, scale := len(state), float32(1)
	if l := dot(state, state); l > 0 {
		scale = float32(1 / math.Sqrt(l))
	}
	if len(s.values) == at*width {
		s.values = append(s.values, state...)
	}
	row := s.values[at*width:][:width]
	for i, v := range state {
		row[i] = v * scale
	}
}

// likeness returns the largest cosine of the angles between a state and those that are kept; of none it is 0.
func (s *states) likeness(state []float32) float64 {
	most, length := math.Inf(-1), math.Sqrt(dot(state, state))
	for rest := s.values; len(rest) > 0; rest = rest[len(state):] {
		most = max(most, dot(rest[:len(state)], state))
	}
	if len(s.values) == 0 || length == 0 {
		return 0
	}
	return most / length
}

// dot adds up the products of two vectors of one length, each of which is exact, in four sums.
func dot(a, b []float32) float64 {
	var sums [4]float64
	for len(a) >= 4 && len(b) >= 4 {
		for i := range sums {
			sums[i] += float64(a[i]) * float64(b[i])
		}
		a, b = a[4:], b[4:]
	}
	for i := range a {
		sums[i] += float64(a[i]) * float64(b[i])
	}
	return sums[0] + sums[1] + (sums[2] + sums[3])
}
