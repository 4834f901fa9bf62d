package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"grove"
	"grove/bench"
)

// verifyCommand proves methods on a model.
type verifyCommand struct {
	modelFlag

	Draft      string `placeholder:"FILE" var:"GROVE_DRAFT" help:"GGUF file of a smaller model, for the methods that need one."`
	DraftVocab count  `placeholder:"N" var:"GROVE_DRAFT_VOCAB" help:"Tokens that the draft model considers, the most frequent ones; 0: all. The answer is the same."`
	Methods    string `placeholder:"NAMES" default:"all" help:"Names with commas between; all: every method whose needs are met. Default: ${default}."`
	Prompts    string `placeholder:"FILE" help:"Prompts, as a workload of bench methods; without it, three short ones."`
	Tokens     count  `short:"n" default:"64" placeholder:"N" help:"Tokens of an answer. Default: ${default}."`
	Draws      count  `default:"400" placeholder:"N" help:"Answers of the test of a distribution. Default: ${default}."`
	JSON       bool   `name:"json" var:"GROVE_JSON" help:"One JSON object a line instead of a table."`
}

// errProof says that a method is not what its grade promises.
var errProof = errors.New("a method did not give what its grade promises")

// shortPrompts are used where none are given: they repeat themselves, so that there is something to draft.
var shortPrompts = []bench.Prompt{
	{ID: "code", Prompt: "func (s *Server) Close() error {\n\tif s == nil {\n\t\treturn nil\n\t}\n", Prediction: "\treturn s.conn.Close()\n}\n"},
	{ID: "list", Prompt: "1, 2, 3, 4, 1, 2, 3, 4, 1, 2,"},
	{ID: "tale", Prompt: "Once upon a time, there was a little dog. The little dog"},
}

// Validate refuses names of no method, and the one that is plain decoding.
func (c *verifyCommand) Validate() error {
	if c.Methods == "all" {
		return nil
	}
	for name := range strings.SplitSeq(c.Methods, ",") {
		if err := grove.CheckMethods(name, ""); err != nil {
			return fmt.Errorf("--methods: %w", err)
		}
		if name == grove.MethodOff {
			return errors.New("--methods: off is what methods are compared with")
		}
	}
	return nil
}

// Run implements the command.
func (c *verifyCommand) Run() error {
	prompts := shortPrompts
	if c.Prompts != "" {
		var err error
		if prompts, err = readWorkload(c.Prompts); err != nil {
			return err
		}
	}
	ctx, stop := untilSignal()
	defer stop()
	ok, err := bench.Prove(ctx, func(o grove.Options) (*grove.Model, error) {
		o.Draft, o.DraftVocab = c.Draft, int(c.DraftVocab)
		return c.open(o)
	}, c.options(prompts), c.report)
	if err != nil {
		return cause(ctx, err)
	}
	if !ok {
		return errProof
	}
	return nil
}

// options says what to test; of all methods, those whose needs are not met are left out.
func (c *verifyCommand) options(prompts []bench.Prompt) bench.ProofOptions {
	o := bench.ProofOptions{Methods: c.names(), Prompts: prompts, Tokens: int(c.Tokens), Draws: int(c.Draws)}
	if c.Methods == "all" {
		o.LeftOut = func(method string, err error) { fmt.Fprintf(os.Stderr, "grove: %s is left out: %v\n", method, err) }
	}
	return o
}

// names returns the methods to test: those named, or all that can run.
func (c *verifyCommand) names() (names []string) {
	if c.Methods != "all" {
		return strings.Split(c.Methods, ",")
	}
	for _, m := range grove.Methods() {
		if m.Kind != grove.KindModel || c.Draft != "" {
			names = append(names, m.Name)
		} else {
			fmt.Fprintf(os.Stderr, "grove: %s is left out: it needs %s (--draft)\n", m.Name, m.Needs)
		}
	}
	return append(names, grove.MethodAuto)
}

// report prints a test as it is done.
func (c *verifyCommand) report(k bench.Check) {
	if c.JSON {
		_ = json.NewEncoder(stdout).Encode(k)
		return
	}
	verdict := "ok"
	if !k.OK {
		verdict = "FAILED"
	}
	fmt.Fprintf(stdout, "%-12s %-9s %-6s %s: %s\n", k.Method, k.Grade, verdict, k.Test, k.Detail)
}
