package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"

	"grove"
	"grove/text/token"
)

// idList is a flag's list of tokens.
type idList []token.ID

// UnmarshalText reads ids with commas between.
func (l *idList) UnmarshalText(text []byte) (err error) {
	if *l, err = parseIDs(string(text)); err == nil && len(*l) == 0 {
		err = errors.New("no token ids")
	}
	return err
}

// logitsCommand writes what a model gives at every position.
type logitsCommand struct {
	modelFlag

	Tokens    idList    `required:"" placeholder:"ID,..." help:"Exactly these tokens are computed; none is added."`
	Out       string    `short:"o" placeholder:"FILE" help:"File to write; without it, standard output."`
	CacheType cacheType `placeholder:"TYPE" default:"f32" help:"Type of cached keys and values: f32, f16 or q8_0. Default: ${default}."`
}

// Validate refuses to write bytes to a terminal.
func (c *logitsCommand) Validate() error {
	if c.Out == "" && isTerminal(os.Stdout) {
		return errors.New("logits are not for a terminal: name a file with --out, or redirect standard output")
	}
	return nil
}

// Run implements the command.
func (c *logitsCommand) Run() (err error) {
	m, err := c.open(grove.Options{Context: len(c.Tokens), CacheType: string(c.CacheType), Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	out, err := c.output()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	ctx, stop := untilSignal()
	defer stop()
	w := bufio.NewWriter(out)
	err = m.Logits(ctx, c.Tokens, func(row []float32) error { return writeRow(w, row) })
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return w.Flush()
}

func (c *logitsCommand) output() (output, error) {
	if c.Out == "" {
		return stdout, nil
	}
	f, err := os.Create(c.Out)
	return output{f}, asOutputError(err)
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
