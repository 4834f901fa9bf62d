package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"grove"
)

// poolingName is a flag's way to make one vector of many.
type poolingName string

// Validate refuses names that the library does not know.
func (p poolingName) Validate() error {
	switch p {
	case "", "mean", "cls", "last", "none":
		return nil
	}
	return errors.New("known are mean, cls, last and none")
}

// embedCommand turns a text into a vector.
type embedCommand struct {
	modelFlag

	Text    string      `arg:"" optional:"" help:"The text; without it, standard input."`
	Pooling poolingName `placeholder:"HOW" help:"What becomes of the tokens' vectors: mean, cls (the first), last, or none (one line for each token). Default: what the model's file asks for; where it asks for nothing, mean of an encoder and last of any other model."`
	Raw     bool        `help:"Write vectors as the model gives them, not of length 1."`
	JSON    bool        `name:"json" help:"Write one JSON object instead of numbers on a line."`
	Context count       `short:"c" placeholder:"N" default:"0" help:"Tokens of the text; 0: the model's own, 4096 at most."`
	Threads count       `short:"t" placeholder:"N" default:"0" help:"Threads; 0: one for each core that may be used."`
}

// embedded is what --json writes.
type embedded struct {
	Model      string      `json:"model"`
	Pooling    string      `json:"pooling"`
	Tokens     int         `json:"tokens"`
	Embeddings [][]float32 `json:"embeddings"`
}

// Run implements the command.
func (c *embedCommand) Run() (err error) {
	m, err := c.open(grove.Options{Context: int(c.Context), Threads: int(c.Threads), Parallel: 1})
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
		if c.Text, err = readInput("text"); err != nil {
			return err
		}
	}
	ids, err := m.Tokenize(c.Text, true, false)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal()
	defer stop()
	rows, err := m.EmbedTokens(ctx, c.Text, o)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case c.JSON:
		return json.NewEncoder(stdout).Encode(embedded{m.Info().Name, pooling, len(ids), rows})
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
	_, err = stdout.Write(text)
	return err
}
