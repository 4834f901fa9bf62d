package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
	"grove/internal/text/token"
)

// idList is a list of token ids.
type idList []token.ID

// UnmarshalText reads ids with commas between.
func (l *idList) UnmarshalText(text []byte) (err error) {
	if *l, err = parseIDs(string(text)); err == nil && len(*l) == 0 {
		err = errors.New("no token ids")
	}
	return err
}

// logitsCommand writes the logits of a model at every position.
type logitsCommand struct {
	flags.Named
	flags.Context `set:"context=as many as the tokens"`
	flags.Cache   `set:"cache=f32"`
	flags.Out

	Tokens idList `required:"" placeholder:"ID,..." help:"Token ids that are computed, exactly these."`
}

// Run implements the command.
func (c *logitsCommand) Run() (err error) {
	if err := c.Out.Check(); err != nil {
		return err
	}
	context := cmp.Or(int(c.Context.N), len(c.Tokens)) // by which a model with two sets of rotary factors chooses
	m, err := c.Open(grove.Options{Context: context, CacheType: string(c.Cache.Type), Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := c.Out.Check(m.Files()...); err != nil {
		return err
	}
	ctx, stop := terminal.UntilSignal()
	defer stop()
	fill := func(out io.Writer) error {
		w := bufio.NewWriter(out)
		err := m.Logits(ctx, c.Tokens, func(row []float32) error { return writeRow(w, row) })
		if err != nil {
			return exit.Cause(ctx, err)
		}
		return w.Flush()
	}
	return c.Out.Write(fill)
}

// writeRow writes values as little-endian float32.
func writeRow(w io.Writer, row []float32) error {
	b := make([]byte, 0, 4*len(row))
	for _, v := range row {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	_, err := w.Write(b)
	return err
}
