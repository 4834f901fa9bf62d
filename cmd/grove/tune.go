package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"grove"
	"grove/cmd/grove/internal/exit"
	"grove/cmd/grove/internal/flags"
	"grove/cmd/grove/internal/terminal"
)

// tuneCommand measures the cost of steps on this machine.
type tuneCommand struct {
	flags.Named

	flags.Threads
	flags.Cache
	flags.JSON

	Prime flags.Count `placeholder:"N" help:"Also compute the likeliest successors of the N tokens with the lowest ids, with which the methods recycle and goose then begin."`
}

// Run implements the command.
func (c *tuneCommand) Run() (err error) {
	m, err := c.Open(grove.Options{Threads: int(c.Threads.N), CacheType: string(c.Cache.Type), Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := terminal.UntilSignal()
	defer stop()
	cost, path, err := m.Tune(ctx)
	if err != nil {
		return exit.Cause(ctx, err)
	}
	if c.JSON.On {
		err = json.NewEncoder(terminal.Stdout).Encode(cost)
	} else if err = grove.WriteCost(terminal.Stdout, cost); err == nil {
		_, err = fmt.Fprintln(terminal.Stdout, "\nsaved in", path)
	}
	if err != nil || c.Prime == 0 {
		return err
	}
	return exit.Cause(ctx, c.prime(ctx, m))
}

// prime computes what methods begin with.
func (c *tuneCommand) prime(ctx context.Context, m *grove.Model) error {
	bar := terminal.Tokens("priming")
	p, err := m.Prime(ctx, int(c.Prime), bar.Show)
	bar.End()
	if err != nil {
		return err
	}
	if c.JSON.On {
		return json.NewEncoder(terminal.Stdout).Encode(p)
	}
	_, err = fmt.Fprintf(terminal.Stdout, "successors of %d tokens by %d of the model's layers, which have %.1f %% of the tokens that it draws: saved in %s\n", p.Tokens, p.Layers, 100*p.Hits, p.Path)
	return err
}
