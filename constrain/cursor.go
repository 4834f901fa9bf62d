package constrain

import (
	"bytes"
	"errors"
	"fmt"

	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// mode says what a constraint waits for.
type mode uint8

const (
	active  mode = iota // the grammar says what may follow
	gap                 // the same, or white space: the text's thoughts have ended
	opening             // the same, or the marker that begins thoughts
	waiting             // a trigger; until then all may follow
	prefix              // the bytes of a prefix, then what comes first
	free                // all may follow
	over                // nothing: the text has ended
)

// maxGap is how many bytes of white space may stand behind thoughts: a blank line, in either form.
const maxGap = 4

// cursor is a text as a constraint sees it.
type cursor struct {
	mode  mode
	met   bool     // a trigger was
	phase int32    // of waiting: the trigger's number
	place int32    // of waiting: the trigger's state; else bytes of prefix, marker or gap that were seen
	at    state    // of active, gap and opening
	prev  token.ID // the last token
	n     int      // bytes that the grammar has got
}

// errIllegal reports a token that may not follow.
var errIllegal = errors.New("the token may not follow")

// begin returns the cursor behind a prompt, of which prev is the last token. inside says that it ends with thoughts that go on, or, of a
// model that writes in channels, with what begins the answer.
func (c *Constraint) begin(prev token.ID, inside bool, head []byte) cursor {
	cur := cursor{prev: prev}
	if len(head) > 0 {
		cur.mode = prefix
		return cur
	}
	return c.first(cur, inside)
}

// first returns the cursor of a text of which nothing is known.
func (c *Constraint) first(cur cursor, inside bool) cursor {
	if c.channels && inside {
		return c.enter(cur, 1)
	}
	if c.thoughts != nil && !inside {
		cur.mode, cur.at, cur.place = opening, c.root, 0
		return cur
	}
	if c.thoughts != nil {
		return c.wait(cur, 0)
	}
	return c.enter(cur, 0)
}

// wait returns the cursor that waits for a trigger.
func (c *Constraint) wait(cur cursor, phase int32) cursor {
	cur.mode, cur.phase, cur.place = waiting, phase, 0
	return cur
}

// enter returns the cursor that waits for the triggers from a number on, or that is behind them.
func (c *Constraint) enter(cur cursor, phase int32) cursor {
	if int(phase) < len(c.triggers) {
		return c.wait(cur, phase)
	}
	cur.mode, cur.place, cur.at, cur.n = active, 0, c.root, 0
	if c.rec == nil {
		cur.mode = free
		return cur
	}
	return c.again(cur)
}

// advance returns the cursor behind a token. Errors: errIllegal, those of the recognizer.
func (c *Constraint) advance(cur cursor, id token.ID, head []byte) (cursor, error) {
	if !c.v.valid(id) {
		return cur, errIllegal
	}
	stripped := c.v.strips(cur.prev)
	cur.prev = id
	if c.v.trie.Kind(id) == vocab.End {
		if !c.mayEnd(cur) {
			return cur, errIllegal
		}
		cur.mode = over
		return cur, nil
	}
	if cur.mode == active && !stripped {
		to, err := c.rec.next(cur.at, id)
		if err != nil {
			return cur, err
		}
		cur.at, cur.n = to, cur.n+len(c.v.trie.Bytes(id))
		return c.again(cur), nil
	}
	piece := c.v.piece(id, stripped)
	switch {
	case len(piece) == 0 && (cur.mode == waiting || cur.mode == free):
		cur.place = 0 // it is no part of a trigger
		return cur, nil
	case len(piece) == 0:
		return cur, errIllegal
	}
	return c.feed(cur, piece, head)
}

// mayEnd reports whether the text may end.
func (c *Constraint) mayEnd(cur cursor) bool {
	switch cur.mode {
	case active, gap:
		return c.rec.ends(cur.at)
	case opening:
		return cur.place == 0 && c.rec != nil && c.rec.ends(cur.at)
	case waiting:
		return !c.needed(cur)
	case free:
		return true
	}
	return false
}

// needed reports whether a trigger must come before the text may end.
func (c *Constraint) needed(cur cursor) bool {
	return !cur.met && (c.required || c.thinks() && cur.phase == 0)
}

// thinks reports whether the first trigger ends thoughts.
func (c *Constraint) thinks() bool { return c.thoughts != nil || c.channels }

// feed returns the cursor behind bytes of a token.
func (c *Constraint) feed(cur cursor, text, head []byte) (cursor, error) {
	for len(text) > 0 {
		var n int
		var err error
		switch cur.mode {
		case prefix:
			rest := head[cur.place:]
			if n = min(len(rest), len(text)); !bytes.Equal(rest[:n], text[:n]) {
				return cur, errIllegal
			}
			if cur.place += int32(n); n == len(rest) {
				cur = c.first(cur, false)
			}
		case opening:
			cur, n, err = c.feedOpening(cur, text)
		case waiting:
			cur, n, err = c.feedWaiting(cur, text)
		case gap:
			if white := bytes.Trim(text, " \t\r\n"); len(white) == 0 && int(cur.place)+len(text) <= maxGap {
				cur.place += int32(len(text))
				return cur, nil
			}
			cur.mode, cur.place = active, 0
		case active:
			cur, n, err = c.feedActive(cur, text)
		case free:
			return cur, nil
		default:
			return cur, errIllegal
		}
		if err != nil {
			return cur, err
		}
		text = text[n:]
	}
	return cur, nil
}

// feedOpening takes bytes of the marker that begins thoughts, or leaves them to the grammar.
func (c *Constraint) feedOpening(cur cursor, text []byte) (cursor, int, error) {
	rest := c.thoughts[cur.place:]
	n := min(len(rest), len(text))
	switch {
	case bytes.Equal(rest[:n], text[:n]):
		if cur.place += int32(n); n == len(rest) {
			cur = c.wait(cur, 0)
		}
		return cur, n, nil
	case cur.place == 0:
		return c.enter(cur, 1), 0, nil
	}
	return cur, 0, errIllegal
}

// feedWaiting takes bytes until a trigger is complete.
func (c *Constraint) feedWaiting(cur cursor, text []byte) (cursor, int, error) {
	t := c.triggers[cur.phase]
	for i, b := range text {
		place, found := t.step(cur.place, b)
		if cur.place = place; found == "" {
			continue
		}
		thought := c.thinks() && cur.phase == 0
		cur.met = cur.met || !thought
		if cur = c.enter(cur, cur.phase+1); thought && cur.mode == active {
			cur.mode = gap
		}
		if !t.behind {
			next, err := c.feed(cur, []byte(found), nil)
			return next, i + 1, err
		}
		return cur, i + 1, nil
	}
	return cur, len(text), nil
}

// feedActive takes bytes by the grammar.
func (c *Constraint) feedActive(cur cursor, text []byte) (cursor, int, error) {
	to, n, err := c.rec.push(cur.at, text)
	if err != nil {
		return cur, n, err
	}
	if cur.at, cur.n = to, cur.n+n; n < len(text) {
		return cur, n, fmt.Errorf("byte %d: %w", cur.n, errIllegal)
	}
	return c.again(cur), n, nil
}

// again waits for the trigger anew where the grammar's text is complete and others may follow: behind the token that ends it, which no
// token goes beyond.
func (c *Constraint) again(cur cursor) cursor {
	if !c.repeats || !c.complete(cur.at) {
		return cur
	}
	return c.wait(cur, int32(len(c.triggers)-1))
}

// complete reports whether nothing but the end may follow a state.
func (c *Constraint) complete(s state) bool {
	if !c.rec.ends(s) {
		return false
	}
	m, err := c.rec.mask(s)
	if err != nil {
		return false
	}
	for i, w := range m {
		if i < len(c.v.noEnd) && w&c.v.noEnd[i] != 0 {
			return false
		}
	}
	return true
}
