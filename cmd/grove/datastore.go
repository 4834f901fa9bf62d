package main

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"grove/cmd/grove/internal/exit"
	"grove/cmd/grove/internal/flags"
	"grove/cmd/grove/internal/terminal"
	"grove/internal/regular"
	"grove/method/datastore"
	"grove/text/token"
	"grove/text/tokenizer"
)

// datastoreCommand makes a datastore. It needs no tensors.
type datastoreCommand struct {
	flags.Model
	flags.Out

	Files []string `arg:"" name:"file" help:"Files of text, each a text of its own."`
}

// maxText bounds a file of text.
const maxText = 64 << 20

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
		text, err := readText(path)
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

// readText reads a file of text.
func readText(path string) (string, error) {
	text, err := regular.Read(path, maxText)
	if err == nil && !utf8.Valid(text) {
		err = fmt.Errorf("%s: this is no text in UTF-8", path)
	}
	return string(text), exit.File(err)
}
