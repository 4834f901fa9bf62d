package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
)

// verifyCommand proves methods on a model.
type verifyCommand struct {
	flags.Named
	flags.Context
	flags.Threads
	flags.Cache
	flags.Repack
	flags.Draft
	flags.Adapters
	flags.Methods   `set:"methods=all"`
	flags.MaxTokens `set:"tokens=64"`
	flags.JSON
	flags.Prompts `set:"prompts=three short prompts"`
	Draws         flags.Count `default:"400" var:"GROVE_DRAWS" placeholder:"N" help:"Answers that the test of a distribution draws. Default: ${default}."`

	verdict verdict
}

// errProof reports a method that breaks the promise of its grade.
var errProof = errors.New("a method broke the promise of its grade")

// shortPrompts are the prompts without --prompts. They repeat themselves, so that methods have something to draft.
var shortPrompts = []bench.Prompt{
	{ID: "code", Prompt: "func (s *Server) Close() error {\n\tif s == nil {\n\t\treturn nil\n\t}\n", Prediction: "\treturn s.conn.Close()\n}\n"},
	{ID: "list", Prompt: "1, 2, 3, 4, 1, 2, 3, 4, 1, 2,"},
	{ID: "tale", Prompt: "Once upon a time, there was a little dog. The little dog"},
}

// Valid refuses plain decoding as a method.
func (c *verifyCommand) Valid() error {
	if !c.All() && slices.Contains(c.List(), grove.MethodOff) {
		return errors.New("--methods: off is plain decoding, with which methods are compared")
	}
	return nil
}

// Run implements the command.
func (c *verifyCommand) Run() error {
	prompts := shortPrompts
	if c.Prompts.File != "" {
		var err error
		if prompts, err = c.Read(); err != nil {
			return err
		}
	}
	ctx, stop := terminal.UntilSignal()
	defer stop()
	adapters, err := c.Adapters.Files(false)
	if err != nil {
		return err
	}
	ok, err := bench.Prove(ctx, func(o grove.Options) (*grove.Model, error) {
		c.Beside(&o)
		o.Context, o.Threads, o.CacheType, o.NoRepack = int(c.Context.N), int(c.Threads.N), string(c.Cache.Type), c.Repack.Off
		o.Adapters = adapters
		return c.Open(o)
	}, c.options(prompts), c.report)
	if err != nil {
		return exit.Cause(ctx, err)
	}
	var out io.Writer = terminal.Stdout
	if c.JSON.On {
		out = os.Stderr
	}
	if err := c.verdict.write(out); err != nil {
		return err
	}
	if !ok {
		return errProof
	}
	return nil
}

// verdict counts the methods and tests that were reported.
type verdict struct {
	tests           int
	methods, broken []string
}

func (v *verdict) add(k bench.Check) {
	v.tests++
	if !slices.Contains(v.methods, k.Method) {
		v.methods = append(v.methods, k.Method)
	}
	if !k.OK && !slices.Contains(v.broken, k.Method) {
		v.broken = append(v.broken, k.Method)
	}
}

// write writes the last line of the report.
func (v *verdict) write(w io.Writer) (err error) {
	switch n := len(v.methods); {
	case n == 0:
		_, err = fmt.Fprintln(w, "no method was tested: the needs of none are met")
	case len(v.broken) > 0:
		_, err = fmt.Fprintf(w, "%d of %d methods break the promise of their grade: %s\n", len(v.broken), n, strings.Join(v.broken, ", "))
	case n == 1:
		_, err = fmt.Fprintf(w, "%s keeps the promise of its grade, in %d tests\n", v.methods[0], v.tests)
	default:
		_, err = fmt.Fprintf(w, "all %d methods keep the promise of their grade, in %d tests\n", n, v.tests)
	}
	return err
}

// options returns the tests. Of all methods, those whose needs are not met are left out.
func (c *verifyCommand) options(prompts []bench.Prompt) bench.ProofOptions {
	return bench.ProofOptions{Methods: c.List(), LeftOut: c.LeftOut(), Prompts: prompts, Tokens: c.Limit(), Draws: int(c.Draws)}
}

// report prints the result of a test.
func (c *verifyCommand) report(k bench.Check) {
	c.verdict.add(k)
	if c.JSON.On {
		_ = json.NewEncoder(terminal.Stdout).Encode(k)
		return
	}
	verdict := "ok"
	if !k.OK {
		verdict = "FAILED"
	}
	fmt.Fprintf(terminal.Stdout, "%-12s %-9s %-6s %s: %s\n", k.Method, k.Grade, verdict, k.Test, harmless.Line(k.Detail))
}
