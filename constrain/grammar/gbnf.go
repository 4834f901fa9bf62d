// gbnf.go reads grammars in llama.cpp's notation.
//
// A grammar is a list of rules, NAME ::= ALTERNATIVES. The texts are sequences of code points, and the language is exactly that
// of the context-free grammar: nothing is ignored between symbols and no lexer prefers the longest match. Left recursion, which
// llama.cpp refuses, is allowed.

package grammar

import (
	"errors"
	"fmt"

	"grove/constrain/regex"
	"grove/internal/text/token"
)

// The bounds of a grammar's text. A grammar beyond one is refused by an *Error that wraps ErrLimit.
const (
	maxBytes   = 4 << 20 // of the text
	maxDepth   = 1000    // of groups in groups
	maxSymbols = 500_000 // of all rules, repetitions written out
)

// ErrGBNFLimit is wrapped by the errors that name a bound: bytes, depth or symbols.
var ErrGBNFLimit = errors.New("limit")

// GBNFOptions are settings beside the text of a grammar. The zero value works.
type GBNFOptions struct {
	Root  string                             // the rule where texts begin; empty: root
	Store *regex.Store                       // holds the lexemes; nil: a new one
	Token func(name string) (token.ID, bool) // the token that a name such as <|im_end|> spells, with its brackets; nil: names are refused

	// Special says whether a token is no text: such a token has a spelling of its own. Other tokens are refused, since a
	// constraint sees their text and not their number. nil: every token is taken to be special.
	Special func(id token.ID) bool
}

// An GBNFError is a place of a grammar's text and what is wrong there.
type GBNFError struct {
	Line, Column int    // from 1; columns count code points
	Problem      string // what was expected and what was found
	Limit        bool   // a bound is exceeded
}

// Error returns the place and the problem.
func (e *GBNFError) Error() string {
	return fmt.Sprintf("gbnf: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// Unwrap returns ErrLimit where a bound is exceeded.
func (e *GBNFError) Unwrap() error {
	if e.Limit {
		return ErrGBNFLimit
	}
	return nil
}

// ParseGBNF reads a grammar. It checks that every rule that is named is defined once, and that some text meets the start rule; the
// error names the line and the column, or the rule. A token is spelled by the bytes "\xff[ID]". Where `!<...>`, any token but
// one, is repeated by * or +, it stands for any text and any other special token; elsewhere it is refused, since the length of
// one token of text is no property of the text.
func ParseGBNF(text []byte, o GBNFOptions) (Source, error) {
	if o.Root == "" {
		o.Root = "root"
	}
	if o.Store == nil {
		o.Store = regex.New(regex.Limits{})
	}
	p := &parser{text: text, o: o, store: o.Store, b: NewBuilder(o.Store), defined: map[string]int{}}
	if err := p.grammar(); err != nil {
		return nil, err
	}
	source, err := p.b.Source(o.Root, Options{Ignored: regex.Nothing})
	if err == nil {
		err = o.Store.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("gbnf: %w", err)
	}
	return source, nil
}
