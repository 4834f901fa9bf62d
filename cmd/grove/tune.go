package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"grove"
)

// tuneCommand measures what steps cost on this machine.
type tuneCommand struct {
	modelFlag

	Threads   count     `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	CacheType cacheType `placeholder:"TYPE" default:"f16" var:"GROVE_CACHE_TYPE" help:"Type of cached keys and values: f32, f16 or q8_0."`
	JSON      bool      `name:"json" var:"GROVE_JSON" help:"One JSON object instead of a table."`
}

// Run implements the command.
func (c *tuneCommand) Run() (err error) {
	m, err := c.open(grove.Options{Threads: int(c.Threads), CacheType: string(c.CacheType), Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := untilSignal()
	defer stop()
	cost, path, err := m.Tune(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	if c.JSON {
		return json.NewEncoder(stdout).Encode(cost)
	}
	if err := grove.WriteCost(stdout, cost); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "\nkept in", path)
	return err
}
