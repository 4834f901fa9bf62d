package main

import (
	"fmt"
	"os"
	"strings"

	"grove/internal/command/flags"
	"grove/internal/command/terminal"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/method/datastore"
)

// datastoreCommand makes a datastore. It needs no tensors.
type datastoreCommand struct {
	flags.Model
	flags.Out

	Files []string `arg:"" name:"file" help:"Files of text, each a text of its own."`
}

// Run implements the command.
func (c *datastoreCommand) Run() error {
	if err := c.Out.Check(append([]string{c.Path}, c.Files...)...); err != nil {
		return err
	}
	t, f, err := c.Tokenizer()
	if err != nil {
		return err
	}
	defer f.Close()
	b, bytes, lines, tokens := datastore.NewBuilder(t), 0, 0, 0
	var ids []token.ID
	bar := terminal.Tokens("reading files")
	defer bar.End()
	for i, path := range c.Files {
		text, err := flags.ReadText(path)
		if err != nil {
			return err
		}
		if ids, err = t.Encode(ids[:0], text, tokenizer.Options{Plain: true}); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := b.Add(ids); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		bytes, lines, tokens = bytes+len(text), lines+strings.Count(text, "\n"), tokens+len(ids)
		bar.Show(i+1, len(c.Files))
	}
	bar.End()
	if err := c.Out.Write(b.Write); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "grove: %d files, %d lines, %d bytes: %d tokens\n", len(c.Files), lines, bytes, tokens)
	return nil
}
