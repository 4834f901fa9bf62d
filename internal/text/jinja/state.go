package jinja

import "fmt"

// state is the state of one render. What its methods refuse, and the end of its steps, is a panic with an [*Error].
type state struct {
	line  int // line of the template that runs, for errors
	left  int // steps left
	check func() error
	depth int // expressions, calls and values within each other
	room  int // characters that the output may have
	scope *scope
	out   *Output
	held  *Text // what is printed, where it is captured; nil: it is the output
}

// fail ends the render with an error.
func (s *state) fail(format string, args ...any) { fail(s.line, format, args...) }

// spend takes n steps.
func (s *state) spend(n int) {
	if s.left -= n; s.left < 0 || n < 0 {
		exceed(s.line, "too many steps")
	}
	const often = 1 << 12 // steps, some tenths of a millisecond
	if s.check != nil && (s.left+n)/often != s.left/often {
		if err := s.check(); err != nil {
			panic(&Error{s.line, err.Error(), err})
		}
	}
}

// copied spends the steps of n characters that are read or copied. A value in a list or dict counts as 12 of them.
func (s *state) copied(n int) { s.spend(1 + n/12) }

// enter goes into a value, expression or call within another; leave goes out of it.
func (s *state) enter() {
	s.spend(1)
	if s.depth++; s.depth > maxRenderDepth {
		exceed(s.line, "nested too deeply")
	}
}

func (s *state) leave() { s.depth-- }

// extend appends text.
func (s *state) extend(to, from Text) Text {
	s.copied(len(from))
	return append(to, from...)
}

// print appends text to the output, or to what is captured.
func (s *state) print(t Text) {
	var chars int
	if s.held != nil {
		*s.held = s.extend(*s.held, t)
		chars = len(*s.held)
	} else {
		s.copied(len(t))
		s.out.add(t)
		chars = s.out.chars
	}
	if chars > s.room {
		exceed(s.line, fmt.Sprintf("more than %d characters", s.room))
	}
}

// capture returns the text that do prints.
func (s *state) capture(do func()) (text Text) {
	outer := s.held
	s.held = &text
	do()
	s.held = outer
	return text
}

// scope holds names. A name that it lacks is looked up in its parent.
type scope struct {
	vars   map[string]Value // nil until a name is set
	parent *scope
}

// lookup returns the value of a name, or undefined.
func (s *state) lookup(name string) Value {
	visited := 0
	for c := s.scope; c != nil; c = c.parent {
		if v, ok := c.vars[name]; ok {
			return v
		}
		if visited++; visited%16 == 0 {
			s.spend(1)
		}
	}
	return undefined{name}
}

func (c *scope) set(name string, v Value) {
	if c.vars == nil {
		c.vars = map[string]Value{}
	}
	c.vars[name] = v
}

// within calls do in a new scope below parent.
func (s *state) within(parent *scope, do func()) {
	outer := s.scope
	s.scope = &scope{parent: parent}
	do()
	s.scope = outer
}
