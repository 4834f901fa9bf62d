package constrain

import (
	"fmt"

	"grove/internal/text/token"
)

// The bounds of triggers.
const (
	maxTriggers     = 64
	maxTriggerBytes = 4096 // of all
)

// trigger finds the first of some texts in bytes that come one after the other, by the automaton of Aho and Corasick.
type trigger struct {
	steps  [][256]int32
	found  []string // by state: the longest text that is complete there; "": none
	behind bool     // the grammar begins behind the text, not with it
}

// newTrigger makes the trigger of some texts.
func newTrigger(texts []string, behind bool) (*trigger, error) {
	n := 0
	for _, text := range texts {
		if n += len(text); text == "" {
			return nil, fmt.Errorf("constrain: a trigger is empty")
		}
	}
	if len(texts) > maxTriggers || n > maxTriggerBytes {
		return nil, fmt.Errorf("constrain: %d triggers of %d bytes; at most %d of %d", len(texts), n, maxTriggers, maxTriggerBytes)
	}
	t := &trigger{steps: make([][256]int32, 1), found: make([]string, 1), behind: behind}
	for _, text := range texts {
		at := int32(0)
		for i := range len(text) {
			if t.steps[at][text[i]] == 0 {
				t.steps[at][text[i]] = int32(len(t.steps))
				t.steps, t.found = append(t.steps, [256]int32{}), append(t.found, "")
			}
			at = t.steps[at][text[i]]
		}
		t.found[at] = text
	}
	t.link()
	return t, nil
}

// link adds the steps of bytes by which no text goes on: to the longest beginning of a text that the bytes so far end with.
func (t *trigger) link() {
	back := make([]int32, len(t.steps))
	order := []int32{0}
	for i := 0; i < len(order); i++ {
		at := order[i]
		for b, to := range t.steps[at] {
			switch {
			case to == 0:
				t.steps[at][b] = t.steps[back[at]][b]
				continue
			case at != 0:
				back[to] = t.steps[back[at]][b]
			}
			if t.found[to] == "" {
				t.found[to] = t.found[back[to]]
			}
			order = append(order, to)
		}
	}
}

// step returns the state behind a byte, and the text that it completes.
func (t *trigger) step(at int32, b byte) (to int32, found string) {
	to = t.steps[at][b]
	return to, t.found[to]
}

// completes reports whether bytes complete a text behind a state.
func (t *trigger) completes(at int32, text []byte) bool {
	for _, b := range text {
		var found string
		if at, found = t.step(at, b); found != "" {
			return true
		}
	}
	return false
}

// waitingMask returns the tokens that may follow a cursor that waits: all but those that complete a trigger and go on as the grammar
// does not, and those that end the text where a trigger is needed. Nil: all.
func (c *Constraint) waitingMask(cur cursor) (mask, error) {
	var m mask
	forbid := func(id token.ID) {
		if m == nil {
			m = newMask(c.v.size)
			for i := range m {
				m[i] = ^uint64(0)
			}
		}
		m.clear(id)
	}
	if c.needed(cur) {
		for _, id := range c.v.ending {
			forbid(id)
		}
	}
	t, stripped := c.triggers[cur.phase], c.v.strips(cur.prev)
	for id := range token.ID(c.v.size) {
		piece := c.v.piece(id, stripped)
		if !t.completes(cur.place, piece) {
			continue
		}
		if _, err := c.feed(cur, piece, nil); err != nil {
			forbid(id)
		}
	}
	return m, nil
}
