package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/fileio"
)

// Constraint says which texts are legal.
type Constraint struct {
	Schema  string   `name:"schema" xor:"constraint" placeholder:"FILE|JSON" help:"JSON Schema in FILE, or itself: the text is JSON that it accepts."`
	Grammar string   `name:"grammar" xor:"constraint" placeholder:"FILE|NAME|RULES" help:"Grammar of the text: a file in the notation of llama.cpp (GBNF) or Lark, one inside this program (json, go, python, sql), or rules such as root ::= \"a\"."`
	Regex   *string  `name:"regex" xor:"constraint" placeholder:"REGEX" help:"Regular expression that the whole text matches."`
	Choice  []string `name:"choice" xor:"constraint" placeholder:"A,B" help:"Texts of which the text is one, with commas between (\\, is a comma of a text); may be given several times."`
	MemberOrder
}

// MemberOrder is --order. The variable order is its default.
type MemberOrder struct {
	Order string `name:"order" enum:"declared,free" placeholder:"declared|free" default:"${order=declared}" help:"Order of the members of objects that a schema describes: as declared, or any. Default: ${default}."`
}

// maxConstraint is the largest file of a schema or a grammar.
const maxConstraint = 16 << 20

// Of returns the constraint, nil where there is none. Errors of files have the exit code of such.
func (c *Constraint) Of() (*grove.Constraint, error) {
	if c.Order == "free" && c.Schema == "" {
		return nil, exit.With(exit.CodeUsage, errors.New("--order free is of --schema, and there is none"))
	}
	switch {
	case c.Schema != "":
		text := strings.TrimSpace(c.Schema)
		b, err := c.read(c.Schema, strings.HasPrefix(text, "{") || text == "true" || text == "false")
		return &grove.Constraint{Schema: b, FreeOrder: c.Order == "free"}, err
	case c.Grammar != "":
		b, err := c.read(c.Grammar, strings.Contains(c.Grammar, "\n") || strings.Contains(c.Grammar, "::=") || slices.Contains(grove.Grammars(), c.Grammar))
		return &grove.Constraint{Grammar: string(b)}, err
	case c.Regex != nil:
		return &grove.Constraint{Regex: *c.Regex}, nil
	case len(c.Choice) > 0:
		return &grove.Constraint{Choices: c.Choice}, nil
	}
	return nil, nil
}

// Refused names the flag in an error of [Constraint.Of]'s constraint, in place of the library's field. Other errors stay as they are.
func (c *Constraint) Refused(err error) error {
	spec := new(grove.SpecError)
	if !errors.As(err, &spec) {
		return err
	}
	name := "--choice"
	switch {
	case c.Schema != "":
		name = "--schema"
	case c.Grammar != "":
		name = "--grammar"
	case c.Regex != nil:
		name = "--regex"
	}
	return fmt.Errorf("%s: %w", name, spec)
}

// Given reports whether there is a constraint.
func (c *Constraint) Given() bool {
	return c.Schema != "" || c.Grammar != "" || c.Regex != nil || len(c.Choice) > 0
}

// read returns a text that is given itself, or in a file.
func (c *Constraint) read(text string, given bool) ([]byte, error) {
	if given {
		return []byte(text), nil
	}
	b, err := fileio.ReadText(text, maxConstraint)
	if err == nil && len(b) == 0 {
		err = fmt.Errorf("%s is empty", text)
	}
	return b, exit.File(err)
}
