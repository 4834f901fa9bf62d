package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"grove"
	"grove/internal/command/benchmarks"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/weights/tensor"
	"grove/lab/capacity"
)

// planCommand predicts what decoding costs on machines.
type planCommand struct {
	Shape   string                `required:"" placeholder:"NAME" help:"Size of the model: 0.5b, 1b, 7b, 8b, 70b, 405b, 30b-a3b, 120b-a5b, 235b-a22b, deepseek-v3 or step-3."`
	Type    benchmarks.WeightType `placeholder:"TYPE" default:"Q4_K" help:"Type of the weights. Default: ${default}."`
	Machine []string              `required:"" sep:"none" placeholder:"FILE" help:"A machine, as grove bench speed --json writes it; may be given several times. Fields that it may have besides: count, memory, network, latency."`
	Tokens  flags.Count           `name:"text-tokens" placeholder:"N" default:"2048" help:"Tokens of a text. Default: ${default}."`
	Texts   flags.Count           `placeholder:"N" help:"Texts at a time. Without it, as many as give the most tokens a second."`
	Target  time.Duration         `name:"token-time" placeholder:"TIME" default:"200ms" help:"Time that a token of a text may take; 0: any. Default: ${default}."`
	Known   string                `name:"measured" placeholder:"FILE" help:"Compare the prediction for the first machine with the cost of its steps, as grove tune --json writes it for a model of this shape."`
	flags.Cache
	flags.JSON
}

// Run implements the command.
func (c *planCommand) Run() error {
	w, err := c.work()
	if err != nil {
		return &grove.OptionError{Err: err}
	}
	var machines []capacity.Machine
	for _, name := range c.Machine {
		m, err := readMachine(name)
		if err != nil {
			return err
		}
		machines = append(machines, m)
	}
	r := &capacity.Report{Work: w, Type: tensor.Type(c.Type).String(), Cache: string(c.Cache.Type), Machine: machines[0]}
	if c.Known != "" {
		if r.Cost, err = benchmarks.ReadCost(c.Known); err != nil {
			return err
		}
	}
	if r.Plans, err = capacity.Plans(w, machines); err != nil {
		return &grove.OptionError{Err: err}
	}
	return c.Report("plan", func(context.Context, func(done, all int)) (flags.Report, error) { return r, nil })
}

// work returns the work that the flags describe.
func (c *planCommand) work() (w capacity.Work, err error) {
	if w.Shape, err = capacity.Named(c.Shape); err != nil {
		return w, err
	}
	if w.WeightBytes, err = bytesOf(tensor.Type(c.Type)); err != nil {
		return w, err
	}
	kind, err := grove.ParseCacheType(string(c.Cache.Type))
	if err != nil {
		return w, err
	}
	if w.CacheBytes, err = bytesOf(kind); err != nil {
		return w, err
	}
	if c.Target < 0 {
		return w, fmt.Errorf("grove: --token-time: %v; it must be 0 or more", c.Target)
	}
	w.Depth, w.Texts, w.Target = int(c.Tokens), int(c.Texts), c.Target.Seconds()
	return w, nil
}

// bytesOf returns the bytes of a weight of a type.
func bytesOf(t tensor.Type) (float64, error) {
	elems, bytes, ok := t.Block()
	if !ok {
		return 0, fmt.Errorf("grove: --type: %v has no size", t)
	}
	return float64(bytes) / float64(elems), nil
}

// readMachine reads the file of a machine.
func readMachine(name string) (m capacity.Machine, err error) {
	f, err := os.Open(name)
	if err != nil {
		return m, exit.File(err)
	}
	defer f.Close()
	if m, err = capacity.Read(f); err != nil {
		err = &grove.OptionError{Err: fmt.Errorf("grove: --machine %s: %w", name, err)}
	}
	return m, err
}
