// Package benchmarks holds the commands of grove bench.
package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
	"grove/internal/model/synthetic"
	"grove/internal/options"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Command is the commands of grove bench.
type Command struct {
	Speed     speedCommand     `cmd:"" help:"Measure a model's steps and plain decoding against the limits of the machine."`
	Kernels   kernelsCommand   `cmd:"" help:"Measure single kernels against the limits of the machine."`
	Scaling   scalingCommand   `cmd:"" help:"Measure a model's steps on several numbers of threads, and predict them on more."`
	Load      loadCommand      `cmd:"" help:"Measure the time and the memory that loading a model takes."`
	Sharing   sharingCommand   `cmd:"" help:"Measure how much grove and other processes slow each other down."`
	Spin      spinCommand      `cmd:"" hidden:"" help:"Keep one processor busy until standard input ends."`
	Serve     serveCommand     `cmd:"" help:"Measure a server under load, any with OpenAI's API."`
	Methods   methodsCommand   `cmd:"" help:"Compare methods with plain decoding on a workload."`
	Diffusion diffusionCommand `cmd:"" help:"Compare policies and caches of a diffusion model."`
	Vocab     vocabCommand     `cmd:"" help:"Measure how much of its vocabulary a draft model should compute."`
	Layers    layersCommand    `cmd:"" help:"Search which layers each token of a text needs."`
	Masks     masksCommand     `cmd:"" help:"Measure the masks of JSON schemas, and what they say of texts."`
	Workload  workloadCommand  `cmd:"" help:"Make a workload for methods from the Go distribution on this machine."`
	Make      makeCommand      `cmd:"" help:"Make a model of random weights for measurements."`
}

// sizes is a flag's list of positive numbers.
type sizes []int

// UnmarshalText reads numbers with commas between.
func (s *sizes) UnmarshalText(text []byte) error {
	*s = nil
	for _, field := range strings.Split(string(text), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 || n > 1<<16 {
			return fmt.Errorf("%q is not a number from 1 to %d", field, 1<<16)
		}
		*s = append(*s, n)
	}
	return nil
}

// RowsFlag is -p. The variable rows is its default.
type RowsFlag struct {
	Rows sizes `short:"p" default:"${rows=1,8,64}" placeholder:"N,..." help:"Numbers of rows of what is measured. Default: ${default}."`
}

// DepthFlag is -d.
type DepthFlag struct {
	Depth flags.Count `short:"d" placeholder:"N" help:"Tokens of context before the rows."`
}

// speedCommand measures a model.
type speedCommand struct {
	flags.Named
	flags.MaxTokens `kong:"set='tokens=32',set='end=none'"`
	flags.Repeat
	flags.Threads
	flags.Cache
	flags.Repack
	flags.JSON
	RowsFlag `kong:"set='rows=1,2,4,8,16,64,512'"`
	DepthFlag
}

// Valid refuses to measure without end.
func (c *speedCommand) Valid() error {
	if c.MaxTokens.N < 0 {
		return fmt.Errorf("--max-tokens: %d; steps that are measured need a bound", c.MaxTokens.N)
	}
	return nil
}

// Run implements the command.
func (c *speedCommand) Run() (err error) {
	cache, err := grove.ParseCacheType(string(c.Cache.Type))
	if err != nil {
		return err
	}
	rows := slices.Max(c.Rows)
	o := bench.Options{Threads: int(c.Threads.N), CacheType: cache, Rows: rows, Context: rows + int(c.Depth), NoRepack: c.Repack.Off}
	m, err := c.OpenBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return c.Report("turn", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		return m.Speed(ctx, bench.SpeedOptions{
			Rows: c.Rows, Tokens: int(c.MaxTokens.N), Depth: int(c.Depth), Repeat: int(c.Repeat.N),
		}, show)
	})
}

// kernelsCommand measures kernels.
type kernelsCommand struct {
	flags.Repeat
	flags.Threads
	flags.JSON

	Types    []WeightType `name:"type" placeholder:"TYPE,..." help:"Types of weights, such as F16, Q8_0 or Q4_K. Without it, all."`
	RowsFlag `kong:"set='rows=1,8,64,512'"`
}

// Run implements the command.
func (c *kernelsCommand) Run() error {
	return c.Report("type", func(_ context.Context, show func(done, all int)) (flags.Report, error) {
		o := bench.KernelOptions{Threads: int(c.Threads.N), Rows: c.Rows, Repeat: int(c.Repeat.N)}
		for _, t := range c.Types {
			o.Types = append(o.Types, tensor.Type(t))
		}
		return bench.Kernels(o, show), nil
	})
}

// makeCommand writes a model of random weights.
type makeCommand struct {
	flags.Seed `set:"seed=0"`

	Shape string     `required:"" placeholder:"NAME" help:"Size of the model: 0.5b, 0.5b-151k, 0.5b-delta, 0.5b-mamba2, 0.5b-sambay, 1b, 7b or tiny."`
	Type  WeightType `required:"" placeholder:"TYPE" help:"Type of every matrix, such as F16, Q8_0 or Q4_K."`
	Out   string     `arg:"" help:"GGUF file to write."`
}

// WeightType is a flag's type of weights.
type WeightType tensor.Type

// UnmarshalText reads the name of a type.
func (t *WeightType) UnmarshalText(text []byte) error {
	for _, known := range tensor.Types() {
		if strings.EqualFold(known.String(), string(text)) {
			*t = WeightType(known)
			return nil
		}
	}
	names := strings.Fields(strings.Trim(fmt.Sprint(tensor.Types()), "[]"))
	return fmt.Errorf("weight type %q is not known; the types are %s%s", text, strings.Join(names, ", "), options.NearHint(string(text), names))
}

// Run implements the command.
func (c *makeCommand) Run() error {
	if err := terminal.CheckFile(c.Out); err != nil {
		return err
	}
	metadata, tensors, err := random(c.Shape, tensor.Type(c.Type), c.Seed.Or(0))
	if err != nil {
		return err
	}
	return exit.Output(gguf.WriteFile(c.Out, metadata, tensors))
}

// random makes a model of random weights.
func random(shape string, t tensor.Type, seed uint64) ([]gguf.KV, []tensor.View, error) {
	spec, err := synthetic.Named(shape, t)
	if err != nil {
		return nil, nil, &grove.OptionError{Err: err}
	}
	spec.Seed = seed
	metadata, tensors, err := spec.Parts()
	if err != nil {
		return nil, nil, &grove.OptionError{Err: err}
	}
	return metadata, tensors, nil
}
