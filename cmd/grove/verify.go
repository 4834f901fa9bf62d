package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"grove"
	"grove/bench"
	"grove/cmd/grove/internal/exit"
	"grove/cmd/grove/internal/flags"
	"grove/cmd/grove/internal/terminal"
)

// verifyCommand proves methods on a model.
type verifyCommand struct {
	flags.Named
	flags.Draft
	flags.Methods   `set:"methods=all"`
	flags.MaxTokens `set:"tokens=64"`
	flags.JSON
	flags.Prompts `set:"prompts=three short prompts"`
	Draws         flags.Count `default:"400" placeholder:"N" help:"Answers that the test of a distribution draws. Default: ${default}."`
}

// errProof reports a method that breaks the promise of its grade.
var errProof = errors.New("a method broke the promise of its grade")

// shortPrompts are the prompts without --prompts. They repeat themselves, so that methods have something to draft.
var shortPrompts = []bench.Prompt{
	{ID: "code", Prompt: "func (s *Server) Close() error {\n\tif s == nil {\n\t\treturn nil\n\t}\n", Prediction: "\treturn s.conn.Close()\n}\n"},
	{ID: "list", Prompt: "1, 2, 3, 4, 1, 2, 3, 4, 1, 2,"},
	{ID: "tale", Prompt: "Once upon a time, there was a little dog. The little dog"},
}

// Validate refuses plain decoding as a method.
func (c *verifyCommand) Validate() error {
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
	ok, err := bench.Prove(ctx, func(o grove.Options) (*grove.Model, error) {
		o.Draft, o.DraftVocab = c.Draft.Path, int(c.Draft.Vocab)
		return c.Open(o)
	}, c.options(prompts), c.report)
	if err != nil {
		return exit.Cause(ctx, err)
	}
	if !ok {
		return errProof
	}
	return nil
}

// options returns the tests. Of all methods, those whose needs are not met are left out.
func (c *verifyCommand) options(prompts []bench.Prompt) bench.ProofOptions {
	return bench.ProofOptions{Methods: c.List(), LeftOut: c.LeftOut(), Prompts: prompts, Tokens: int(c.MaxTokens.N), Draws: int(c.Draws)}
}

// report prints the result of a test.
func (c *verifyCommand) report(k bench.Check) {
	if c.JSON.On {
		_ = json.NewEncoder(terminal.Stdout).Encode(k)
		return
	}
	verdict := "ok"
	if !k.OK {
		verdict = "FAILED"
	}
	fmt.Fprintf(terminal.Stdout, "%-12s %-9s %-6s %s: %s\n", k.Method, k.Grade, verdict, k.Test, k.Detail)
}
