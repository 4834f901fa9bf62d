package sample

import (
	"fmt"
	"math"

	"grove/internal/text/token"
)

// A Bias is added to the logit of a token; minus infinity bans it.
type Bias struct {
	ID  token.ID
	Add float32
}

// Penalties change logits before a token is drawn from them, by the tokens that the text already holds. The zero value
// changes nothing.
type Penalties struct {
	Bias []Bias

	// Repeat divides the positive logits of tokens that the text holds and multiplies the negative ones; 0 or 1: off.
	Repeat       float32
	RepeatWindow int // the tokens that it looks at, as Window

	// Presence is subtracted once from the logits of tokens that the text holds, Frequency as often as it holds them.
	Presence, Frequency float32
	// Window is the number of tokens at the end of the text, the prompt's included, that they look at; 0: the answer's,
	// -1: all.
	Window int

	// MinTokens is the length of the answer before which no token of Ends is drawn.
	MinTokens int
	Ends      []token.ID // XTC leaves one of them, too

	// DRY penalizes tokens that would continue a repetition.
	DRY DRY
}

// The ranges of the settings, wide enough for any use and narrow enough that no logit overflows.
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
			return fmt.Errorf("sample: bias: token %d is out of range; the vocabulary has %d tokens", b.ID, vocab)
		}
		if !(b.Add <= maxBias && (b.Add >= -maxBias || b.Add == float32(math.Inf(-1)))) {
			return fmt.Errorf("sample: bias: token %d has %v; it must be from -%v to %v, or minus infinity", b.ID, b.Add, maxBias, maxBias)
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
			return fmt.Errorf("sample: the %s penalty is %v; it must be from -%d to %d (0: off)", p.name, p.v, maxPenalty, maxPenalty)
		}
	}
	if s.Window < -1 || s.RepeatWindow < -1 {
		return fmt.Errorf("sample: the window of a penalty is %d tokens; it must be -1 (all), 0 (the answer) or more", min(s.Window, s.RepeatWindow))
	}
	if s.MinTokens < 0 {
		return fmt.Errorf("sample: the minimum length is %d tokens; it must be 0 or more", s.MinTokens)
	}
	if id, some := outside(s.Ends, vocab); some {
		return fmt.Errorf("sample: token %d is said to end a text; it must be a token of the vocabulary, which has %d", id, vocab)
	}
	return s.DRY.validate(vocab)
}

// outside returns the first of some ids that is none of a vocabulary.
func outside(ids []token.ID, vocab int) (id token.ID, some bool) {
	for _, id := range ids {
		if id < 0 || int(id) >= vocab {
			return id, true
		}
	}
	return token.None, false
}

func (s *Penalties) repeats() bool { return s.Repeat != 0 && s.Repeat != 1 }

func (s *Penalties) counts() bool { return s.Presence != 0 || s.Frequency != 0 }

// applyBias adds the biases.
func (c *Chain) applyBias(_ State, logits []float32) {
	for _, b := range c.settings.Penalties.Bias {
		logits[b.ID] += b.Add
	}
}

// applyRepeat divides or multiplies the logits of the tokens in the window.
func (c *Chain) applyRepeat(_ State, logits []float32) {
	penalty := c.settings.Penalties.Repeat
	c.repeated.each(func(id token.ID, _ int32) {
		if logits[id] > 0 {
			logits[id] /= penalty
		} else {
			logits[id] *= penalty
		}
	})
}

// applyCounts subtracts the presence and the frequency penalty.
func (c *Chain) applyCounts(_ State, logits []float32) {
	p := &c.settings.Penalties
	c.present.each(func(id token.ID, n int32) {
		logits[id] -= float32(float32(n)*p.Frequency) + p.Presence
	})
}

// tooShort reports whether the answer may not end behind a state.
func (c *Chain) tooShort(s State) bool {
	return c.trunk-c.prompt+int(c.nodes[s].depth) < c.settings.Penalties.MinTokens
}

// applyMinTokens masks the tokens that end an answer where it is too short.
func (c *Chain) applyMinTokens(s State, logits []float32) {
	if c.tooShort(s) {
		for _, id := range c.settings.Penalties.Ends {
			logits[id] = float32(math.Inf(-1))
		}
	}
}

// A counter counts the tokens in a window at the end of a text that grows and shrinks there. Nil counts nothing.
type counter struct {
	window int        // as Penalties.Window
	counts []int32    // of each token, twice; odd where the token is listed
	listed []token.ID // all tokens with a count, and some whose count fell to 0
}

func newCounter(window, vocab int) *counter {
	return &counter{window: window, counts: make([]int32, vocab)}
}

// push tells that a token was appended to the text.
func (c *counter) push(text []token.ID) {
	if c == nil {
		return
	}
	n := len(text)
	c.add(text[n-1])
	if c.window > 0 && n > c.window {
		c.counts[text[n-1-c.window]] -= 2
	}
}

// pop tells that the last token of the text is about to be removed.
func (c *counter) pop(text []token.ID) {
	if c == nil {
		return
	}
	n := len(text)
	c.counts[text[n-1]] -= 2
	if c.window > 0 && n > c.window {
		c.add(text[n-1-c.window])
	}
}

func (c *counter) add(id token.ID) {
	if c.counts[id]&1 == 0 {
		c.counts[id] |= 1
		c.listed = append(c.listed, id)
	}
	c.counts[id] += 2
}

// reset forgets all tokens.
func (c *counter) reset() {
	if c == nil {
		return
	}
	for _, id := range c.listed {
		c.counts[id] = 0
	}
	c.listed = c.listed[:0]
}

// each calls f once for each token in the window, with the number of times that it is there.
func (c *counter) each(f func(id token.ID, n int32)) {
	for i := 0; i < len(c.listed); {
		id := c.listed[i]
		if n := c.counts[id] >> 1; n > 0 {
			f(id, n)
			i++
			continue
		}
		c.counts[id] = 0
		last := len(c.listed) - 1
		c.listed[i] = c.listed[last]
		c.listed = c.listed[:last]
	}
}

// copyTo makes o, of the same window and vocabulary, equal.
func (c *counter) copyTo(o *counter) {
	if c == nil {
		return
	}
	copy(o.counts, c.counts)
	o.listed = append(o.listed[:0], c.listed...)
}
