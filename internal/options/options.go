// Package options reads the settings that a user writes as name=value, with a sign between them, such as "p=0.9,radius=4".
package options

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Error reports options that are invalid, by themselves or for the model that was opened.
type Error struct{ Err error }

// Error returns the problem, as one line.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Err }

// Options holds values by name. Each is taken once, as what it stands for; the first error stays. Spaces around names and values do not count. It is for one goroutine.
type Options struct {
	given map[string]string
	err   error
}

// Parse reads a text of settings with a sign between them. Errors, which [Options.Err] returns: a setting without a value, or one that is given twice.
func Parse(text, between string) *Options {
	o := &Options{given: map[string]string{}}
	for part := range strings.SplitSeq(text, between) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, valued := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, twice := o.given[name]; !valued || name == "" || twice {
			o.Fail("option %.40q is no name=value that is given once", part)
			continue
		}
		o.given[name] = strings.TrimSpace(value)
	}
	return o
}

// Has reports whether a value is given that was not taken.
func (o *Options) Has(name string) bool {
	_, ok := o.given[name]
	return ok
}

// take takes a value.
func (o *Options) take(name string) (string, bool) {
	text, ok := o.given[name]
	delete(o.given, name)
	return text, ok
}

// Int takes a whole number from least to most, usual where it is not given.
func (o *Options) Int(name string, usual, least, most int) int {
	text, ok := o.take(name)
	if !ok {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		o.Fail("%s is %.40q; it must be a whole number from %d to %d", name, text, least, most)
		return usual
	}
	return n
}

// Float takes a number from least to most, usual where it is not given.
func (o *Options) Float(name string, usual, least, most float64) float64 {
	text, ok := o.take(name)
	if !ok {
		return usual
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= least && x <= most) {
		o.Fail("%s is %.40q; it must be a number from %g to %g", name, text, least, most)
		return usual
	}
	return x
}

// Word takes one of some words, the first where none is given.
func (o *Options) Word(name string, words ...string) string {
	text, ok := o.take(name)
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, text) {
		o.Fail("%s is %.40q; it must be one of %s", name, text, strings.Join(words, ", "))
		return words[0]
	}
	return text
}

// Text takes a text, usual where none is given. One in double quotes is read as Go reads it, so that it may begin or end with a blank.
func (o *Options) Text(name, usual string) string {
	text, ok := o.take(name)
	if !ok {
		return usual
	}
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	plain, err := strconv.Unquote(text)
	if err != nil {
		o.Fail("%s is %.40s; a text that begins with a double quote must end with one, and be as Go writes it", name, text)
	}
	return plain
}

// Fail makes an error that is the first one that of the options.
func (o *Options) Fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf(format, args...)
	}
}

// Err returns the first error, or one that names a value that was not taken.
func (o *Options) Err() error {
	if left := slices.Sorted(maps.Keys(o.given)); o.err == nil && len(left) > 0 {
		return fmt.Errorf("option %.40q is not known", left[0])
	}
	return o.err
}
