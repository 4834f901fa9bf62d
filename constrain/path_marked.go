package constrain

import (
	"errors"
	"fmt"
	"strings"
)

// PathMarked is free text in which only texts of a machine follow an opening marker, as a [PathMachine]: the text ends where it
// is free. Behind the first end of such a text it is free again. It is as safe for concurrent use as the inner machine.
type PathMarked struct {
	open     string
	fallback []int // of each beginning of open: the longest shorter one that it ends with
	inner    PathMachine
}

// PathNewMarked returns free text with texts of inner behind each opening marker. inner is comparable, as Go has it, if
// Marked is to be a terminal of a grammar. Errors: a marker that is empty or holds the byte 0xff, an inner machine that
// takes the empty text.
func PathNewMarked(open string, inner PathMachine) (*PathMarked, error) {
	if open == "" || strings.IndexByte(open, textEnd) >= 0 {
		return nil, fmt.Errorf("paths: the opening marker is %q; it must be text", open)
	}
	if inner.Final(PathStart) {
		return nil, errors.New("paths: what follows the opening marker may be empty; it must have an end of its own")
	}
	m := &PathMarked{open: open, inner: inner, fallback: make([]int, len(open)+1)}
	for i := 1; i < len(open); i++ {
		m.fallback[i+1] = m.match(m.fallback[i], open[i])
	}
	return m, nil
}

// match returns how much of the marker a text ends with behind one more byte; n is how much before it, less than all.
func (m *PathMarked) match(n int, b byte) int {
	for n > 0 && m.open[n] != b {
		n = m.fallback[n]
	}
	if m.open[n] == b {
		n++
	}
	return n
}

// Step implements [PathMachine].
func (m *PathMarked) Step(state int, b byte) (next int, alive bool) {
	if state < len(m.open) {
		return m.match(state, b), b != textEnd
	}
	next, alive = m.inner.Step(state-len(m.open), b)
	if alive && m.inner.Final(next) {
		return 0, true
	}
	return next + len(m.open), alive
}

// Final implements [PathMachine].
func (m *PathMarked) Final(state int) bool { return state < len(m.open) }
