// Package lark reads grammars in Lark's notation, and holds the grammars that come with grove.
//
// A grammar has rules, whose names are in lower case, and terminals, whose names are in upper case. A terminal is a set of texts.
// The lexer takes the longest text that a terminal which may stand there matches, and the rules say which terminals may follow
// one another. What %ignore names may stand between two terminals, before the first and after the last.
//
// # Which terminal a text is
//
// A text that two terminals match is each of them where the rules allow it, with two exceptions, as in Lark. A string beats a
// regular expression: in a grammar with "if" and NAME: /[a-z]+/, the text if is no NAME anywhere. And a terminal of a higher
// priority beats one of a lower; where it would also cut short a longer text of the other one, which Lark does, the grammar is
// refused. Under %llguidance, or with Options.Dynamic, there are no exceptions, as in llguidance.
//
// # What is read
//
// Alternatives, groups, [optional parts], * + ?, ~n, ~n..m, {n,m}, strings and strings i, ranges "a".."z", /expressions/ with
// flags, templates, aliases and the marks ? and ! of rules (which name trees and change no language), priorities, %ignore, %import
// of module common, & and ~ between the parts of terminals, special tokens <|name|> and <[1,3-5]>, and lazy and suffix="..." of
// rules that are one terminal. %indent makes lines and their indentation part of a grammar, as in Python: it defines the terminals
// NEWLINE, INDENT, LINES and BLANK, of which docs/constraints.md tells. %json, %declare, %override, %extend, %lark and %regex are refused by name, and so are repetitions
// that prefer the shortest match, since a terminal is a set of texts.
package lark

import (
	"errors"
	"fmt"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/internal/text/token"
)

// The bounds of a grammar's text. A grammar beyond one is refused by an *Error that wraps ErrLimit.
const (
	maxBytes   = 4 << 20 // of the text
	maxDepth   = 500     // of groups in groups, and of terminals and templates that name others
	maxSymbols = 500_000 // of all rules, repetitions written out
)

// ErrLimit is wrapped by the errors that name a bound: bytes, depth or symbols.
var ErrLimit = errors.New("limit")

// Options are settings beside the text of a grammar. The zero value works.
type Options struct {
	Start   string                             // the rule where texts begin; empty: start
	Store   *regex.Store                       // holds the terminals; nil: a new one
	Token   func(name string) (token.ID, bool) // the token that a name such as <|im_end|> spells, with its brackets; nil: names are refused
	Dynamic bool                               // a string does not beat a regular expression, and priorities mean nothing

	// Special says whether a token is no text: such a token has a spelling of its own. Other tokens are refused, since a
	// constraint sees their text and not their number. nil: every token is taken to be special.
	Special func(id token.ID) bool
}

// An Error is a place of a grammar's text and what is wrong there.
type Error struct {
	Line, Column int    // from 1; columns count code points
	Problem      string // what was expected and what was found
	Limit        bool   // a bound is exceeded
	err          error
}

// Error returns the place and the problem.
func (e *Error) Error() string {
	return fmt.Sprintf("lark: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// Unwrap returns ErrLimit where a bound is exceeded, or else the cause.
func (e *Error) Unwrap() error {
	if e.Limit {
		return ErrLimit
	}
	return e.err
}

// Parse reads a grammar. It checks that every name is defined once, that no terminal names itself, and that some text meets the
// start rule; the error names the line and the column, or the rule. A token is spelled by the bytes "\xff[ID]". Where <[*]> or
// <[^...]>, any token but some, is repeated by * or +, it stands for any text and any other special token; elsewhere it is
// refused, since the length of one token of text is no property of the text.
func Parse(text []byte, o Options) (grammar.Source, error) {
	if o.Start == "" {
		o.Start = "start"
	}
	if o.Store == nil {
		o.Store = regex.New(regex.Limits{})
	}
	p := &parser{text: text, o: o, items: map[string]*definition{}}
	if err := p.grammar(); err != nil {
		return nil, err
	}
	c := &compiler{
		parser: p, store: o.Store, b: grammar.NewBuilder(o.Store),
		terminals: map[string]regex.ID{}, open: map[string]bool{}, used: map[terminalKey]*terminal{}, rules: map[string]*rule{},
		blanks: o.Store.Literal("\xfe" + blank),
	}
	source, err := c.grammar()
	if err == nil {
		err = o.Store.Err()
	}
	if place := new(Error); errors.As(err, &place) {
		return nil, place
	} else if err != nil {
		return nil, fmt.Errorf("lark: %w", err)
	}
	return source, nil
}
