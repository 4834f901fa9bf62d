package benchmarks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"grove"
	"grove/bench"
	"grove/internal/command/flags"
	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// scalingCommand measures a model on several numbers of threads.
type scalingCommand struct {
	flags.Named
	flags.Repeat
	flags.Cache
	flags.JSON
	RowsFlag
	DepthFlag

	Shape     string      `placeholder:"NAME" help:"Measure a model of random weights instead: 0.5b, 0.5b-151k, 0.5b-delta, 0.5b-mamba2, 0.5b-sambay, 1b, 7b or tiny."`
	Type      *WeightType `placeholder:"TYPE" help:"Type of the weights of --shape, such as Q8_0; without it, Q4_K."`
	At        sizes       `placeholder:"N,..." help:"Numbers of threads; without it, 1, 2, 4 and so on, up to one for each core, with --simulate up to 64."`
	Simulate  bool        `help:"Predict the steps too, from the times of their parts on one thread."`
	Drafter   string      `placeholder:"MODEL" help:"With --simulate: a model that drafts, or with --shape another shape; predict drafting before the steps and beside them, in place of the steps."`
	Accepted  float64     `placeholder:"P" default:"0.8" help:"With --drafter: the probability that a draft is accepted where those before it are. Default: ${default}."`
	Bandwidth *float64    `placeholder:"GB" help:"Memory bandwidth of the predicted machine, in GB/s; without it, each thread adds as much as the second thread of this machine."`
}

// maxSimulated is the largest number of threads of a prediction.
const maxSimulated = 1024

// Valid refuses what cannot be measured.
func (c *scalingCommand) Valid() error {
	most, hint := par.Threads(), "; --simulate predicts more"
	if c.Simulate {
		most, hint = maxSimulated, ""
	}
	switch {
	case len(c.At) > 0 && slices.Max(c.At) > most:
		return fmt.Errorf("--at: %d threads; at most %d%s", slices.Max(c.At), most, hint)
	case c.Drafter != "" && !c.Simulate:
		return errors.New("--drafter is of a prediction; it needs --simulate")
	case !(c.Accepted > 0 && c.Accepted < 1):
		return fmt.Errorf("--accepted: %v; it must be above 0 and below 1", c.Accepted)
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
	if c.Drafter != "" && len(c.At) == 0 {
		return []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}
	}
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
	if c.Drafter != "" {
		rows = max(rows, slices.Max(bench.PairRows))
	}
	options := bench.Options{CacheType: cache, Rows: rows, Context: rows + int(c.Depth)}
	m, err := c.open(c.Named.OpenBench, c.Shape, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	o := bench.ScalingOptions{Rows: c.Rows, Threads: c.counts(), Depth: int(c.Depth), Repeat: int(c.Repeat.N), Simulate: c.Simulate}
	if c.Bandwidth != nil {
		o.Bandwidth = *c.Bandwidth * 1e9
	}
	if c.Drafter != "" {
		return c.pair(m, options, o)
	}
	return c.Report("turn", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return m.Scaling(ctx, o, show)
	})
}

// pair predicts drafting by another model.
func (c *scalingCommand) pair(m *bench.Model, options bench.Options, o bench.ScalingOptions) (err error) {
	shape := ""
	if c.Shape != "" {
		shape = c.Drafter
	}
	draft, err := c.open(flags.Model{Path: c.Drafter}.OpenBench, shape, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	return c.Report("turn", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return m.Pair(ctx, draft, c.Accepted, o, show)
	})
}

// open opens a model, or makes one of a shape in memory.
func (c *scalingCommand) open(file func(bench.Options) (*bench.Model, error), shape string, o bench.Options) (*bench.Model, error) {
	if shape == "" {
		return file(o)
	}
	typ := tensor.Q4_K
	if c.Type != nil {
		typ = tensor.Type(*c.Type)
	}
	metadata, tensors, err := random(shape, typ, 0)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if err := gguf.Write(&data, metadata, tensors); err != nil {
		return nil, err
	}
	return bench.OpenBytes(shape, data.Bytes(), o)
}
