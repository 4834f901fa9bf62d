package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"os"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
)

// vocabCommand measures how much of its vocabulary a draft model should compute.
type vocabCommand struct {
	flags.Model
	tasks
	flags.MaxTokens `set:"tokens=128"`
	flags.Threads
	flags.Cache
	flags.JSON

	Sizes      sizes    `placeholder:"N,..." default:"256,512,1024,2048" help:"Numbers of tokens whose figures are shown beside those of the choice. Default: ${default}."`
	CostModels []string `placeholder:"MODEL,DRAFT" help:"Two models whose steps give the costs, by shares of the vocabulary; without them, the model and the draft model, and what is measured is kept for --draft-vocab auto."`
	Draft      string   `arg:"" help:"The draft model, named as for --model."`
}

// Valid refuses one model alone.
func (c *vocabCommand) Valid() error {
	if n := len(c.CostModels); n != 0 && n != 2 {
		return fmt.Errorf("--cost-models: %d models; it must be two, for the steps of the model and of the draft model", n)
	}
	return nil
}

// Run implements the command.
func (c *vocabCommand) Run() (err error) {
	prompts, err := flags.ReadWorkload(c.Workload)
	if err != nil {
		return err
	}
	target, err := c.open(c.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	draft, err := c.open(c.Draft)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	return c.Report("tasks", func(ctx context.Context, show func(done, all int)) (flags.Report, error) {
		o := bench.VocabOptions{Tokens: c.MaxTokens.Limit(), Sizes: c.Sizes}
		files, err := c.costs(ctx, target, draft, &o)
		if err != nil {
			return nil, err
		}
		r, err := bench.Vocab(ctx, target, draft, limit(fitting(target, prompts), int(c.tasks.Limit)), o, show)
		if err != nil || len(files) == 0 {
			return r, err
		}
		path, err := r.Keep(files[0], files[1])
		if err == nil {
			fmt.Fprintf(os.Stderr, "grove: for --draft-vocab auto kept in %s\n", path)
		}
		return r, err
	})
}

// open opens a model for one text at a time.
func (c *vocabCommand) open(name string) (*grove.Model, error) {
	return flags.Model{Path: name}.Open(grove.Options{Threads: int(c.Threads.N), CacheType: string(c.Cache.Type), Parallel: 1, Forget: true})
}

// costs measures the costs of steps, and returns the files that keep those of the model and of the draft model; nil: the costs are those of
// other models.
func (c *vocabCommand) costs(ctx context.Context, target, draft *grove.Model, o *bench.VocabOptions) (files []string, err error) {
	if len(c.CostModels) > 0 {
		if o.Target, err = c.costOf(ctx, c.CostModels[0]); err == nil {
			o.Draft, err = c.costOf(ctx, c.CostModels[1])
		}
		return nil, err
	}
	files = make([]string, 2)
	if o.Target, files[0], err = target.Tune(ctx); err == nil {
		o.Draft, files[1], err = draft.Tune(ctx)
	}
	return files, err
}

// costOf measures the cost of another model's steps.
func (c *vocabCommand) costOf(ctx context.Context, name string) (cost *grove.Cost, err error) {
	m, err := c.open(name)
	if err != nil {
		return nil, exit.File(err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	cost, _, err = m.Tune(ctx)
	return cost, err
}
