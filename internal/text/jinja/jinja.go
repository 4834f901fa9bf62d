// Package jinja renders the part of the Jinja template language that published chat templates use, with the results of
// Python's jinja2 in the environment that Hugging Face's transformers gives such templates (trim_blocks, lstrip_blocks, loop
// controls, an immutable sandbox). What it does not support it refuses by name. README.md lists the language and its limits.
//
// Templates are hostile input: a template reaches only the variables that it is given, and each render ends within a
// number of steps, a number of characters and a depth.
//
// Text remembers its origin: each character of an [Input] stays marked through every operation and in the [Output], so the caller can tell
// the characters of a message from those of the template.
package jinja

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrLimit reports a template that needs more steps, characters or depth than it is given.
var ErrLimit = errors.New("template limit exceeded")

// Error reports a fault of a template, or of the values that it was given.
type Error struct {
	Line int    // line of the template, from 1
	Msg  string // the fault
	Err  error  // ErrLimit, or nil
}

// Error returns the line and the fault.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// Unwrap returns [ErrLimit] if a limit was exceeded.
func (e *Error) Unwrap() error { return e.Err }

// RaisedError is the message of a template that called raise_exception: the template refuses the conversation.
type RaisedError struct{ Msg string }

// Error returns the template's message.
func (e *RaisedError) Error() string { return "the template refuses this: " + e.Msg }

// Bounds of a source, of its nesting, and of the nesting of a render: expressions, loops, calls and values.
const (
	maxSource      = 1 << 20 // bytes
	maxParseDepth  = 200
	maxRenderDepth = 5000
)

// Bounds of a render where [Options] gives none.
const (
	defaultSteps  = 500_000
	defaultOutput = 1 << 22
)

// Template is a parsed template. It does not change and is safe for concurrent use.
type Template struct{ body block }

// Parse reads a template. Errors are [*Error] values. Unknown statements and operators are refused here, unknown filters, tests
// and methods when a render reaches them.
func Parse(source string) (t *Template, err error) {
	defer catch(&err)
	if len(source) > maxSource {
		exceed(1, fmt.Sprintf("a source of %d bytes, more than %d", len(source), maxSource))
	}
	p := &parser{tokens: lex(source)}
	body := p.body()
	if !p.at(tokEOF) {
		fail(p.line(), "unexpected %s", p.cur())
	}
	return &Template{body}, nil
}

// Options bounds a render and gives it the time.
type Options struct {
	Steps  int       // evaluations, and copied characters, 12 of which are one step; 0: 500,000
	Output int       // characters of the result; 0: 4,194,304
	Now    time.Time // the time that strftime_now formats

	Check func() error // is asked now and then, and ends the render by an error; nil: nobody is
}

// Render evaluates the template with variables, which it does not change. Errors are [*Error] and [*RaisedError] values, beside what was
// printed before.
func (t *Template) Render(vars map[string]Value, o Options) (out *Output, err error) {
	defer catch(&err)
	out = new(Output)
	s := &state{left: cmp.Or(o.Steps, defaultSteps), room: cmp.Or(o.Output, defaultOutput), check: o.Check, out: out}
	clock := map[string]Value{"strftime_now": strftimeNow(o.Now)}
	s.scope = &scope{parent: &scope{vars: vars, parent: &scope{vars: clock, parent: &scope{vars: globals}}}}
	t.body.run(s)
	return out, nil
}

// fail ends parsing or a render with an error, exceed with one that wraps [ErrLimit]; catch turns their panics into errors.
func fail(line int, format string, args ...any) {
	panic(&Error{Line: line, Msg: fmt.Sprintf(format, args...)})
}

func exceed(line int, what string) {
	panic(&Error{line, ErrLimit.Error() + ": " + what, ErrLimit})
}

func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		*err = e
	case *RaisedError:
		*err = e
	default:
		panic(e)
	}
}
