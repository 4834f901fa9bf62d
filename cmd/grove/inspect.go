package main

import (
	"grove/weights/gguf"
)

// inspectCommand shows a file.
type inspectCommand struct {
	Full bool   `help:"Show long strings and arrays whole."`
	File string `arg:"" help:"GGUF file, of a split one any part, or what -m of other commands takes."`
}

// Run implements the command.
func (c *inspectCommand) Run() error {
	f, err := modelFlag{c.File}.file()
	if err != nil {
		return err
	}
	defer f.Close()
	return gguf.Inspect(stdout, f, c.Full)
}
