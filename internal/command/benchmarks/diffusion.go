package benchmarks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
)

// diffusionCommand compares policies and caches of a model of masked diffusion.
type diffusionCommand struct {
	flags.Named
	flags.MaxTokens `kong:"set='tokens=128',set='end=none'"`
	flags.Temperature
	flags.Seed `set:"seed=1"`
	flags.Context
	flags.Threads
	flags.Cache
	flags.JSON

	flags.CanvasSteps
	taskLimit `kong:"set='limit=20'"`

	Tasks    string      `placeholder:"FILE" help:"Tasks, one JSON object a line with a prompt, such as grove bench workload writes. Without it, functions of the Go distribution on this machine."`
	Lists    flags.Count `placeholder:"N" help:"In place of functions: N tasks of each operation on lists (ParallelBench)."`
	Policies []string    `sep:"none" placeholder:"NAME:OPTIONS" help:"A policy to measure; may be repeated. Without it, all."`
	Caches   []string    `name:"canvas-caches" sep:"none" default:"none" placeholder:"NAME:OPTIONS" help:"A cache to measure with each policy; may be repeated. Default: ${default}."`
	JudgedBy string      `placeholder:"MODEL" help:"The model of the next token that reads the answers. Default: gopher-target, which is part of this program."`
	Plot     string      `placeholder:"FILE" help:"Also write quality against passes, as an SVG image."`
}

// usualTasks is how many tasks there are where no number is given.
const usualTasks = 20

// Run implements the command.
func (c *diffusionCommand) Run() (err error) {
	o := bench.CanvasOptions{Policies: c.Policies, Caches: c.Caches, Block: int(c.Block), Steps: int(c.Steps), Tokens: c.MaxTokens.Limit(), Sampling: grove.Sampling{Temperature: c.Temperature.Or(0)}, Seed: c.Seed.Or(1)}
	if err := c.complete(&o); err != nil {
		return err
	}
	if err := terminal.CheckOptional(c.Plot, c.Tasks); err != nil {
		return err
	}
	tasks, err := c.read()
	if err != nil {
		return err
	}
	m, err := c.Open(grove.Options{Context: int(c.Context.N), CacheType: string(c.Cache.Type), Threads: int(c.Threads.N), Parallel: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := terminal.CheckOptional(c.Plot, m.Files()...); err != nil {
		return err
	}
	fit, err := bench.CanvasFitting(m, tasks, o.Tokens)
	if err != nil {
		return err
	}
	if left := len(tasks) - len(fit); left > 0 {
		fmt.Fprintf(os.Stderr, "grove: %d of %d tasks do not fit the context of %d tokens and are left out\n", left, len(tasks), m.Info().Context)
	}
	judge, err := flags.Model{Path: cmp.Or(c.JudgedBy, gopher.Name)}.Open(grove.Options{Threads: int(c.Threads.N), Parallel: 1})
	if err != nil {
		return fmt.Errorf("the judge: %w", err)
	}
	defer func() { err = errors.Join(err, judge.Close()) }()
	var report *bench.CanvasReport
	err = c.Report("task", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		report, err = bench.CanvasCompare(ctx, m, judge, fit, o, show)
		return report, err
	})
	if err != nil || c.Plot == "" {
		return err
	}
	return terminal.WriteFile(c.Plot, report.WritePlot)
}

// complete names all policies where none is given, and checks what is.
func (c *diffusionCommand) complete(o *bench.CanvasOptions) error {
	if c.MaxTokens.Limit() == 0 {
		return exit.With(exit.CodeUsage, errors.New("--max-tokens: canvases that are measured need a bound"))
	}
	if c.Tasks != "" && c.Lists > 0 {
		return exit.With(exit.CodeUsage, errors.New("--tasks has tasks, and --lists takes their place; give one of them"))
	}
	for _, p := range grove.DiffusionPolicies() {
		if len(c.Policies) == 0 {
			o.Policies = append(o.Policies, p.Name)
		}
	}
	for _, p := range o.Policies {
		if err := grove.CheckDiffusion(grove.Diffusion{Policy: p}); err != nil {
			return exit.With(exit.CodeUsage, err)
		}
	}
	for _, k := range o.Caches {
		if err := grove.CheckDiffusion(grove.Diffusion{Cache: k, Policy: "static"}); err != nil {
			return exit.With(exit.CodeUsage, err)
		}
	}
	return nil
}

// read reads or makes the tasks.
func (c *diffusionCommand) read() (tasks []bench.CanvasTask, err error) {
	if c.Lists > 0 {
		return bench.CanvasLists(int(c.Lists), c.Seed.Or(1)), nil
	}
	prompts, err := c.prompts()
	if err != nil {
		return nil, err
	}
	for _, p := range limit(prompts, cmp.Or(int(c.taskLimit.Limit), usualTasks)) {
		tasks = append(tasks, bench.CanvasTask{ID: p.ID, Prompt: p.Prompt})
	}
	return tasks, nil
}

// prompts reads the workload, or completes functions of the Go distribution.
func (c *diffusionCommand) prompts() (prompts []bench.Prompt, err error) {
	if c.Tasks != "" {
		return flags.ReadWorkload(c.Tasks)
	}
	root, err := goRoot()
	if err != nil {
		return nil, fmt.Errorf("--tasks: it is not given; the tasks are made of %w", err)
	}
	all, err := bench.GoTasks(root)
	for _, p := range all {
		if p.Category == bench.WorkloadComplete {
			prompts = append(prompts, p)
		}
	}
	return prompts, err
}
