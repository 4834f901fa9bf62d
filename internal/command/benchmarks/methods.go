package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"grove"
	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
	"grove/internal/model/synthetic"
	"grove/internal/weights/tensor"
)

// tasks names a workload.
type tasks struct {
	Workload string `placeholder:"FILE" required:"" help:"Tasks, one JSON object a line, with prompt and, optionally, id, category, prediction, output, max_tokens; or the questions of Spec-Bench."`
	taskLimit
}

// taskLimit is --limit.
type taskLimit struct {
	Limit flags.Count `placeholder:"N" help:"Tasks of each category at most; 0: ${limit=all}."`
}

// methodsCommand compares methods with plain decoding on a workload.
type methodsCommand struct {
	flags.Named
	flags.Draft
	flags.Adapters
	flags.Methods `set:"methods=auto"`
	flags.Accept
	flags.MaxTokens `set:"tokens=128"`
	flags.Temperature
	flags.Seed `set:"seed=1"`
	flags.Context
	flags.Threads
	flags.Cache
	flags.Save
	tasks

	Eager     bool              `help:"Run every draft of a method, whether it pays on this machine or not."`
	CostOf    map[string]string `placeholder:"SHAPE=FILE" help:"Predict the speed-up at the cost of a larger model: a shape of grove bench make, and the cost of its steps as grove tune --json writes it; may be repeated."`
	Replay    bool              `help:"Score methods that draft from text on the recorded answers (output), without the model."`
	CostModel string            `placeholder:"FILE" help:"With --replay: the model whose steps give the cost; without it, the model of --model."`
	Cost      string            `placeholder:"FILE" help:"With --replay: the cost of steps, as grove tune --json writes it; the same figures on any machine but for the time to draft."`
}

// Run implements the command.
func (c *methodsCommand) Run() (err error) {
	if c.Replay && c.Accept.Rule != grove.AcceptExact {
		return exit.With(exit.CodeUsage, errors.New("--accept is of answers that a model gives; a replay has those on record"))
	}
	if c.Cost != "" && (!c.Replay || c.CostModel != "") {
		return exit.With(exit.CodeUsage, errors.New("--cost is the cost of steps for --replay; it takes the place of --cost-model"))
	}
	if c.Replay && (c.Eager || len(c.CostOf) > 0) {
		return exit.With(exit.CodeUsage, errors.New("--eager and --cost-of are of rounds that a model runs; a replay runs none"))
	}
	shapes, err := shapes(c.CostOf)
	if err != nil {
		return err
	}
	prompts, err := flags.ReadWorkload(c.Workload)
	if err != nil {
		return err
	}
	if err := terminal.CheckOptional(c.Save.File, c.Workload); err != nil {
		return err
	}
	adapters, err := c.Adapters.Files(false)
	if err != nil {
		return err
	}
	o := grove.Options{
		Adapters: adapters,
		Context:  int(c.Context.N), CacheType: string(c.Cache.Type), Threads: int(c.Threads.N), Parallel: 1, Forget: true, Eager: c.Eager,
	}
	c.Beside(&o)
	m, err := c.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := terminal.CheckOptional(c.Save.File, m.Files()...); err != nil {
		return err
	}
	ctx, stop := terminal.UntilSignal()
	defer stop()
	figures, err := c.measure(ctx, m, limit(prompts, int(c.taskLimit.Limit)), shapes)
	if err != nil {
		return exit.Cause(ctx, err)
	}
	if c.Save.File != "" {
		err := terminal.WriteFile(c.Save.File, func(w io.Writer) error { return bench.WriteLines(w, figures) })
		if err != nil {
			return err
		}
	}
	err = bench.WriteMethods(terminal.Stdout, figures)
	if err == nil && !c.Replay {
		err = writeDraftMemory(terminal.Stdout, m.Info(), figures)
	}
	if err == nil {
		err = writeChoices(terminal.Stdout, choices(figures))
	}
	return errors.Join(err, c.unequal(figures))
}

