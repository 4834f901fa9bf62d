package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
	"grove/lab/distill"
)

// hmmCommand distils a hidden Markov model.
type hmmCommand struct {
	flags.Named
	flags.Threads
	flags.MaxTokens `set:"tokens=64"`
	flags.Seed      `set:"seed=0"`
	flags.Prompts   `set:"prompts=texts begin as the model begins them"`
	flags.Out

	Samples    flags.Count `default:"2000" placeholder:"N" help:"Texts that are drawn. Default: ${default}."`
	States     flags.Count `default:"64" placeholder:"N" help:"Hidden states. Default: ${default}."`
	Iterations flags.Count `default:"20" placeholder:"N" help:"Passes over the texts. Default: ${default}."`
}

// parallelTexts is how many texts are drawn at a time.
const parallelTexts = 8

// Run implements the command.
func (c *hmmCommand) Run() (err error) {
	var prompts []string
	if c.Prompts.File != "" {
		tasks, err := c.Read()
		if err != nil {
			return err
		}
		for _, t := range tasks {
			prompts = append(prompts, t.Prompt)
		}
	}
	if err := c.Out.Check(c.Path); err != nil {
		return err
	}
	m, err := c.Open(grove.Options{Threads: int(c.Threads.N), Parallel: parallelTexts})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := terminal.UntilSignal()
	defer stop()
	bar := terminal.Tokens("drawing texts")
	defer bar.End()
	d := distill.Options{
		Prompts: prompts, Samples: int(c.Samples), MaxTokens: int(c.MaxTokens.N), States: int(c.States), Iterations: int(c.Iterations),
		Seed: c.Seed.Or(0),
	}
	var first, last float64
	d.Progress = func(texts, passes int, logprob float64) {
		switch {
		case passes == 0:
			bar.Show(texts, d.Samples)
		case passes == 1:
			first = logprob
		}
		last = logprob
	}
	err = c.Out.Write(func(w io.Writer) error { return distill.Write(ctx, m, d, w) })
	if err != nil {
		return exit.Cause(ctx, err)
	}
	fmt.Fprintf(os.Stderr, "grove: %d texts, %.3f nats a token before the first pass, %.3f before the last\n", d.Samples, -first, -last)
	return nil
}
