package diffuse

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"grove/internal/kernel"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// Likely has what a request asks to be told of the token of a place, by the pass that fixed it.
type Likely struct {
	Top     []sample.Token // the likeliest tokens, the likeliest first
	Logprob float32        // of the token itself, by the same probabilities
}

// Logprob returns the natural logarithm of the probability of a place's token.
func (p *Place) Logprob() float32 {
	if p.Likely != nil {
		return p.Likely.Logprob
	}
	return float32(kernel.Log64(max(p.P, math.SmallestNonzeroFloat64)))
}

// Top returns the likeliest tokens at a place, where these are asked for.
func (p *Place) Top() []sample.Token {
	if p.Likely == nil {
		return nil
	}
	return p.Likely.Top
}

// Judge is a [Sampler] that tells the likeliest tokens.
type Judge interface {
	Sampler
	// Judge returns what is told of a token of an index of the answer, from the logits that gave it. The index is that behind the text where the sampler is a [Follower]
	// that has one. The result is the caller's.
	Judge(logits []float32, index int, id token.ID) (*Likely, error)
}

// judge adds the likeliest tokens to a proposal whose logits are there, where the settings ask for them. The first error stays.
func (g *Generator) judge(at int, p *Proposal) {
	if g.judging == nil || p.Likely != nil {
		return
	}
	var err error
	if p.Likely, err = g.judging.Judge(p.Logits, at, p.ID); err != nil {
		g.failed = cmp.Or(g.failed, fmt.Errorf("diffuse: place %d: %w", at, err))
	}
}

// SettingError says which of the [Settings] is none, by its name in lower case; "": the model's.
type SettingError struct {
	Setting string
	Err     error
}

// Error implements error.
func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SettingError) Unwrap() error { return e.Err }

// fault returns an error that names a setting.
func (s *Settings) fault(setting, format string, args ...any) error {
	return &SettingError{setting, fmt.Errorf("diffuse: "+format, args...)}
}

// Blame returns an error that names a setting, where it names none yet; nil for nil.
func Blame(setting string, err error) error {
	if err == nil || errors.As(err, new(*SettingError)) {
		return err
	}
	return &SettingError{setting, err}
}
