package benchmarks

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"grove"
	"grove/bench"
	"grove/internal/command/flags"
)

// loadCommand measures how a model loads.
type loadCommand struct {
	flags.Named
	flags.Repeat
	flags.Threads
	flags.Repack
	flags.JSON
}

// Valid refuses to measure nothing.
func (c *loadCommand) Valid() error {
	if c.Repeat.N < 1 {
		return errors.New("--repeat: 0; it must be 1 or more")
	}
	return nil
}

// Run implements the command.
func (c *loadCommand) Run() (err error) {
	f, err := c.File()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	open := func() (*grove.Model, error) {
		return c.Open(grove.Options{Threads: int(c.Threads.N), Parallel: 1, NoRepack: c.Repack.Off})
	}
	return c.Report("load", func(_ context.Context, show func(done, all int)) (flags.Report, error) {
		return bench.Load(open, f, int(c.Repeat.N), show)
	})
}

// sharingCommand measures how much grove and another process slow each other down.
type sharingCommand struct {
	flags.Named
	flags.MaxTokens `kong:"set='tokens=16',set='end=refused'"`
	flags.Repeat
	flags.Threads
	flags.JSON
}

// Valid refuses to measure nothing.
func (c *sharingCommand) Valid() error {
	if c.MaxTokens.N < 1 || c.Repeat.N < 1 {
		return errors.New("--max-tokens and --repeat must be 1 or more")
	}
	return nil
}

// Run implements the command.
func (c *sharingCommand) Run() (err error) {
	m, err := c.OpenBench(bench.Options{Threads: int(c.Threads.N), Rows: 1, Context: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return c.Report("turn", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return m.Sharing(ctx, bench.SharingOptions{Tokens: int(c.MaxTokens.N), Repeat: int(c.Repeat.N), Busy: startSpin}, show)
	})
}

// startSpin runs `bench spin` in a process of its own, which ends with this process or when it is stopped.
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

// spinCommand is the busy process that [sharingCommand] starts.
type spinCommand struct{}

// Run implements the command.
func (spinCommand) Run() error {
	var end atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error ends it too
		end.Store(true)
	}()
	for !end.Load() {
	}
	return nil
}
