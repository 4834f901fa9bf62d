package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"grove"
	"grove/bench"
	"grove/gopher"
	"grove/model/synthetic"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

// benchCommand is the family of measurements.
type benchCommand struct {
	Speed    benchSpeed    `cmd:"" help:"Measure a model's steps and plain decoding against what the machine can do."`
	Kernels  benchKernels  `cmd:"" help:"Measure single kernels against what the machine can do."`
	Load     benchLoad     `cmd:"" help:"Measure how long a model takes to load, and how much memory."`
	Sharing  benchSharing  `cmd:"" help:"Measure what grove and other work on the machine cost each other."`
	Spin     benchSpin     `cmd:"" hidden:"" help:"Keep one processor busy until standard input ends."`
	Serve    benchServe    `cmd:"" help:"Measure a server under load: any that speaks OpenAI's API."`
	Methods  benchMethods  `cmd:"" help:"Compare methods of drafting with plain decoding on a workload."`
	Workload benchWorkload `cmd:"" help:"Make a workload for methods from the Go distribution on this machine."`
	Make     benchMake     `cmd:"" help:"Make a model of random weights, to measure with."`
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

// benchSpeed measures a model.
type benchSpeed struct {
	modelFlag

	Rows      sizes     `short:"p" default:"1,2,4,8,16,64,512" placeholder:"N,..." help:"Rows of the steps. Default: ${default}."`
	Tokens    count     `short:"n" default:"32" placeholder:"N" help:"Tokens decoded plainly; 0: none. Default: ${default}."`
	Depth     count     `short:"d" placeholder:"N" help:"Tokens that the rows stand behind."`
	Repeat    count     `short:"r" default:"5" placeholder:"N" help:"Turns; figures are their medians. Default: ${default}."`
	Threads   count     `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	CacheType cacheType `placeholder:"TYPE" default:"f16" var:"GROVE_CACHE_TYPE" help:"Type of cached keys and values: f32, f16 or q8_0."`
	NoRepack  bool      `var:"GROVE_NO_REPACK" help:"Read weights where the file has them."`
	JSON      bool      `name:"json" var:"GROVE_JSON" help:"One JSON object a line instead of a table."`
}

// Run implements the command.
func (c *benchSpeed) Run() (err error) {
	cache, err := grove.ParseCacheType(string(c.CacheType))
	if err != nil {
		return err
	}
	rows := 1
	for _, n := range c.Rows {
		rows = max(rows, n)
	}
	o := bench.Options{Threads: int(c.Threads), CacheType: cache, Rows: rows, Context: rows + int(c.Depth), NoRepack: c.NoRepack}
	m, err := c.openBench(o)
	if err != nil {
		return fileError{err}
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := untilSignal()
	defer stop()
	s := steps{what: "turn"}
	r, err := m.Speed(ctx, bench.SpeedOptions{
		Rows: c.Rows, Tokens: int(c.Tokens), Depth: int(c.Depth), Repeat: int(c.Repeat),
	}, s.show)
	s.end()
	if err != nil {
		return cause(ctx, err)
	}
	if c.JSON {
		return r.WriteJSON(stdout)
	}
	return r.WriteTable(stdout, m.Title())
}

// openBench opens the model for measuring.
func (f modelFlag) openBench(o bench.Options) (*bench.Model, error) {
	if f.Model != "" {
		path, err := findModel(f.Model)
		if err != nil {
			return nil, err
		}
		return bench.Open(path, o)
	}
	announce()
	return bench.OpenBytes(gopher.Name, gopher.Model(), o)
}

// steps shows how far a job of a few long steps is.
type steps struct {
	what string
	bar  *progress
}

// show is told of the steps done and of all.
func (s *steps) show(done, all int) {
	if s.bar == nil {
		bar := newProgress(s.what, int64(all), false)
		s.bar = &bar
	}
	s.bar.set(int64(done))
}

// end takes the line away.
func (s *steps) end() {
	if s.bar != nil {
		s.bar.end()
	}
}

// cause returns the signal that ended ctx, if one did, and err otherwise.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// benchKernels measures kernels.
type benchKernels struct {
	Threads count `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	JSON    bool  `name:"json" var:"GROVE_JSON" help:"One JSON object a line instead of a table."`
}

// Run implements the command.
func (c *benchKernels) Run() error {
	s := steps{what: "type"}
	r := bench.Kernels(int(c.Threads), s.show)
	s.end()
	if c.JSON {
		return r.WriteJSON(stdout)
	}
	return r.WriteTable(stdout)
}

// benchMake writes a model of random weights.
type benchMake struct {
	Shape string     `required:"" placeholder:"NAME" help:"0.5b, 1b or tiny."`
	Type  weightType `required:"" placeholder:"TYPE" help:"Type of every matrix, such as F16, Q8_0 or Q4_K."`
	Seed  uint64     `placeholder:"S" help:"Seed of the weights."`
	Out   string     `arg:"" help:"GGUF file to write."`
}

// weightType is a flag's type of weights.
type weightType tensor.Type

// UnmarshalText reads the name of a type.
func (t *weightType) UnmarshalText(text []byte) error {
	for _, known := range tensor.Types() {
		if strings.EqualFold(known.String(), string(text)) {
			*t = weightType(known)
			return nil
		}
	}
	names := strings.Fields(strings.Trim(fmt.Sprint(tensor.Types()), "[]"))
	return fmt.Errorf("weight type %q is not known; the types are %s", text, strings.Join(names, ", "))
}

// Run implements the command.
func (c *benchMake) Run() error {
	spec, err := synthetic.Named(c.Shape, tensor.Type(c.Type))
	if err != nil {
		return &grove.OptionError{Err: err}
	}
	spec.Seed = c.Seed
	metadata, tensors, err := spec.Parts()
	if err != nil {
		return &grove.OptionError{Err: err}
	}
	return asOutputError(gguf.WriteFile(c.Out, metadata, tensors))
}
