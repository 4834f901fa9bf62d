package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"

	"grove"
	"grove/bench"
	"grove/internal/atomicfile"
)

// methodsCommand lists the methods.
type methodsCommand struct {
	JSON bool `name:"json" var:"GROVE_JSON" help:"One JSON object a line instead of a table."`
}

// Run implements the command.
func (c *methodsCommand) Run() error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(w, "NAME\tGRADE\tDRAFTS FROM\tNEEDS\tAUTO\tPAPER")
	}
	for _, m := range grove.Methods() {
		if c.JSON {
			if err := json.NewEncoder(stdout).Encode(m); err != nil {
				return err
			}
			continue
		}
		auto, needs := "", m.Needs
		if m.Auto {
			auto = "yes"
		}
		if needs == "" {
			needs = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Grade, m.Kind, needs, auto, m.Paper)
	}
	return w.Flush()
}

// benchMethods compares methods on a workload.
type benchMethods struct {
	modelFlag

	Draft      string      `placeholder:"FILE" var:"GROVE_DRAFT" help:"GGUF file of a smaller model, to draft with; best with the same vocabulary."`
	DraftVocab count       `placeholder:"N" var:"GROVE_DRAFT_VOCAB" help:"Tokens that the draft model considers, the most frequent ones; 0: all. The answer is the same."`
	Workload   string      `placeholder:"FILE" required:"" help:"Tasks, one JSON object a line: prompt, and if wanted id, category, prediction, output, max_tokens; or Spec-Bench's questions."`
	Methods    string      `placeholder:"NAMES" default:"auto" help:"Methods with commas between, each measured by itself; join several by +. Default: ${default}."`
	Tokens     count       `short:"n" default:"128" placeholder:"N" help:"Tokens of an answer. Default: ${default}."`
	Limit      count       `placeholder:"N" help:"Tasks of each category; 0: all."`
	Temp       temperature `placeholder:"T" default:"0" help:"Temperature. Default: ${default}."`
	Seed       uint64      `placeholder:"S" default:"1" help:"Seed of the draws. Default: ${default}."`
	Context    count       `short:"c" placeholder:"N" var:"GROVE_CONTEXT" help:"Tokens of a text; 0: the model's own, 4096 at most. Tasks that do not fit are left out, and counted."`
	Threads    count       `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	CacheType  cacheType   `placeholder:"TYPE" default:"f16" var:"GROVE_CACHE_TYPE" help:"Type of cached keys and values: f32, f16 or q8_0. Default: ${default}."`
	Replay     bool        `help:"Score methods that draft from text on the answers on record instead of running the model."`
	CostModel  string      `placeholder:"FILE" help:"With --replay: the GGUF file whose steps' cost counts; without it, the model's own."`
	JSON       string      `name:"json" placeholder:"FILE" help:"Write the figures to FILE too, one JSON object a line."`
}

// Validate refuses names of no method.
func (c *benchMethods) Validate() error {
	for _, name := range c.names() {
		if err := grove.CheckMethods(name, ""); err != nil {
			return fmt.Errorf("--methods: %w", err)
		}
	}
	return nil
}

// Run implements the command.
func (c *benchMethods) Run() (err error) {
	prompts, err := readWorkload(c.Workload)
	if err != nil {
		return err
	}
	m, err := c.open(grove.Options{
		Context: int(c.Context), CacheType: string(c.CacheType), Threads: int(c.Threads), Parallel: 1, Draft: c.Draft, DraftVocab: int(c.DraftVocab), Forget: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ctx, stop := untilSignal()
	defer stop()
	figures, err := c.measure(ctx, m, limit(prompts, int(c.Limit)))
	if err != nil {
		return cause(ctx, err)
	}
	if c.JSON != "" {
		if err := writeLines(c.JSON, figures); err != nil {
			return err
		}
	}
	return errors.Join(bench.WriteMethods(stdout, figures), unequal(figures))
}

// measure runs the tasks, or replays them.
func (c *benchMethods) measure(ctx context.Context, m *grove.Model, prompts []bench.Prompt) ([]bench.MethodFigures, error) {
	s := &steps{what: "tasks"}
	defer s.end()
	if !c.Replay {
		return bench.CompareMethods(ctx, m, c.fitting(m, prompts), bench.MethodsOptions{
			Methods: c.names(), Tokens: int(c.Tokens), Sampling: grove.Sampling{Temperature: float32(c.Temp)}, Seed: c.Seed,
		}, s.show)
	}
	cost, err := c.cost(ctx, m)
	if err != nil {
		return nil, err
	}
	return bench.ReplayMethods(ctx, m, prompts, c.names(), cost, s.show)
}

// cost measures the steps whose cost a replay counts.
func (c *benchMethods) cost(ctx context.Context, m *grove.Model) (cost *grove.Cost, err error) {
	if c.CostModel != "" {
		path, err := findModel(c.CostModel)
		if err != nil {
			return nil, err
		}
		other, err := grove.Open(path, grove.Options{Threads: int(c.Threads), CacheType: string(c.CacheType), Parallel: 1})
		if err != nil {
			return nil, fileError{err}
		}
		defer func() { err = errors.Join(err, other.Close()) }()
		m = other
	}
	cost, _, err = m.Tune(ctx)
	return cost, err
}

// names returns the lists of methods to measure, each as a request takes it.
func (c *benchMethods) names() []string {
	names := strings.Split(c.Methods, ",")
	for i := range names {
		names[i] = strings.ReplaceAll(strings.TrimSpace(names[i]), "+", ",")
	}
	return names
}

// fitting leaves out the tasks that do not fit the context, and says how many.
func (c *benchMethods) fitting(m *grove.Model, prompts []bench.Prompt) (kept []bench.Prompt) {
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

// writeLines writes figures to a file, one JSON object a line.
func writeLines(path string, figures []bench.MethodFigures) error {
	err := atomicfile.Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		for _, f := range figures {
			if err := e.Encode(f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return outputError{err}
	}
	return nil
}

// unequal returns an error where an exact method gave another answer than plain decoding.
func unequal(figures []bench.MethodFigures) error {
	for _, f := range figures {
		if f.Different > 0 && f.Category == bench.Overall && grove.MethodGrade(f.Method) == grove.Exact {
			return fmt.Errorf("grove: method %s gave %d other answers than plain decoding; %s", f.Method, f.Different, f.First)
		}
	}
	return nil
}

// readWorkload reads the tasks of a file.
func readWorkload(path string) ([]bench.Prompt, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError{err}
	}
	prompts, err := bench.ReadWorkload(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fileError{err}
	}
	return prompts, nil
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

// benchWorkload writes the workload of Go sources.
type benchWorkload struct {
	Root string `placeholder:"DIR" help:"The Go distribution; without it, what go env GOROOT says."`
	Out  string `arg:"" help:"File to write."`
}

// Run implements the command.
func (c *benchWorkload) Run() error {
	if c.Root == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return fmt.Errorf("--root names no Go distribution, and go env GOROOT fails: %w", err)
		}
		c.Root = strings.TrimSpace(string(out))
	}
	var tasks bytes.Buffer
	n, err := bench.WriteGoWorkload(&tasks, c.Root)
	if err != nil {
		return err
	}
	err = atomicfile.Write(c.Out, func(w io.Writer) error {
		_, err := tasks.WriteTo(w)
		return err
	})
	if err != nil {
		return outputError{err}
	}
	fmt.Fprintf(os.Stderr, "grove: %d tasks in %s\n", n, c.Out)
	return nil
}
