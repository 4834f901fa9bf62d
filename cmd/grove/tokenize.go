package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// tokenizeCommand turns text into ids and back. It needs no tensors.
type tokenizeCommand struct {
	flags.Named

	Special bool `xor:"special" help:"Add the tokens that begin and end a text, if the model asks for them."`
	Plain   bool `xor:"plain" help:"Read special tokens that are spelled in the text as plain text."`
	Decode  bool `xor:"special,plain" help:"Read ids and write their text."`
}

// Run implements the command.
func (c *tokenizeCommand) Run() error {
	t, f, err := c.Tokenizer()
	if err != nil {
		return err
	}
	defer f.Close()
	if c.Decode {
		return decode(t)
	}
	text, err := terminal.ReadInput("text")
	if err != nil {
		return err
	}
	ids, err := t.Encode(nil, text, tokenizer.Options{Special: c.Special, Plain: c.Plain})
	if err != nil {
		return err
	}
	var line []byte
	for i, id := range ids {
		if i > 0 {
			line = append(line, ' ')
		}
		line = strconv.AppendInt(line, int64(id), 10)
	}
	_, err = terminal.Stdout.Write(append(line, '\n'))
	return err
}

// decode writes the text of the ids on standard input.
func decode(t *tokenizer.Tokenizer) error {
	text, err := terminal.ReadInput("token ids")
	if err != nil {
		return err
	}
	ids, err := parseIDs(text)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	text, err = t.Decode(ids, true)
	if err != nil {
		return err
	}
	if terminal.Is(os.Stdout) {
		text = harmless.Text(text)
	}
	_, err = io.WriteString(terminal.Stdout, text)
	return err
}

// parseIDs reads ids with spaces, line ends or commas between.
func parseIDs(text string) (ids []token.ID, err error) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,\t\r\n", r) }) {
		id, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%.40q is not a token id", word)
		}
		ids = append(ids, token.ID(id))
	}
	return ids, nil
}
