package engine

import (
	"grove/method"
	"grove/sample"
)

// Answer says how a sequence's tokens are drawn and what is reported of them. The zero value takes the likeliest
// token each time.
type Answer struct {
	Sampling    sample.Params
	Penalties   sample.Penalties
	Thinking    sample.Thinking
	Stages      []sample.Stage
	SampleIndex int // the number of the answer in its request

	// Top is how many of the likeliest tokens are reported beside each that is drawn.
	// PostSampling reports the probabilities of the draw instead of the model's own.
	Top          int
	PostSampling bool
}

// Drawn is a token that was drawn, with how likely it was, and the likeliest ones at its place, as many as the
// [Answer] asks for.
type Drawn struct {
	sample.Token
	Top []sample.Token
}

// settle makes the end of the text the chain's trunk.
func (s *Sequence) settle() {
	s.chain.Keep(s.end)
	s.end = 0
}

// behind returns the chain's state behind a node of the round's tree.
func (s *Sequence) behind(node int) sample.State {
	if node == method.Root {
		return s.end
	}
	n := s.spec.tree.Nodes()[node]
	return s.chain.Next(s.behind(int(n.Parent)), n.ID)
}

// pick draws the token of an index behind a state from the model's logits.
func (s *Sequence) pick(logits []float32, at sample.State, index int) (Drawn, error) {
	c, err := s.chain.Draw(at, logits, index)
	if err != nil {
		return Drawn{}, err
	}
	d := Drawn{Token: c}
	return d, s.report(&d, logits, at, index)
}

// report adds to a drawn token the probabilities that the answer asks for.
func (s *Sequence) report(d *Drawn, logits []float32, at sample.State, index int) (err error) {
	switch {
	case s.answer.PostSampling:
		d.Top, d.Logprob, err = s.chain.TopDrawn(at, logits, index, s.answer.Top, d.ID)
	case s.answer.Top > 0:
		d.Top, err = s.chain.Top(logits, s.answer.Top)
	}
	return err
}
