package main

import (
	"grove/cmd/grove/internal/flags"
	"grove/cmd/grove/internal/terminal"
	"grove/weights/gguf"
)

// inspectCommand shows a file.
type inspectCommand struct {
	Full bool   `help:"Show long strings and arrays whole."`
	File string `arg:"" complete:"MODEL" help:"GGUF file, any part of a split one, or a model as -m of other commands takes it."`
}

// Run implements the command.
func (c *inspectCommand) Run() error {
	f, err := flags.Model{Path: c.File}.File()
	if err != nil {
		return err
	}
	defer f.Close()
	return gguf.Inspect(terminal.Stdout, f, c.Full)
}
