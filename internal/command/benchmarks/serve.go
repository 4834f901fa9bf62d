package benchmarks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"grove/bench/serving"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/reach"
	"grove/internal/command/terminal"
)

// serveCommand measures a server.
type serveCommand struct {
	flags.MaxTokens `kong:"set='tokens=0',set='end=the limit of the task, else 128; for made-up prompts a mix of 16 to 128'"`
	flags.Temperature
	flags.Seed    `set:"seed=1"`
	flags.Prompts `set:"prompts=made-up stories"`
	flags.Save
	flags.Server

	Model        string        `placeholder:"NAME" help:"Name of the model on the server; without it, the first that the server lists."`
	API          string        `name:"api" placeholder:"API" default:"completions" help:"Route to measure: completions or chat. Default: ${default}."`
	Requests     flags.Count   `placeholder:"N" default:"100" help:"Requests that are measured. Default: ${default}."`
	Concurrency  flags.Count   `placeholder:"N" help:"Requests at a time at most; 0: 8, or with --rate no limit."`
	Rate         float64       `placeholder:"R" help:"Requests that begin in a second, at random times; 0: a request begins when another ends."`
	PromptTokens flags.Count   `placeholder:"N" help:"Tokens of a made-up prompt, about; 0: a mix of 16 to 256."`
	IgnoreEOS    bool          `name:"ignore-eos" help:"Ask the server to ignore the end of texts, so that answers have their full length (ignore_eos). Not every server supports it."`
	ExtraBody    string        `name:"extra-body" placeholder:"JSON" help:"Object whose fields are added to every request, such as {\"method\": \"off\"}, with which grove does not draft."`
	Warmup       flags.Count   `placeholder:"N" default:"1" help:"Requests before the measurement. Default: ${default}."`
	Timeout      time.Duration `placeholder:"TIME" default:"10m" help:"Time that a request may take. Default: ${default}."`
}

// defaultAnswer is the limit of tokens of a task that has none.
const defaultAnswer = 128

// Valid refuses options that cannot be measured.
func (c *serveCommand) Valid() error {
	if c.Prompts.File != "" && c.PromptTokens > 0 {
		return errors.New("--prompt-tokens: the prompts of a file have their own lengths; leave out --prompts or --prompt-tokens")
	}
	if c.MaxTokens.N < 0 {
		return fmt.Errorf("--max-tokens: %d; answers that are measured need a bound", c.MaxTokens.N)
	}
	if c.PromptTokens > 1<<20 {
		return fmt.Errorf("--prompt-tokens: %d; it must be from 0 to %d", c.PromptTokens, 1<<20)
	}
	if base, err := c.Base(); err != nil || reach.Socket(base) != "" {
		return cmp.Or(err, fmt.Errorf("--url: %.80q is a Unix socket; the server that is measured must have an address such as http://127.0.0.1:8080", base))
	}
	o := c.options()
	o.Tasks = []serving.Task{{MaxTokens: max(1, int(c.MaxTokens.N))}}
	return o.Validate()
}

// options returns the options of the flags, without tasks.
func (c *serveCommand) options() serving.Options {
	concurrency := int(c.Concurrency)
	if concurrency == 0 && c.Rate == 0 {
		concurrency = 8
	}
	base, _ := c.Base() // Validate refuses what is no URL
	return serving.Options{
		URL: base, APIKey: c.APIKey, Model: c.Model, API: serving.API(c.API), Requests: int(c.Requests), Concurrency: concurrency,
		Rate: c.Rate, Seed: c.Seed.Or(1), Temperature: float64(c.Temperature.Or(0)), IgnoreEOS: c.IgnoreEOS, ExtraBody: c.ExtraBody, Timeout: c.Timeout, Warmup: int(c.Warmup),
	}
}

// Run implements the command.
func (c *serveCommand) Run() error {
	o := c.options()
	var err error
	if o.Tasks, err = c.tasks(); err != nil {
		return err
	}
	if err := terminal.CheckOptional(c.Save.File, c.Prompts.File); err != nil {
		return err
	}
	ctx, stop := terminal.UntilSignal()
	defer stop()
	s := terminal.Steps("requests")
	r, err := serving.Run(ctx, o, s.Show)
	s.End()
	if r == nil {
		return exit.Cause(ctx, err)
	}
	written := r.WriteTable(terminal.Stdout)
	kept := c.keep(r) // what was measured is kept although the table has no reader
	return errors.Join(written, kept, exit.Cause(ctx, err), unanswered(ctx, r))
}

// tasks returns the tasks of the file, or made-up ones.
func (c *serveCommand) tasks() ([]serving.Task, error) {
	if c.Prompts.File == "" {
		return serving.Mix(c.Seed.Or(1), int(c.Requests+c.Warmup), int(c.PromptTokens), int(c.MaxTokens.N)), nil
	}
	prompts, err := c.Read()
	if err != nil {
		return nil, err
	}
	tasks := make([]serving.Task, len(prompts))
	for i, p := range prompts {
		tasks[i] = serving.Task{Prompt: p.Prompt, Prediction: p.Prediction, MaxTokens: defaultAnswer}
		switch {
		case c.MaxTokens.N > 0:
			tasks[i].MaxTokens = int(c.MaxTokens.N)
		case p.MaxTokens > 0:
			tasks[i].MaxTokens = p.MaxTokens
		}
	}
	return tasks, nil
}

// keep writes the figures to the file of --save.
func (c *serveCommand) keep(r *serving.Report) error {
	if c.Save.File == "" {
		return nil
	}
	return terminal.WriteFile(c.Save.File, r.WriteJSON)
}

// unanswered returns an error if the run ended by itself and no request was answered.
func unanswered(ctx context.Context, r *serving.Report) error {
	if r.Completed > 0 || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("grove: none of %d requests was answered", r.Requests)
}
