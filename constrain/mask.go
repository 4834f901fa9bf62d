package constrain

import (
	"errors"
	"fmt"

	"grove/internal/text/token"
)

// maskKey is what a mask that is not the recognizer's own depends on.
type maskKey struct {
	mode         mode
	met, strips  bool
	phase, place int32
	at           state
}

// maxMasks bounds the masks that a constraint keeps beside those of its recognizer.
const maxMasks = 256

// mask returns the tokens that may follow a cursor; nil: all.
func (c *Constraint) mask(cur cursor, head []byte) (mask, error) {
	strips := c.v.strips(cur.prev)
	switch {
	case cur.mode == free:
		return nil, nil
	case cur.mode == over:
		return newMask(c.v.size), nil
	case cur.mode == active && !strips:
		return c.rec.mask(cur.at)
	case cur.mode == prefix:
		return c.spellingMask(cur, head[cur.place:], head)
	}
	key := maskKey{cur.mode, cur.met, strips, cur.phase, cur.place, cur.at}
	c.mu.Lock()
	m, ok := c.masks[key]
	c.mu.Unlock()
	if ok {
		return m, nil
	}
	m, err := c.makeMask(cur, strips)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.masks) >= maxMasks {
		clear(c.masks)
	}
	c.masks[key] = m
	return m, nil
}

// makeMask is mask for what is kept.
func (c *Constraint) makeMask(cur cursor, strips bool) (m mask, err error) {
	if cur.mode == waiting {
		return c.waitingMask(cur)
	}
	m = newMask(c.v.size)
	if cur.mode != opening || cur.place == 0 && len(c.triggers) == 1 {
		if err := c.activeMask(m, cur, strips); err != nil {
			return nil, err
		}
	}
	switch {
	case cur.mode == gap:
		for id := range token.ID(c.v.size) {
			if c.v.white.has(id) && int(cur.place)+len(c.v.trie.Bytes(id)) <= maxGap {
				m.set(id)
			}
		}
	case cur.mode == opening && cur.place == 0 && len(c.triggers) > 1: // the triggers' turn
		return c.waitingMask(c.wait(cur, 1))
	case cur.mode == opening:
		begun, err := c.spellingMask(cur, c.thoughts[cur.place:], nil)
		for i := range m {
			m[i] |= begun[i]
		}
		return m, err
	}
	return m, nil
}

// activeMask puts the tokens that the grammar allows into m.
func (c *Constraint) activeMask(m mask, cur cursor, strips bool) error {
	if c.rec == nil {
		for id := range token.ID(c.v.size) {
			m.set(id)
		}
		return nil
	}
	legal, err := c.rec.mask(cur.at)
	if copy(m, legal); err != nil || !strips {
		return err
	}
	var can [256]bool
	for b := range can {
		_, n, err := c.rec.push(cur.at, []byte{byte(b)})
		if can[b] = n == 1; err != nil {
			return err
		}
	}
	for _, id := range c.v.blanks {
		m.clear(id)
		if p := c.v.piece(id, true); len(p) > 0 && can[p[0]] {
			_, n, err := c.rec.push(cur.at, p)
			if err != nil {
				return err
			}
			if n == len(p) {
				m.set(id)
			}
		}
	}
	return nil
}

// spellingMask returns the tokens that go on with bytes which must follow.
func (c *Constraint) spellingMask(cur cursor, rest, head []byte) (m mask, err error) {
	m = newMask(c.v.size)
	try := func(id token.ID) {
		if ok, fault := c.allows(cur, id, head); ok {
			m.set(id)
		} else if fault != nil {
			err = fault
		}
	}
	c.v.spelling(rest, try)
	if c.v.strips(cur.prev) {
		c.v.spelling(append([]byte{' '}, rest...), try)
	}
	return m, err
}

// allows reports whether a token may follow a cursor.
func (c *Constraint) allows(cur cursor, id token.ID, head []byte) (bool, error) {
	switch {
	case cur.mode == free:
		return true, nil
	case cur.mode == active && !c.v.strips(cur.prev):
		return c.rec.allows(cur.at, id)
	case cur.mode == gap && c.v.white.has(id) && int(cur.place)+len(c.v.trie.Bytes(id)) <= maxGap:
		return true, nil
	}
	_, err := c.advance(cur, id, head)
	if errors.Is(err, errIllegal) {
		return false, nil
	}
	return err == nil, err
}

// stuck returns the error of a text behind which no token is legal.
func (c *Constraint) stuck(cur cursor) error {
	switch cur.mode {
	case over:
		return fmt.Errorf("constrain: the text has ended: %w", ErrConstraint)
	case active, gap, opening:
		return fmt.Errorf("constrain: byte %d: no token of the vocabulary may follow; expected %s: %w", cur.n, c.rec.expected(cur.at), ErrConstraint)
	}
	return fmt.Errorf("constrain: no token of the vocabulary may follow: %w", ErrConstraint)
}
