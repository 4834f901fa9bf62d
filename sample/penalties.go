package sample

import (
	"fmt"
	"math"

	"grove/text/token"
)

// A Bias is added to the logit of a token; minus infinity bans it.
type Bias struct {
	ID  token.ID
	Add float32
}

// A Penalties changes logits before a token is drawn from them, by what the text already holds. The zero value
// changes nothing.
type Penalties struct {
	Bias []Bias

	// Repeat divides the positive logits of tokens that the text holds and multiplies the negative ones; 0 or 1: off.
	Repeat       float32
	RepeatWindow int // where it looks, as Window

	// Presence is subtracted once from the logits of tokens that the text holds, Frequency as often as it holds them.
	Presence, Frequency float32
	// Window says where they look: at the last tokens of the text, the prompt's included; 0: at the answer, -1: at
	// the whole text.
	Window int

	// MinTokens is the length of the answer before which no token of Ends is drawn.
	MinTokens int
	Ends      []token.ID
}

// The ranges of a shape's numbers, wide enough for any use and narrow enough that no logit overflows.
const (
	maxBias    = 1e6
	minRepeat  = 0.01
	maxRepeat  = 100
	maxPenalty = 100
)

// Validate returns an error that names the first setting out of range and its value; ids are below vocab.
func (s *Penalties) Validate(vocab int) error {
	for _, b := range s.Bias {
		if b.ID < 0 || int(b.ID) >= vocab {
			return fmt.Errorf("sample: a bias of token %d: the vocabulary has %d", b.ID, vocab)
		}
		if !(b.Add <= maxBias && (b.Add >= -maxBias || b.Add == float32(math.Inf(-1)))) {
			return fmt.Errorf("sample: a bias of %v; it must be within %v, or minus infinity", b.Add, maxBias)
		}
	}
	if s.Repeat != 0 && !(s.Repeat >= minRepeat && s.Repeat <= maxRepeat) {
		return fmt.Errorf("sample: the repeat penalty is %v; it must be from %v to %v (1: off)", s.Repeat, minRepeat, maxRepeat)
	}
	for _, p := range []struct {
		name string
		v    float32
	}{{"presence", s.Presence}, {"frequency", s.Frequency}} {
		if !(p.v >= -maxPenalty && p.v <= maxPenalty) {
			return fmt.Errorf("sample: the %s penalty is %v; it must be within %d", p.name, p.v, maxPenalty)
		}
	}
	if s.Window < -1 || s.RepeatWindow < -1 {
		return fmt.Errorf("sample: penalties look at %d tokens; it must be -1 (all), 0 (the answer) or more", min(s.Window, s.RepeatWindow))
	}
	if s.MinTokens < 0 {
		return fmt.Errorf("sample: at least %d tokens", s.MinTokens)
	}
	for _, id := range s.Ends {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("sample: token %d ends a text: the vocabulary has %d", id, vocab)
		}
	}
	return nil
}

// zero reports whether the shape changes nothing.
func (s *Penalties) zero() bool {
	return len(s.Bias) == 0 && !s.repeats() && s.Presence == 0 && s.Frequency == 0 && (s.MinTokens == 0 || len(s.Ends) == 0)
}

func (s *Penalties) repeats() bool { return s.Repeat != 0 && s.Repeat != 1 }

// A Penalizer applies a shape. It holds scratch space and no other state. It is not safe for concurrent use; nil changes
// nothing.
type Penalizer struct {
	shape  Penalties
	logits []float32
	counts []int32 // all zero between calls; nil: no penalties
}

// NewPenalizer returns a shaper of rows of vocab logits, nil where the shape changes nothing, or the error of
// [Penalties.Validate]. It keeps the shape's slices.
func NewPenalizer(s Penalties, vocab int) (*Penalizer, error) {
	if err := s.Validate(vocab); err != nil || s.zero() {
		return nil, err
	}
	h := &Penalizer{shape: s, logits: make([]float32, vocab)}
	if s.repeats() || s.Presence != 0 || s.Frequency != 0 {
		h.counts = make([]int32, vocab)
	}
	return h, nil
}

// Apply returns the logits behind a text, of which the first prompt tokens are not the answer's, as they are drawn
// from: what it is given where nothing changes, or its own space, until the next call. It is a function of its
// arguments alone. The text's ids must be of the vocabulary. It allocates nothing.
func (h *Penalizer) Apply(logits []float32, text []token.ID, prompt int) []float32 {
	if h == nil || len(logits) != len(h.logits) {
		return logits
	}
	s, out := &h.shape, h.logits
	copy(out, logits)
	for _, b := range s.Bias {
		out[b.ID] += b.Add
	}
	if s.repeats() {
		h.each(look(text, prompt, s.RepeatWindow), func(id token.ID, _ int32) {
			if out[id] > 0 {
				out[id] /= s.Repeat
			} else {
				out[id] *= s.Repeat
			}
		})
	}
	if s.Presence != 0 || s.Frequency != 0 {
		h.each(look(text, prompt, s.Window), func(id token.ID, n int32) {
			out[id] -= float32(float32(n)*s.Frequency) + s.Presence
		})
	}
	if len(text)-prompt < s.MinTokens {
		for _, id := range s.Ends {
			out[id] = float32(math.Inf(-1))
		}
	}
	return out
}

// look returns the part of a text that a window shows.
func look(text []token.ID, prompt, window int) []token.ID {
	switch {
	case window < 0:
		return text
	case window == 0:
		return text[prompt:]
	}
	return text[max(0, len(text)-window):]
}

// each calls f once for each token that is among ids, with the number of times that it is.
func (h *Penalizer) each(ids []token.ID, f func(id token.ID, n int32)) {
	for _, id := range ids {
		h.counts[id]++
	}
	for _, id := range ids {
		if n := h.counts[id]; n > 0 {
			h.counts[id] = 0
			f(id, n)
		}
	}
}