// measure runs the tasks, or replays them.
func (c *methodsCommand) measure(ctx context.Context, m *grove.Model, prompts []bench.Prompt, at []bench.StepShape) ([]bench.MethodFigures, error) {
	s := terminal.Steps("tasks")
	defer s.End()
	names := c.List()
	if !c.Replay {
		return bench.CompareMethods(ctx, m, fitting(m, prompts), bench.MethodsOptions{
			Methods: names, Accept: string(c.Accept.Rule), Tokens: c.MaxTokens.Limit(), Sampling: grove.Sampling{Temperature: c.Temperature.Or(0)}, Seed: c.Seed.Or(1), At: at, LeftOut: c.LeftOut(),
		}, s.Show)
	}
	cost, err := c.cost(ctx, m)
	if err != nil {
		return nil, err
	}
	figures, halved, err := bench.ReplayMethods(ctx, m, prompts, bench.ReplayOptions{Methods: names, Cost: cost, LeftOut: c.LeftOut()}, s.Show)
	if err == nil && halved > 0 {
		fmt.Fprintf(os.Stderr, "grove: %d of %d tasks have no answer on record: the second half of their prompts is replayed behind the first\n", halved, len(prompts))
	}
	return figures, err
}

// shapes reads the costs of larger models.
func shapes(at map[string]string) (all []bench.StepShape, err error) {
	for _, name := range slices.Sorted(maps.Keys(at)) {
		s, err := synthetic.Named(name, tensor.F32)
		if err != nil {
			return nil, exit.With(exit.CodeUsage, fmt.Errorf("--cost-of: %w", err))
		}
		cost, err := ReadCost(at[name])
		if err != nil {
			return nil, err
		}
		all = append(all, bench.StepShape{Name: name, Layers: s.Layers, Cost: cost})
	}
	return all, nil
}

// ReadCost reads a file of the cost of steps.
func ReadCost(path string) (*grove.Cost, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exit.File(err)
	}
	cost, err := grove.ReadCost(f)
	return cost, exit.File(errors.Join(err, f.Close()))
}

// cost reads or measures the cost of steps for a replay.
func (c *methodsCommand) cost(ctx context.Context, m *grove.Model) (cost *grove.Cost, err error) {
	if c.Cost != "" {
		return ReadCost(c.Cost)
	}
	if c.CostModel != "" {
		path, err := flags.Find(c.CostModel)
		if err != nil {
			return nil, err
		}
		other, err := grove.Open(path, grove.Options{Threads: int(c.Threads.N), CacheType: string(c.Cache.Type), Parallel: 1})
		if err != nil {
			return nil, exit.File(err)
		}
		defer func() { err = errors.Join(err, other.Close()) }()
		m = other
	}
	cost, _, err = m.Tune(ctx)
	return cost, err
}

// fitting returns the tasks that fit the context, and reports how many do not.
func fitting(m *grove.Model, prompts []bench.Prompt) (kept []bench.Prompt) {
	for _, p := range prompts {
		if ids, err := m.Tokenize(p.Prompt, true, false); err == nil && len(ids) < m.Info().Context {
			kept = append(kept, p)
		}
	}
	if left := len(prompts) - len(kept); left > 0 {
		fmt.Fprintf(os.Stderr, "grove: %d of %d tasks do not fit the context of %d tokens and are left out\n", left, len(prompts), m.Info().Context)
	}
	return kept
}

// unequal returns an error if an exact method gave another answer than plain decoding.
func (c *methodsCommand) unequal(figures []bench.MethodFigures) error {
	name, _, _ := strings.Cut(string(c.Accept.Rule), ":")
	for _, r := range grove.Rules() {
		if r.Name == name && r.Grade != grove.Exact {
			return nil
		}
	}
	for _, f := range figures {
		if f.Different > 0 && f.Category == bench.Overall && grove.MethodGrade(f.Method) == grove.Exact {
			return fmt.Errorf("grove: method %s gave %d other answers than plain decoding; %s", f.Method, f.Different, f.First)
		}
	}
	return nil
}

// limit keeps the first n tasks of each category.
func limit(prompts []bench.Prompt, n int) []bench.Prompt {
	if n == 0 {
		return prompts
	}
	seen := map[string]int{}
	kept := prompts[:0]
	for _, p := range prompts {
		if seen[p.Category]++; seen[p.Category] <= n {
			kept = append(kept, p)
		}
	}
	return kept
}
