package main

import (
	"grove/gguf"
	"grove/hf"
)

// inspectCommand shows a file.
type inspectCommand struct {
	Full bool   `help:"Show long strings and arrays whole."`
	File string `arg:"" help:"GGUF file, of a split one any part, or a folder of Hugging Face."`
}

// Run implements the command.
func (c *inspectCommand) Run() error {
	f, err := hf.OpenModel(c.File)
	if err != nil {
		return fileError{err}
	}
	defer f.Close()
	return gguf.Inspect(stdout, f, c.Full)
}
