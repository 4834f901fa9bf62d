package constrain

import "sync"

// succession replaces a constraint whose parser is worn, for the texts to come: a parser keeps what texts taught it of the
// grammar, and some of that is never dropped. Texts that have begun stay with the constraint that they began with.
type succession struct {
	anew func() (*Constraint, error) // compiles the same spec; nil: nothing wears

	mu   sync.Mutex
	heir *Constraint // nil: the constraint itself
}

// fresh returns the constraint for a text that begins.
func (c *Constraint) fresh() *Constraint {
	if c.anew == nil {
		return c
	}
	c.succession.mu.Lock()
	defer c.succession.mu.Unlock()
	now := c
	if c.heir != nil {
		now = c.heir
	}
	if p, ok := now.rec.(*parsed); ok && p.engine.Worn() {
		if made, err := c.anew(); err == nil { // it was compiled before; a worn one is better than none
			made.ahead, made.trim = c.ahead, c.trim
			c.heir, now = made, made
		}
	}
	return now
}
