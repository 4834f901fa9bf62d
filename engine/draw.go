package engine

import (
	"slices"

	"grove/method"
	"grove/sample"
	"grove/text/token"
)

// Answer says how a sequence's tokens are drawn and what is reported of them. The zero value takes the likeliest
// token each time.
type Answer struct {
	Sampling    sample.Params
	Penalties   sample.Penalties
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

// behind returns the text that ends with a node of the round's tree, for the shaper. It lies in the room behind the
// text and is good until the next call.
func (s *Sequence) behind(node int) []token.ID {
	if s.shaper == nil {
		return nil
	}
	n, nodes := len(s.text), s.spec.tree.Nodes()
	text := s.text
	for ; node != method.Root; node = int(nodes[node].Parent) {
		text = append(text, nodes[node].ID)
	}
	slices.Reverse(text[n:])
	s.text = text[:n]
	return text
}

// pick draws the token of an index, behind a text, from the model's logits.
func (s *Sequence) pick(logits []float32, text []token.ID, index int) (Drawn, error) {
	shaped := s.shaper.Apply(logits, text, s.prompt)
	c, err := s.sampler.Sample(shaped, s.answer.SampleIndex, index)
	if err != nil {
		return Drawn{}, err
	}
	if s.shaper != nil {
		c.Logprob = s.sampler.Logprob(logits, c.ID)
	}
	d := Drawn{Token: c}
	return d, s.report(&d, logits, shaped)
}

// law writes the probabilities by which tokens are drawn behind a node of the round's tree.
func (s *Sequence) law(p []float64, node int, logits []float32) error {
	return s.sampler.Probs(p, s.shaper.Apply(logits, s.behind(node), s.prompt))
}

// report adds to a drawn token what the answer asks to be told.
func (s *Sequence) report(d *Drawn, logits, shaped []float32) (err error) {
	switch {
	case s.answer.PostSampling:
		d.Top, d.Logprob, err = s.sampler.TopDrawn(shaped, s.answer.Top, d.ID)
	case s.answer.Top > 0:
		d.Top, err = s.sampler.Top(logits, s.answer.Top)
	}
	return err
}
