package value

import (
	"errors"
	"fmt"
	"slices"
)

// ErrLimit reports a template that needs more steps, characters or depth than it is given.
var ErrLimit = errors.New("template limit exceeded")

// Error reports what is wrong with a template, or with the values that it met.
type Error struct {
	Line int    // of the template, from 1
	Msg  string // what is wrong
	Err  error  // ErrLimit, or nil
}

// Error returns the line and what is wrong.
func (e *Error) Error() string { return fmt.Sprintf("jinja: line %d: %s", e.Line, e.Msg) }

// Unwrap returns [ErrLimit] where a limit was exceeded.
func (e *Error) Unwrap() error { return e.Err }

// Steps is what a render may still do. Its methods compute with values; what they refuse, and the end of
// the steps, is a panic with an [*Error], which the package jinja catches.
type Steps struct {
	Line  int // of the template, for errors
	Left  int
	depth int
}

// maxDepth bounds what a render may nest: expressions, loops, calls and values.
const maxDepth = 5000

// Fail ends the render with an error.
func (s *Steps) Fail(format string, args ...any) {
	panic(&Error{Line: s.Line, Msg: fmt.Sprintf(format, args...)})
}

// Exceed ends the render at a limit.
func (s *Steps) Exceed(what string) {
	panic(&Error{s.Line, ErrLimit.Error() + ": " + what, ErrLimit})
}

// Spend takes n steps.
func (s *Steps) Spend(n int) {
	if s.Left -= n; s.Left < 0 || n < 0 {
		s.Exceed("too many steps")
	}
}

// Copied spends the steps of n characters that are read or copied. A value is 12 of them.
func (s *Steps) Copied(n int) { s.Spend(1 + n/12) }

// Enter enters a value, an expression or a call within another.
func (s *Steps) Enter() {
	s.Spend(1)
	if s.depth++; s.depth > maxDepth {
		s.Exceed("nested too deeply")
	}
}

// Leave leaves what Enter has entered.
func (s *Steps) Leave() { s.depth-- }

// Extend appends text.
func (s *Steps) Extend(to, from Text) Text {
	s.Copied(len(from))
	return append(to, from...)
}

// Args are the arguments of a call. The named ones follow Names.
type Args struct {
	Pos   []Value
	Names []string
	Named []Value
}

// Absent stands for an argument that is not given.
var Absent Value = &Function{Name: "absent"}

// Take removes a named argument.
func (a *Args) Take(name string) (Value, bool) {
	i := slices.Index(a.Names, name)
	if i < 0 {
		return nil, false
	}
	v := a.Named[i]
	a.Names, a.Named = slices.Delete(slices.Clone(a.Names), i, i+1), slices.Delete(slices.Clone(a.Named), i, i+1)
	return v, true
}

// Bind gives each parameter of what is called its argument, or [Absent].
func (a Args) Bind(s *Steps, what string, params ...string) []Value {
	if len(a.Pos) > len(params) {
		s.Fail("%s takes %d arguments, not %d", what, len(params), len(a.Pos))
	}
	out := make([]Value, len(params))
	for i := range out {
		out[i] = Absent
	}
	copy(out, a.Pos)
	for i, name := range a.Names {
		k := slices.Index(params, name)
		if k < 0 || out[k] != Absent {
			s.Fail("%s does not take the argument %.40q", what, name)
		}
		out[k] = a.Named[i]
	}
	return out
}

// Given returns an argument, or otherwise where it is absent.
func Given(v, otherwise Value) Value {
	if v == Absent {
		return otherwise
	}
	return v
}

// IntArg returns an argument of what is called that must be an int.
func (s *Steps) IntArg(what string, v Value, otherwise int64) int64 {
	if v == Absent || v == nil {
		return otherwise
	}
	i, ok := Integer(v)
	if !ok {
		s.Fail("%s needs an int, not %s", what, TypeName(v))
	}
	return i
}

// Plain returns text without its marks.
func (s *Steps) Plain(t Text) string {
	s.Copied(len(t))
	return t.String()
}

// TextArg returns an argument of what is called that must be a string.
func (s *Steps) TextArg(what string, v Value, otherwise string) Text {
	if v == Absent || v == nil {
		return Text(otherwise)
	}
	t, ok := v.(Text)
	if !ok {
		s.Fail("%s needs a str, not %s", what, TypeName(v))
	}
	return t
}
