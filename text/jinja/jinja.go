// Package jinja renders the subset of the Jinja template language that chat templates use, as Python's
// jinja2 does in the environment that Hugging Face gives such templates (trim_blocks, lstrip_blocks, loop
// controls, an immutable sandbox). A template is hostile until proven otherwise: it reaches nothing but the
// values that it is given, and every render ends within a number of steps and characters.
//
// Text remembers where it came from: characters of a value.Text stay marked through every operation, so
// that the caller can tell what a message wrote from what the template wrote.
package jinja

import (
	"fmt"
	"time"

	"grove/text/jinja/value"
)

// RaisedError is what a template says by raise_exception: it refuses the values.
type RaisedError struct{ Msg string }

// Error returns the template's own words.
func (e *RaisedError) Error() string { return "jinja: the template refuses this: " + e.Msg }

// The bounds of a source and of what it may nest.
const (
	maxSource = 1 << 20 // bytes
	maxDepth  = 200     // expressions and blocks within each other
)

// Template is a parsed template. It does not change and is safe for concurrent use.
type Template struct{ body []stmt }

// Parse reads a template. Its errors are [*value.Error] values; statements that are not part of the subset
// are refused by name, as filters and tests are when they are met.
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
	Steps  int       // evaluations, and characters copied by the dozen; 0: 500,000
	Output int       // characters of the result; 0: 4,194,304
	Now    time.Time // of strftime_now
}

// Render evaluates the template with variables. Its errors are [*value.Error] and [*RaisedError] values.
func (t *Template) Render(vars map[string]value.Value, o Options) (out value.Text, err error) {
	defer catch(&err)
	s := &state{Steps: &value.Steps{Left: 500_000}, output: 1 << 22}
	if o.Steps > 0 {
		s.Left = o.Steps
	}
	if o.Output > 0 {
		s.output = o.Output
	}
	s.scope = &scope{parent: &scope{vars: vars, parent: &scope{vars: map[string]value.Value{
		"strftime_now": clock(o.Now),
	}, parent: &scope{vars: globals}}}}
	s.run(t.body)
	return s.out, nil
}

// fail ends parsing with an error; exceed at a limit; catch turns it, and what ends a render, into one.
func fail(line int, format string, args ...any) { (&value.Steps{Line: line}).Fail(format, args...) }
func exceed(line int, what string)              { (&value.Steps{Line: line}).Exceed(what) }

func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *value.Error:
		*err = e
	case *RaisedError:
		*err = e
	default:
		panic(e)
	}
}
