package main

import (
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
		return json.NewEncoder(terminal.Stdout).Encode(cost)
	}
	if err := grove.WriteCost(terminal.Stdout, cost); err != nil {
		return err
	}
	_, err = fmt.Fprintln(terminal.Stdout, "\nsaved in", path)
	return err
}
