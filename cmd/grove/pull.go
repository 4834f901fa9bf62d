package main

import (
	"errors"
	"fmt"
	"io/fs"

	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
	"grove/internal/weights/find"
	"grove/internal/weights/pull"
)

// pullCommand pulls models.
type pullCommand struct {
	flags.JSON
	Quiet       bool        `short:"q" help:"Write nothing to standard error but errors."`
	Insecure    bool        `help:"Ask registries over http instead of https. Registries of this machine are always asked so."`
	Connections flags.Count `placeholder:"N" default:"4" help:"Requests at a time, from 1 to 16. Default: ${default}."`

	Names []string `arg:"" name:"name" help:"Models: org/name:QUANT of Hugging Face, name:tag of ollama's registry, host/namespace/name:tag of another, or the address of a GGUF file."`
}

// pulled is the object of a model that --json writes.
type pulled struct {
	Name     string   `json:"name"`
	Path     string   `json:"path"`
	Files    []string `json:"files"`
	Received int64    `json:"received_bytes"`
}

// Run implements the command.
func (c *pullCommand) Run() error {
	refs := make([]pull.Ref, len(c.Names))
	for i, name := range c.Names {
		if gopher.Named(name) != nil {
			return exit.With(exit.CodeUsage, fmt.Errorf("pull: %q is part of this program", name))
		}
		var err error
		if refs[i], err = pull.Parse(name); err != nil {
			return exit.With(exit.CodeUsage, err)
		}
	}
	if c.Connections == 0 {
		return exit.With(exit.CodeUsage, errors.New("pull: --connections: 0; it must be 1 to 16"))
	}
	ctx, stop := terminal.UntilSignal()
	defer stop()
	for i, ref := range refs {
		got, err := flags.Pull(ctx, ref, pull.Options{Insecure: c.Insecure, Parallel: int(c.Connections)}, c.Quiet)
		if err != nil {
			return err
		}
		if c.JSON.On {
			err = bench.WriteLines(harmless.JSON(terminal.Stdout), []pulled{{c.Names[i], got.Path, got.Files, got.Received}})
		} else {
			_, err = fmt.Fprintln(terminal.Stdout, got.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rmCommand removes models.
type rmCommand struct {
	flags.JSON
	Names []string `arg:"" name:"model" complete:"MODEL" help:"Models in the caches of Hugging Face, llama.cpp and ollama, by the names that 'grove models' lists."`
}

// Run implements the command.
func (c *rmCommand) Run() error {
	for _, name := range c.Names {
		if gopher.Named(name) != nil {
			return exit.File(fmt.Errorf("rm: %q is part of this program", name))
		}
		r, err := pull.Remove(find.System(), name)
		if c.JSON.On && err == nil {
			err = bench.WriteLines(harmless.JSON(terminal.Stdout), []pull.Removed{r})
		} else if !c.JSON.On {
			for _, file := range r.Files {
				fmt.Fprintln(terminal.Stdout, "removed", harmless.Line(file))
			}
		}
		switch {
		case errors.Is(err, fs.ErrPermission):
			return exit.Output(err)
		case err != nil:
			return exit.File(err)
		}
		if !c.JSON.On {
			fmt.Fprintf(terminal.Stdout, "%s: %s freed\n", harmless.Line(r.Name), rounded(r.Freed, "B"))
		}
	}
	return nil
}
