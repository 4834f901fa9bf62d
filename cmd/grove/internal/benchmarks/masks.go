package benchmarks

import (
	"context"
	"errors"
	"os"

	"grove"
	"grove/bench"
	"grove/cmd/grove/internal/exit"
	"grove/cmd/grove/internal/flags"
	"grove/text/tokenizer"
)

// masksCommand measures the masks of schemas. It needs no tensors.
type masksCommand struct {
	flags.Model
	flags.JSON
	flags.MemberOrder `set:"order=free"`

	Against string `placeholder:"PEER" help:"Another engine to run the same through: llama.cpp, by its package for Node."`
	File    string `arg:"" help:"Schemas in the layout of MaskBench, one JSON object a line with name, schema and tests; compressed by gzip or not."`
}

// Run implements the command.
func (c *masksCommand) Run() error {
	if c.Against != "" {
		return exit.With(exit.CodeUsage, errors.New("--against "+c.Against+": not in this program; the package node-llama-cpp has no call that gives a grammar's masks"))
	}
	in, err := os.Open(c.File)
	if err != nil {
		return exit.File(err)
	}
	schemas, err := bench.ReadMaskSchemas(in)
	if err := errors.Join(err, in.Close()); err != nil {
		return exit.File(err)
	}
	f, err := c.Model.File()
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := tokenizer.FromGGUF(f)
	if err != nil {
		return exit.File(err)
	}
	m, err := grove.NewMaskMeter(t)
	if err != nil {
		return err
	}
	return c.Report("schemas", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return bench.Masks(ctx, m, schemas, bench.MaskOptions{FreeOrder: c.Order == "free"}, show)
	})
}
