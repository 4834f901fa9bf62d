package diffuse

import (
	"grove/internal/kernel"
	"grove/internal/text/token"
)

// Proposal is the result of a pass for one place: the token that would be put there, and how certain the model is.
type Proposal struct {
	ID      token.ID
	P       float64   // the probability of ID at temperature 1
	Top     float64   // that of the likeliest token
	Second  float64   // that of the likeliest other token
	Gap     float64   // between the logits of the two likeliest tokens
	Entropy float64   // of the distribution, in nats
	Logits  []float32 // the pass's, valid while the policy chooses
	Likely  *Likely   // what is told of ID; nil: nothing, or not yet
}

// reader reads the proposal of a place from the logits of a pass.
type reader func(logits []float32, place, pass int) (Proposal, error)

// readWith returns a reader whose tokens a sampler draws. The mask is never proposed.
func readWith(s Sampler, mask token.ID) reader {
	return func(logits []float32, place, pass int) (p Proposal, err error) {
		if int(mask) < len(logits) {
			logits[mask] = masked
		}
		p.read(logits)
		top := p.ID
		if p.ID, err = s.Draw(logits, place, pass); err == nil && p.ID != top {
			p.P *= kernel.Exp64(max(-700, float64(logits[p.ID])-float64(logits[top])))
		}
		return p, err
	}
}

// masked is the logit of a token that cannot be drawn.
const masked = -1e30

// read sums the logits up.
func (p *Proposal) read(logits []float32) {
	first, second := 0, -1
	for id, l := range logits {
		switch {
		case l > logits[first]:
			first, second = id, first
		case id != first && (second < 0 || l > logits[second]):
			second = id
		}
	}
	top := float64(logits[first])
	sum, weighed := 0.0, 0.0
	for _, l := range logits {
		d := float64(l) - top
		if d < -50 {
			continue // less than float64 adds to the sum
		}
		e := kernel.Exp64(d)
		sum += e
		weighed += e * d
	}
	p.ID, p.Logits = token.ID(first), logits
	p.P, p.Top, p.Entropy = 1/sum, 1/sum, kernel.Log64(sum)-weighed/sum
	if second >= 0 {
		p.Gap = top - float64(logits[second])
		p.Second = kernel.Exp64(-min(p.Gap, 700)) / sum
	}
}
