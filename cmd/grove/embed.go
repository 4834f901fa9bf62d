package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/text/token"
)

// poolingName is the name of a pooling: how many vectors become one.
type poolingName string

// Valid refuses names that the library does not know.
func (p poolingName) Valid() error {
	switch p {
	case "", "mean", "cls", "last", "none":
		return nil
	}
	return fmt.Errorf("pooling %q is not known; mean, cls, last and none are", string(p))
}

// embedCommand turns a text into a vector.
type embedCommand struct {
	flags.Subject `set:"text=The text; without it, --file or standard input."`
	flags.TextFile
	flags.Context
	flags.Threads
	flags.Repack
	flags.Adapters
	flags.JSON

	Pooling    poolingName  `var:"GROVE_POOLING" placeholder:"HOW" help:"How the vectors of the tokens become one: mean, cls (the first), last, or none (one line for each token). Default: the pooling in the model's file, else mean for an encoder and last for any other model."`
	Layers     flags.Places `name:"layer" placeholder:"LIST" help:"Layers whose streams are read, from 0, instead of the state behind the final norm: numbers and ranges, -1 or last is the last one; of several, the mean. Example: 4..7,last."`
	Tokens     flags.Places `placeholder:"LIST" help:"Tokens that count for the pooling, from 0, as for --layer."`
	Exit       int          `placeholder:"N" help:"Read the state that a model of the first N layers alone would have."`
	Mask       string       `placeholder:"MASK" help:"Attention mask: causal (tokens see those before them), full (they see each other), or masks of layers, such as causal:0..11,full:12..last. Default: full for an encoder, causal for any other model, also in layers that are not named."`
	Dimensions int          `var:"GROVE_DIMENSIONS" placeholder:"N" help:"Values of a vector, the first ones of the model's, for models that were trained for it. Default: all."`
	Raw        bool         `var:"GROVE_RAW" help:"Write vectors as the model gives them, not scaled to length 1."`
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
	text, err := c.text()
	if err != nil {
		return err
	}
	adapters, err := c.Adapters.Files(false)
	if err != nil {
		return err
	}
	m, err := c.Open(grove.Options{Adapters: adapters, Context: int(c.Context.N), Threads: int(c.Threads.N), NoRepack: c.Repack.Off, Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := terminal.UntilSignal()
	defer stop()
	var ids []token.ID
	if err := m.TokenizeEmbedded(ctx, text, func(part []token.ID) error { ids = append(ids, part...); return nil }); err != nil {
		return err
	}
	o := grove.EmbedOptions{Pooling: string(c.Pooling), Raw: c.Raw, Exit: c.Exit, Mask: c.Mask, Dimensions: c.Dimensions}
	if o.Layers, err = c.Layers.Of(m.Info().Layers); err != nil {
		return exit.With(exit.CodeUsage, fmt.Errorf("--layer: %w", err))
	}
	if o.Tokens, err = c.Tokens.Of(len(ids)); err != nil {
		return exit.With(exit.CodeUsage, fmt.Errorf("--tokens: %w", err))
	}
	pooling, err := m.Pooling(o)
	if err != nil {
		return err
	}
	bar := terminal.Tokens("reading")
	defer bar.End()
	o.Progress = bar.Show
	rows, err := m.EmbedIDs(ctx, ids, o, true)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case c.JSON.On:
		return json.NewEncoder(harmless.JSON(terminal.Stdout)).Encode(embedded{m.Info().Name, pooling, len(ids), rows})
	}
	var line []byte
	for _, row := range rows {
		for i, v := range row {
			if i > 0 {
				line = append(line, ' ')
			}
			line = strconv.AppendFloat(line, float64(v), 'g', -1, 32)
		}
		line = append(line, '\n')
	}
	_, err = terminal.Stdout.Write(line)
	return err
}

// text returns the text of the arguments, of the file or of standard input.
func (c *embedCommand) text() (string, error) {
	text, err := c.Resolve()
	if err != nil {
		return "", err
	}
	if text != nil && *text == "" {
		text = nil
	}
	return c.Read("the text", text)
}
