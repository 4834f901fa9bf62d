package main

import (
	"io"

	"github.com/alecthomas/kong"

	"grove/internal/command/completion"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
	"grove/internal/weights/find"
)

// completionCommand writes the script that completes command lines in a shell.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Run implements the command.
func (c *completionCommand) Run() error {
	script, err := completion.Script(c.Shell)
	if err != nil {
		return err
	}
	_, err = io.WriteString(terminal.Stdout, script)
	return err
}

// completeCommand answers the scripts of completionCommand.
type completeCommand struct {
	Words []string `arg:"" optional:""`
}

// Run implements the command.
func (c *completeCommand) Run(k *kong.Context) error {
	return completion.Complete(k.Model, c.Words, modelNames).Write(terminal.Stdout)
}

// modelNames returns the names of the models on this machine. A place that cannot be read has none.
func modelNames() (names []string) {
	models, _ := find.System().List()
	for _, m := range models {
		names = append(names, m.Name)
	}
	return append(names, gopher.Names()...)
}
