package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"grove"
	"grove/bench"
)

// benchLoad measures how a model loads.
type benchLoad struct {
	modelFlag

	Repeat   count `short:"r" default:"5" placeholder:"N" help:"Loads; figures are their medians. Default: ${default}."`
	Threads  count `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	NoRepack bool  `var:"GROVE_NO_REPACK" help:"Read weights where the file has them."`
	JSON     bool  `name:"json" var:"GROVE_JSON" help:"One JSON object instead of text."`
}

// Validate refuses to measure nothing.
func (c *benchLoad) Validate() error {
	if c.Repeat < 1 {
		return errors.New("--repeat must be at least 1")
	}
	return nil
}

// Run implements the command.
func (c *benchLoad) Run() (err error) {
	f, err := c.file()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	open := func() (*grove.Model, error) {
		return c.open(grove.Options{Threads: int(c.Threads), Parallel: 1, NoRepack: c.NoRepack})
	}
	s := steps{what: "load"}
	r, err := bench.Load(open, f, int(c.Repeat), s.show)
	s.end()
	if err != nil {
		return err
	}
	if c.JSON {
		return r.WriteJSON(stdout)
	}
	return r.WriteText(stdout)
}

// benchSharing measures grove and other work beside each other.
type benchSharing struct {
	modelFlag

	Tokens  count `short:"n" default:"16" placeholder:"N" help:"Tokens decoded in a turn. Default: ${default}."`
	Repeat  count `short:"r" default:"5" placeholder:"N" help:"Turns; figures are their medians. Default: ${default}."`
	Threads count `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	JSON    bool  `name:"json" var:"GROVE_JSON" help:"One JSON object instead of text."`
}

// Validate refuses to measure nothing.
func (c *benchSharing) Validate() error {
	if c.Tokens < 1 || c.Repeat < 1 {
		return errors.New("--tokens and --repeat must be at least 1")
	}
	return nil
}

// Run implements the command.
func (c *benchSharing) Run() (err error) {
	m, err := c.openBench(bench.Options{Threads: int(c.Threads), Rows: 1, Context: 1})
	if err != nil {
		return fileError{err}
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := untilSignal()
	defer stop()
	s := steps{what: "turn"}
	r, err := m.Sharing(ctx, bench.SharingOptions{Tokens: int(c.Tokens), Repeat: int(c.Repeat), Busy: startSpin}, s.show)
	s.end()
	if err != nil {
		return cause(ctx, err)
	}
	if c.JSON {
		return r.WriteJSON(stdout)
	}
	return r.WriteText(stdout, m.Title())
}

// startSpin runs `bench spin` in a process of its own, which ends with this one or when it is stopped.
func startSpin() (stop func() error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "bench", "spin")
	life, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(life.Close(), cmd.Wait()) }, nil
}

// benchSpin is the busy process that [benchSharing] starts.
type benchSpin struct{}

// Run implements the command.
func (benchSpin) Run() error {
	var end atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends it
		end.Store(true)
	}()
	for !end.Load() {
	}
	return nil
}
