package earley

import (
	"math"

	"grove/constrain/vocab"
)

// Bounds of the look at clean text.
const (
	cleanLevels = 16 // code points; tokens with more are walked, unless all clean text is allowed for ever
	cleanFuel   = 64 // states
)

// A cleanStep is what follows a state of the lexer over one code point of clean text.
type cleanStep struct {
	all  bool        // every code point may follow
	none tri         // none may, not even its first byte
	next []*lexState // behind it, where all may follow
}

// cleanDepth returns for how many code points of clean text a state of the lexer goes on whatever they are; more than
// vocab.Levels: for ever. exact: with that many it goes on and does not accept, and no further one may follow.
func (e *Engine) cleanDepth(q *lexState) (n int, exact bool) {
	for _, p := range q.pairs {
		n = max(n, e.store.Free(p.rest))
	}
	switch {
	case n == math.MaxInt:
		return vocab.Levels + 1, false
	case n >= cleanLevels:
		return min(n, vocab.Levels), false
	}
	free := n
	level := map[*lexState]int{q: 0}
	front := []*lexState{q}
	loops := false
	for n = 0; n < cleanLevels && len(level) < cleanFuel; n++ {
		var next []*lexState
		all := true
		for _, s := range front {
			step := e.cleanStep(s)
			if e.failed() {
				return 0, false
			}
			if all = all && step.all; !all {
				break
			}
			for _, t := range step.next {
				at, seen := level[t]
				loops = loops || seen && at <= n
				if !seen {
					level[t] = n + 1
					next = append(next, t)
				}
			}
		}
		if !all {
			return max(n, free), n > 0 && !loops && e.noClean(front)
		}
		if front = next; len(front) == 0 {
			return vocab.Levels + 1, false
		}
	}
	return max(n, free), false
}

// noClean reports whether no clean code point may follow any of some states, and none of them accepts.
func (e *Engine) noClean(front []*lexState) bool {
	for _, q := range front {
		if q.accept != nil || !e.noCleanByte(q) {
			return false
		}
	}
	return true
}

// noCleanByte reports whether no clean code point, not even its first byte, may follow a state.
func (e *Engine) noCleanByte(q *lexState) bool {
	step := e.cleanStep(q)
	if step.none != unknown {
		return step.none == yes
	}
	e.classes(q)
	step.none = yes
	for _, r := range first {
		for b := int(r[0]); b <= int(r[1]); b++ {
			if e.take(q, byte(b)) != nil {
				step.none = no
				return false
			}
		}
	}
	return !e.failed()
}

// ranges are the bytes of the code points beyond ASCII, byte by byte.
var ranges = [...][][2]byte{
	{{0xc2, 0xdf}, {0x80, 0xbf}},
	{{0xe0, 0xe0}, {0xa0, 0xbf}, {0x80, 0xbf}},
	{{0xe1, 0xec}, {0x80, 0xbf}, {0x80, 0xbf}},
	{{0xed, 0xed}, {0x80, 0x9f}, {0x80, 0xbf}},
	{{0xee, 0xef}, {0x80, 0xbf}, {0x80, 0xbf}},
	{{0xf0, 0xf0}, {0x90, 0xbf}, {0x80, 0xbf}, {0x80, 0xbf}},
	{{0xf1, 0xf3}, {0x80, 0xbf}, {0x80, 0xbf}, {0x80, 0xbf}},
	{{0xf4, 0xf4}, {0x80, 0x8f}, {0x80, 0xbf}, {0x80, 0xbf}},
}

// first are the first bytes of clean code points, ASCII first.
var first = [...][2]byte{{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x7e}, {0xc2, 0xf4}}

// cleanStep returns what follows a state over one code point of clean text.
func (e *Engine) cleanStep(q *lexState) *cleanStep {
	if q.clean != nil {
		return q.clean
	}
	c := &cleanStep{all: true}
	from := []*lexState{q}
	for _, r := range first[:len(first)-1] {
		c.next = e.spread(c, c.next, from, r)
	}
	for _, bytes := range ranges {
		at := from
		for i, r := range bytes {
			if i == len(bytes)-1 {
				c.next = e.spread(c, c.next, at, r)
			} else {
				at = e.spread(c, nil, at, r)
			}
		}
	}
	if !c.all {
		c.next = nil
	}
	if e.failed() {
		return c
	}
	q.clean = c
	e.took(64 + 8*len(c.next))
	return c
}

// spread adds the states behind each byte of a range to dst. It notes in c where a byte may not follow, and stops there.
func (e *Engine) spread(c *cleanStep, dst, from []*lexState, r [2]byte) []*lexState {
	for _, q := range from {
		if !c.all {
			return dst
		}
		e.classes(q)
		var seen [4]uint64
		for b := int(r[0]); b <= int(r[1]); b++ {
			class := q.class[b]
			if seen[class>>6]>>(class&63)&1 != 0 {
				continue
			}
			seen[class>>6] |= 1 << (class & 63)
			next := e.take(q, byte(b))
			if next == nil || len(dst) > cleanFuel {
				c.all = false
				return dst
			}
			if !has(dst, next) {
				dst = append(dst, next)
			}
		}
	}
	return dst
}

func has(list []*lexState, q *lexState) bool {
	for _, p := range list {
		if p == q {
			return true
		}
	}
	return false
}
