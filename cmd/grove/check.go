package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
)

// checkCommand says whether a text is legal under a constraint. It needs no tensors.
type checkCommand struct {
	flags.Named
	flags.Constraint
	flags.JSON
	flags.TextFile
}

// checkVerdict is what --json writes.
type checkVerdict struct {
	Legal    bool   `json:"legal"`
	Offset   *int   `json:"offset,omitempty"`
	Line     int    `json:"line,omitempty"`
	Found    string `json:"found,omitempty"`
	Expected string `json:"expected,omitempty"`
}

// Run implements the command.
func (c *checkCommand) Run() error {
	t, f, err := c.Model.Tokenizer()
	if err != nil {
		return err
	}
	defer f.Close()
	constraint, err := c.Of()
	if err != nil {
		return err
	}
	if constraint == nil {
		return exit.With(exit.CodeUsage, errors.New("there is nothing to check by: give --schema, --grammar, --regex or --choice"))
	}
	text, err := c.Read("the text")
	if err != nil {
		return err
	}
	err = grove.CheckText(t, *constraint, text)
	if line, ends := strings.CutSuffix(text, "\n"); err != nil && ends { // which most files end with
		err = grove.CheckText(t, *constraint, line)
	}
	return c.report(err)
}

// report writes the verdict, and returns the error that a text which is not legal gives.
func (c *checkCommand) report(err error) error {
	var at *grove.TextError
	if err != nil && !errors.As(err, &at) {
		return c.Refused(err)
	}
	if !c.JSON.On {
		if err == nil {
			_, err = fmt.Fprintln(terminal.Stdout, "legal")
		}
		return err
	}
	v := checkVerdict{Legal: at == nil}
	if at != nil {
		v = checkVerdict{false, &at.Offset, at.Line, at.Found, at.Expected}
	}
	e := json.NewEncoder(harmless.JSON(terminal.Stdout))
	e.SetEscapeHTML(false)
	return errors.Join(e.Encode(v), err)
}
