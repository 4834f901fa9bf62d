package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"grove"
	"grove/cmd/grove/internal/flags"
	"grove/cmd/grove/internal/terminal"
)

// poolingName is the name of a pooling: how many vectors become one.
type poolingName string

// Validate refuses names that the library does not know.
func (p poolingName) Validate() error {
	switch p {
	case "", "mean", "cls", "last", "none":
		return nil
	}
	return fmt.Errorf("pooling %q is not known; mean, cls, last and none are", string(p))
}

// embedCommand turns a text into a vector.
type embedCommand struct {
	flags.Model
	flags.Context
	flags.Threads
	flags.JSON

	Text    string      `arg:"" optional:"" help:"The text; without it, standard input."`
	Pooling poolingName `placeholder:"HOW" help:"How the vectors of the tokens become one: mean, cls (the first), last, or none (one line for each token). Default: the pooling in the model's file, else mean for an encoder and last for any other model."`
	Raw     bool        `help:"Write vectors as the model gives them, not scaled to length 1."`
}

// embedded is the object that --json writes.
type embedded struct {
	Model      string      `json:"model"`
	Pooling    string      `json:"pooling"`
	Tokens     int         `json:"tokens"`
	Embeddings [][]float32 `json:"embeddings"`
}

// Run implements the command.
func (c *embedCommand) Run() (err error) {
	m, err := c.Open(grove.Options{Context: int(c.Context.N), Threads: int(c.Threads.N), Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	o := grove.EmbedOptions{Pooling: string(c.Pooling), Raw: c.Raw}
	pooling, err := m.Pooling(o)
	if err != nil {
		return err
	}
	if c.Text == "" {
		if c.Text, err = terminal.ReadInput("text"); err != nil {
			return err
		}
	}
	ids, err := m.Tokenize(c.Text, true, false)
	if err != nil {
		return err
	}
	ctx, stop := terminal.UntilSignal()
	defer stop()
	rows, err := m.EmbedTokens(ctx, c.Text, o)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case c.JSON.On:
		return json.NewEncoder(terminal.Stdout).Encode(embedded{m.Info().Name, pooling, len(ids), rows})
	}
	var text []byte
	for _, row := range rows {
		for i, v := range row {
			if i > 0 {
				text = append(text, ' ')
			}
			text = strconv.AppendFloat(text, float64(v), 'g', -1, 32)
		}
		text = append(text, '\n')
	}
	_, err = terminal.Stdout.Write(text)
	return err
}
