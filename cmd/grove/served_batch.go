package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
	"grove/server"
	"grove/server/batch"
	"grove/server/serving"
)

// Batch is the command that answers a file of requests.
type Batch struct {
	ServedFlags `set:"parallel=16"`
	flags.JSON

	Errors string `placeholder:"FILE" help:"File of the lines that get no answer; without it, beside OUT, NAME.errors.jsonl."`

	In  string `arg:"" help:"Requests in OpenAI's batch format, one JSON object a line."`
	Out string `arg:"" help:"File of the answers, to which a batch that was interrupted goes on to append."`
}

// Run implements the command.
func (c *Batch) Run() (err error) {
	if c.Parallel.N == 0 {
		return &grove.OptionError{Err: errors.New("grove: --parallel: 0; it must be 1 or more")}
	}
	named, err := c.Models(false)
	if err != nil {
		return err
	}
	bar := terminal.Steps("lines")
	defer bar.End()
	b, err := batch.Open(batch.Options{
		In: c.In, Out: c.Out, Errors: c.Errors, Flight: batch.Flight(int(c.Parallel.N) * len(named)), Progress: bar.Show,
	})
	switch missing := new(fs.PathError); {
	case errors.As(err, &missing) && missing.Path != c.In:
		return exit.Output(err)
	case err != nil:
		return exit.File(err)
	}
	defer func() { err = errors.Join(err, exit.Output(b.Close())) }()
	if b.Left() > 0 {
		if err := c.answer(b, named); err != nil {
			bar.End()
			c.tell(b.Report())
			return err
		}
	}
	bar.End()
	return c.result(b.Report())
}

// answer opens the models and answers the lines.
func (c *Batch) answer(b *batch.Batch, named []Model) (err error) {
	ctx, stop := terminal.UntilSignal()
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := server.New(server.Config{Config: serving.Config{Memory: uint64(c.MemoryLimit), Log: log}})
	defer func() { err = errors.Join(err, s.Close()) }()
	var names []string
	for _, n := range named {
		open := func(_ context.Context, memory uint64) (*grove.Model, error) {
			adapters, err := c.Adapters.Files(false)
			if err != nil {
				return nil, err
			}
			return c.Open(n, grove.Options{Adapters: adapters, Memory: memory}, log)
		}
		if err := s.Add(server.Entry{Name: n.Name, Path: cmp.Or(n.Path, gopher.Name), Settings: c.Settings(n), Open: open}); err != nil {
			return &grove.OptionError{Err: err}
		}
		names = append(names, n.Name)
	}
	if err := s.Load(ctx); err != nil {
		return exit.Cause(ctx, err)
	}
	model, err := s.Identity(ctx, names)
	if err != nil {
		return exit.Cause(ctx, err)
	}
	if err := b.Run(ctx, s, model); err != nil {
		return exit.Cause(ctx, exit.Output(err))
	}
	return nil
}

// tell writes what became of the lines to standard error.
func (c *Batch) tell(r batch.Report) {
	text := fmt.Sprintf("%s: %d of %d lines are done", c.Out, r.Answered+r.Failed, r.Lines)
	if r.Before > 0 {
		text += fmt.Sprintf(", %d of them before", r.Before)
	}
	if n := r.Answered + r.Failed - r.Before; r.Seconds > 0 && n > 0 {
		text += fmt.Sprintf("; %.1f lines a second", float64(n)/r.Seconds)
	}
	fmt.Fprintln(os.Stderr, "grove:", harmless.Line(text))
}

// result writes the report, and returns an error where lines have no answer.
func (c *Batch) result(r batch.Report) error {
	if c.JSON.On {
		if err := json.NewEncoder(harmless.JSON(terminal.Stdout)).Encode(r); err != nil {
			return err
		}
	} else {
		c.tell(r)
	}
	if r.Failed == 0 {
		return nil
	}
	var codes []string
	for _, code := range r.Codes() {
		codes = append(codes, fmt.Sprintf("%d %s", r.Failures[code], code))
	}
	return fmt.Errorf("%d of %d lines have no answer (%s); the file of errors says why", r.Failed, r.Lines, strings.Join(codes, ", "))
}
