package main

import (
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
	"grove/internal/weights/gguf"
	"grove/internal/weights/lora"
)

// inspectCommand shows a file.
type inspectCommand struct {
	Full bool   `help:"Show long strings and arrays whole."`
	File string `arg:"" complete:"MODEL" help:"GGUF file, any part of a split one, a model as -m of other commands takes it, or a LoRA adapter."`
}

// Run implements the command.
func (c *inspectCommand) Run() error {
	if lora.Is(c.File) {
		return c.adapter()
	}
	f, err := flags.Model{Path: c.File}.File()
	if err != nil {
		return err
	}
	defer f.Close()
	return gguf.Inspect(terminal.Stdout, f, c.Full)
}

// adapter shows a LoRA adapter.
func (c *inspectCommand) adapter() error {
	a, err := lora.Read(c.File)
	if err != nil {
		return exit.File(err)
	}
	defer a.Close()
	return lora.Inspect(terminal.Stdout, a)
}
