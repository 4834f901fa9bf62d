package benchmarks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"grove"
	"grove/bench"
	"grove/cmd/grove/internal/flags"
	"grove/internal/par"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// scalingCommand measures a model on several numbers of threads.
type scalingCommand struct {
	flags.Named
	flags.Repeat
	flags.Cache
	flags.JSON
	RowsFlag
	DepthFlag

	Shape     string      `placeholder:"NAME" help:"Measure a model of random weights instead: 0.5b, 0.5b-delta, 0.5b-mamba2, 0.5b-sambay, 1b or tiny."`
	Type      *weightType `placeholder:"TYPE" help:"Type of the weights of --shape, such as Q8_0; without it, Q4_K."`
	At        sizes       `placeholder:"N,..." help:"Numbers of threads; without it, 1, 2, 4 and so on, up to one for each core, with --simulate up to 64."`
	Simulate  bool        `help:"Predict the steps too, from the times of their parts on one thread."`
	Bandwidth *float64    `placeholder:"GB" help:"GB that the memory of the predicted machine gives in a second; without it, each thread reads as much as the second one here."`
}

// maxSimulated is the largest number of threads of a prediction.
const maxSimulated = 1024

// Validate refuses what cannot be measured.
func (c *scalingCommand) Validate() error {
	most, hint := par.Threads(), "; --simulate predicts more"
	if c.Simulate {
		most, hint = maxSimulated, ""
	}
	switch {
	case len(c.At) > 0 && slices.Max(c.At) > most:
		return fmt.Errorf("--at: %d threads; at most %d%s", slices.Max(c.At), most, hint)
	case c.Bandwidth != nil && !c.Simulate:
		return errors.New("--bandwidth is of a prediction; it needs --simulate")
	case c.Bandwidth != nil && !(*c.Bandwidth > 0 && *c.Bandwidth <= 1e6):
		return fmt.Errorf("--bandwidth: %v GB/s; it must be above 0 and at most 1000000", *c.Bandwidth)
	case c.Type != nil && c.Shape == "":
		return errors.New("--type is of the model of --shape; a model file has types of its own")
	case c.Shape != "" && c.First != nil:
		return errors.New("--shape and a model are given; leave out one")
	case c.Repeat.N < 1:
		return errors.New("--repeat: 0; it must be 1 or more")
	}
	return nil
}

// counts returns the numbers of threads.
func (c *scalingCommand) counts() []int {
	counts, most := c.At, par.Threads()
	if c.Simulate {
		most = 64
	}
	for n := 1; len(c.At) == 0 && n <= most; n *= 2 {
		counts = append(counts, n, most)
	}
	counts = append(slices.Clone(counts), 1) // which the others are compared with
	slices.Sort(counts)
	return slices.Compact(counts)
}

// Run implements the command.
func (c *scalingCommand) Run() (err error) {
	cache, err := grove.ParseCacheType(string(c.Cache.Type))
	if err != nil {
		return err
	}
	rows := slices.Max(c.Rows)
	m, err := c.open(bench.Options{CacheType: cache, Rows: rows, Context: rows + int(c.Depth)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	o := bench.ScalingOptions{Rows: c.Rows, Threads: c.counts(), Depth: int(c.Depth), Repeat: int(c.Repeat.N), Simulate: c.Simulate}
	if c.Bandwidth != nil {
		o.Bandwidth = *c.Bandwidth * 1e9
	}
	return c.Report("turn", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return m.Scaling(ctx, o, show)
	})
}

// open opens the model, or makes the one of --shape in memory.
func (c *scalingCommand) open(o bench.Options) (*bench.Model, error) {
	if c.Shape == "" {
		return c.OpenBench(o)
	}
	typ := tensor.Q4_K
	if c.Type != nil {
		typ = tensor.Type(*c.Type)
	}
	metadata, tensors, err := random(c.Shape, typ, 0)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := gguf.Write(&file, metadata, tensors); err != nil {
		return nil, err
	}
	return bench.OpenBytes(c.Shape, file.Bytes(), o)
}
