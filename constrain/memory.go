package constrain

// trimEvery is how many tokens of a text are written between two looks at the memory of the cache that its constraint came from.
const trimEvery = 64

// Held returns the memory of the constraint in bytes, about: of its parser, its tables and its masks. It waits for nobody; of a parser
// that is at work it is what was found before.
func (c *Constraint) Held() int {
	n := 0
	if c.rec != nil {
		n = c.rec.held()
	}
	for _, t := range c.triggers {
		n += len(t.steps) * (4*len(t.steps[0]) + 16)
	}
	c.mu.Lock()
	n += len(c.masks) * (c.v.size/8 + 128)
	c.mu.Unlock()
	if c.succession.mu.TryLock() {
		heir := c.heir
		c.succession.mu.Unlock()
		if heir != nil {
			n += heir.Held()
		}
	}
	return n
}

// grown tells the cache that the constraint is of, if any, that the parser may have grown.
func (c *Constraint) grown() {
	if c.trim != nil {
		c.trim()
	}
}
