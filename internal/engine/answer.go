package engine

import (
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method/layers"
)

// Answer says how a sequence's tokens are drawn and what is reported of them. The zero value takes the likeliest
// token each time.
type Answer struct {
	Sampling    sample.Params
	Penalties   sample.Penalties
	Thinking    sample.Thinking
	Prefix      bool           // the tokens of the first prompt see each other, as a prefix LM has it
	SampleIndex int            // the number of the answer in its request
	Places      layers.Places  // which layers the tokens behind the first prompt run; the zero value: all
	Stages      []sample.Stage // of the request's own, behind the penalties and before truncation

	// Top is how many of the likeliest tokens are reported beside each that is drawn.
	// PostSampling reports the probabilities of the draw instead of the model's own.
	Top          int
	PostSampling bool
}

// SampledToken is a token that was drawn, with how likely it was, and the likeliest ones at its place, as many as the
// [Answer] asks for.
type SampledToken struct {
	sample.Token
	Top []sample.Token
}

// settings returns what the chain of stages is made of.
func (a *Answer) settings() sample.Settings {
	return sample.Settings{
		Params: a.Sampling, Penalties: a.Penalties, Thinking: a.Thinking, SampleIndex: a.SampleIndex, Stages: a.Stages,
	}
}

// draw draws the token of an index, behind a state of the text, from the model's logits. Errors: those of [sample.Chain.Draw].
func (a *Answer) draw(c *sample.Chain, state sample.State, logits []float32, index int) (SampledToken, error) {
	t, err := c.Draw(state, logits, index)
	if err != nil {
		return SampledToken{}, err
	}
	d := SampledToken{Token: t}
	return d, a.report(c, &d, state, logits, index)
}

// describe returns a token that a rule has chosen as draw does one that is drawn.
func (a *Answer) describe(c *sample.Chain, state sample.State, logits []float32, index int, id token.ID) (SampledToken, error) {
	d := SampledToken{Token: sample.Token{ID: id, Logprob: c.Logprob(logits, id)}}
	return d, a.report(c, &d, state, logits, index)
}

// report adds to a token what the answer asks to be told.
func (a *Answer) report(c *sample.Chain, d *SampledToken, state sample.State, logits []float32, index int) (err error) {
	switch {
	case a.PostSampling:
		d.Top, d.Logprob, err = c.TopDrawn(state, logits, index, a.Top, d.ID)
	case a.Top > 0:
		d.Top, err = c.Top(logits, a.Top)
	}
	return err
}
