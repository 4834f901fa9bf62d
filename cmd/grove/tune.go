package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
)

// tuneCommand measures the cost of steps on this machine.
type tuneCommand struct {
	flags.Named

	flags.Threads
	flags.Cache
	flags.JSON

	Prime flags.Count `placeholder:"N" help:"Also compute the likeliest successors of the N tokens with the lowest ids, with which the methods recycle and goose then begin."`

	SearchLayers flags.Count `placeholder:"N" help:"Also search, in N trials of 32 tokens, the layers that the method draft-verify then passes over."`
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
	if err == nil && c.Prime > 0 {
		err = c.prime(ctx, m)
	}
	if err == nil && c.SearchLayers > 0 {
		err = c.searchLayers(ctx, m)
	}
	return exit.Cause(ctx, err)
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

// searchLayers searches the layers that draft-verify passes over.
func (c *tuneCommand) searchLayers(ctx context.Context, m *grove.Model) error {
	bar := terminal.Tokens("searching layers")
	s, err := m.SearchLayers(ctx, int(c.SearchLayers), bar.Show)
	bar.End()
	if err != nil {
		return err
	}
	if c.JSON.On {
		return json.NewEncoder(terminal.Stdout).Encode(s)
	}
	_, err = fmt.Fprintf(terminal.Stdout, "draft-verify:skip=%s passes over these layers: %.1f %% of the drafts are accepted; chains of %d are %.2f times as fast as plain decoding, as the cost of steps predicts it: saved in %s\n",
		s.Layers, 100*s.Share, s.Depth, s.Speed, s.Path)
	return err
}
