package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"grove/internal/text/token"
)

// Plain reports whether no stage changes logits, the usual case: Process returns its argument.
func (c *Chain) Plain() bool { return len(c.steps) == 0 }

// Process returns the logits behind s as all logit stages leave them: its argument where there are none, or the chain's
// space until the next call.
func (c *Chain) Process(s State, logits []float32) []float32 {
	if c.Plain() || len(logits) != c.vocab {
		return logits
	}
	copy(c.logits, logits)
	c.move(s)
	for _, step := range c.steps {
		step.apply(s, c.logits)
	}
	return c.logits
}

// Draw draws the token behind s from the model's logits there; index is the token's place in the sequence. It gives the
// token of plain decoding: it depends on the settings, the text, the logits and the index only. Logits of minus infinity
// are masked tokens, which are never drawn; equal scores go to the lowest id. Errors: [ErrNotFinite]; [ErrAllMasked],
// with the stage that forbids the last token; logits of another length than the vocabulary.
func (c *Chain) Draw(s State, logits []float32, index int) (Token, error) {
	if c.picks() {
		return c.pick(s, logits, index)
	}
	t, err := c.sampler.sample(c.row(s, logits, index))
	if err != nil {
		return t, c.blame(s, logits, err)
	}
	if c.adapts {
		c.see(s)
	}
	if !c.Plain() {
		t.Logprob = c.Logprob(logits, t.ID)
	}
	return t, nil
}

// Probs writes the probabilities by which Draw draws to p, summing to 1 as nearly as float64 allows. Errors are those of
// Draw.
func (c *Chain) Probs(p []float64, s State, logits []float32, index int) error {
	if err := c.sampler.probs(p, c.row(s, logits, index)); err != nil {
		return c.blame(s, logits, err)
	}
	if c.adapts {
		c.see(s)
	}
	return nil
}

// Distribution writes the probabilities by which Draw would draw from logits to dst, both as long as the vocabulary,
// for a drafter: it knows no state, as Candidates. Errors are those of Draw.
func (c *Chain) Distribution(dst, logits []float32, index int) error {
	return c.sampler.distribution(dst, row{logits, index, c.firstMu()})
}

// row returns what a draw behind s depends on.
func (c *Chain) row(s State, logits []float32, index int) row {
	r := row{logits: c.Process(s, logits), index: index}
	if c.adapts {
		r.mu = c.mu(s)
	}
	return r
}

// blame adds to an error of masked logits the stage behind which no token was left.
func (c *Chain) blame(s State, logits []float32, err error) error {
	allowed := func(l float32) bool { return l > float32(math.Inf(-1)) }
	if !errors.Is(err, ErrAllMasked) || c.Plain() || !slices.ContainsFunc(logits, allowed) {
		return err
	}
	copy(c.logits, logits)
	for _, step := range c.steps {
		if step.apply(s, c.logits); !slices.ContainsFunc(c.logits, allowed) {
			if err := step.failure(s); err != nil {
				return err
			}
			words := ""
			if step.expected != nil {
				if words = step.expected(s); words != "" {
					words = " (" + words + ")"
				}
			}
			return fmt.Errorf("sample: stage %s: it leaves no token that the stages before it allow%s: %w", step.name, words, err)
		}
	}
	return err
}

// failure returns the error of a stage that is at a loss behind s.
func (st *step) failure(s State) error {
	if st.fault != nil {
		if err := st.fault(s); err != nil {
			return fmt.Errorf("sample: stage %s: %w", st.name, err)
		}
	}
	return nil
}

// Allows reports whether a token may be drawn behind s, as far as biases, the minimum length and stages that are
// [Legal] say.
func (c *Chain) Allows(s State, id token.ID) bool {
	if len(c.banned) > 0 {
		if _, banned := slices.BinarySearch(c.banned, id); banned {
			return false
		}
	}
	if p := &c.settings.Penalties; p.MinTokens > 0 && c.tooShort(s) && slices.Contains(p.Ends, id) {
		return false
	}
	for _, i := range c.legal {
		if !c.stages[i].(Legal).Allows(c.state(s, i), id) {
			return false
		}
	}
	return true
}

// Forced appends the tokens that must follow s, as far as they are known, to dst: those of the first stage that forces
// any.
func (c *Chain) Forced(dst []token.ID, s State) []token.ID {
	for _, i := range c.legal {
		if ids := c.stages[i].(Legal).Forced(c.state(s, i)); len(ids) > 0 {
			return append(dst, ids...)
		}
	}
	return dst
}

// Ended reports whether nothing but the end of the text may follow s, so that it need not be drawn.
func (c *Chain) Ended(s State) bool {
	for _, i := range c.enders {
		if c.stages[i].(Ender).Ended(c.state(s, i)) {
			return true
		}
	}
	return false
}

// Constrained reports whether a stage says which tokens are legal.
func (c *Chain) Constrained() bool { return len(c.legal) > 0 }
