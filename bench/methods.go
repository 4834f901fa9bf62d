package bench

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"grove"
	"grove/engine"
	"grove/engine/plan"
	"grove/text/token"
)

// MethodsOptions says how methods are compared.
type MethodsOptions struct {
	Methods  []string // as [grove.Request] takes them
	Tokens   int      // of an answer, where the task does not say
	Sampling grove.Sampling
	Seed     uint64
}

// MethodFigures is what a method did on the tasks of a category, beside plain decoding of the same tasks in the same
// run.
type MethodFigures struct {
	Method    string  `json:"method"`
	Category  string  `json:"category"` // "overall": all
	Tasks     int     `json:"tasks"`
	Tokens    int     `json:"tokens"`
	Plain     float64 `json:"plain_tokens_per_second"`
	Rate      float64 `json:"tokens_per_second"`
	SpeedUp   float64 `json:"speed_up"`
	Accepted  float64 `json:"mean_accepted_tokens"` // a step, the one that is always right included
	Rows      float64 `json:"rows_per_token"`
	Drafting  float64 `json:"drafting_share"` // of the time
	Bound     float64 `json:"hindsight_bound"`
	Different int     `json:"different_answers"`
	First     string  `json:"first_difference,omitempty"`
	Replay    bool    `json:"replay,omitempty"`
}

// Overall is the category of all tasks together.
const Overall = "overall"

// tally adds up the runs of one method in one category.
type tally struct {
	tasks, tokens, different int
	first                    string
	seconds, plain           float64
	depth                    int // sum over tasks
	spec                     engine.SpecStats
}

// CompareMethods answers every task by plain decoding and by each method in turns, and returns the figures of every
// method by category and overall. progress, unless nil, is told how many tasks are done.
func CompareMethods(ctx context.Context, m *grove.Model, prompts []Prompt, o MethodsOptions, progress func(done, of int)) ([]MethodFigures, error) {
	tallies := map[string]map[string]*tally{}
	for _, name := range o.Methods {
		tallies[name] = map[string]*tally{}
		for _, c := range append(Categories(prompts), Overall) {
			tallies[name][c] = &tally{}
		}
	}
	for i, p := range prompts {
		plain, err := answerTask(ctx, m, p, o, grove.MethodOff)
		if err != nil {
			return nil, fmt.Errorf("bench: task %s: %w", p.ID, err)
		}
		for _, name := range o.Methods {
			got, err := answerTask(ctx, m, p, o, name)
			if err != nil {
				return nil, fmt.Errorf("bench: task %s, method %s: %w", p.ID, name, err)
			}
			for _, c := range []string{p.Category, Overall} {
				tallies[name][c].add(p, plain, got)
			}
		}
		if progress != nil {
			progress(i+1, len(prompts))
		}
	}
	cost := m.Cost()
	var figures []MethodFigures
	for _, name := range o.Methods {
		for _, c := range append(Categories(prompts), Overall) {
			figures = append(figures, tallies[name][c].figures(name, c, cost))
		}
	}
	return figures, nil
}

// ReplayMethods scores methods that draft from text alone on the answers on record of a workload, at the cost of some
// model's steps; tasks without an answer are passed over.
func ReplayMethods(ctx context.Context, m *grove.Model, prompts []Prompt, methods []string, c *grove.Cost, progress func(done, of int)) ([]MethodFigures, error) {
	var figures []MethodFigures
	for i, name := range methods {
		tallies := map[string]*tally{}
		for _, p := range prompts {
			if p.Output == "" {
				continue
			}
			stats, plain, err := m.Replay(ctx, name, p.Prompt, p.Output, p.Prediction, c)
			if err != nil {
				return nil, fmt.Errorf("bench: task %s: %w", p.ID, err)
			}
			for _, category := range []string{p.Category, Overall} {
				if tallies[category] == nil {
					tallies[category] = &tally{}
				}
				tallies[category].replay(stats, plain)
			}
		}
		for _, category := range append(Categories(prompts), Overall) {
			if t := tallies[category]; t != nil {
				f := t.figures(name, category, c)
				f.Replay = true
				figures = append(figures, f)
			}
		}
		if progress != nil {
			progress(i+1, len(methods))
		}
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("bench: no task of the workload has an answer on record")
	}
	return figures, nil
}

func (t *tally) replay(stats grove.SpecStats, plain time.Duration) {
	t.tasks++
	t.tokens += stats.Tokens
	t.plain += plain.Seconds()
	t.seconds += (stats.Drafting + stats.Stepping).Seconds()
	t.spec.Add(stats)
}

// result is an answer with what it took.
type result struct {
	ids      []token.ID
	logprobs []float32
	stats    grove.Stats
}

func answerTask(ctx context.Context, m *grove.Model, p Prompt, o MethodsOptions, method string) (result, error) {
	tokens := o.Tokens
	if p.MaxTokens > 0 {
		tokens = p.MaxTokens
	}
	g, err := m.Generate(ctx, grove.Request{
		Prompt: p.Prompt, MaxTokens: tokens, Sampling: o.Sampling, Seed: &o.Seed, Method: method, Prediction: p.Prediction,
	})
	if err != nil {
		return result{}, err
	}
	var r result
	for t, err := range g.Tokens() {
		if err != nil {
			return r, err
		}
		if t.ID != token.None {
			r.ids, r.logprobs = append(r.ids, t.ID), append(r.logprobs, t.Logprob)
		}
	}
	r.stats = g.Stats()
	return r, nil
}

// difference returns what is not the same in two answers, "" where nothing is.
func difference(want, got result) string {
	for i := range min(len(want.ids), len(got.ids)) {
		if want.ids[i] != got.ids[i] {
			return fmt.Sprintf("token %d is %d, not %d", i, got.ids[i], want.ids[i])
		}
		if want.logprobs[i] != got.logprobs[i] {
			return fmt.Sprintf("the log-probability of token %d is %v, not %v", i, got.logprobs[i], want.logprobs[i])
		}
	}
	if len(want.ids) != len(got.ids) {
		return fmt.Sprintf("%d tokens, not %d", len(got.ids), len(want.ids))
	}
	return ""
}

func (t *tally) add(p Prompt, plain, got result) {
	t.tasks++
	t.tokens += max(0, got.stats.Tokens-1) // the first comes with the prompt
	t.plain += plain.stats.Generation.Seconds()
	t.seconds += got.stats.Generation.Seconds()
	t.depth += got.stats.PromptTokens + got.stats.Tokens/2
	t.spec.Add(got.stats.Drafting)
	if d := difference(plain, got); d != "" {
		t.different++
		if t.first == "" {
			t.first = fmt.Sprintf("task %s: %s", p.ID, d)
		}
	}
}

func (t *tally) figures(name, category string, c *grove.Cost) MethodFigures {
	f := MethodFigures{
		Method: name, Category: category, Tasks: t.tasks, Tokens: t.tokens, Different: t.different, First: t.first,
		Plain: ratio(float64(t.tokens), t.plain), Rate: ratio(float64(t.tokens), t.seconds), SpeedUp: ratio(t.plain, t.seconds),
	}
	f.speculation(t.spec, c, t.depth/max(1, t.tasks))
	return f
}

// speculation fills in the figures of drafting.
func (f *MethodFigures) speculation(s engine.SpecStats, c *grove.Cost, depth int) {
	f.Accepted = ratio(float64(s.Tokens), float64(s.Rounds))
	f.Rows = ratio(float64(s.Rounds+s.Drafted), float64(s.Tokens))
	f.Drafting = ratio(s.Drafting.Seconds(), (s.Drafting + s.Stepping).Seconds())
	f.Bound = hindsight(s, c, depth)
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// hindsight is the speed-up of the best fixed number of guesses a step, given how often the guesses of each rank were
// right: the most over n of E(n) T(1) / (T(1+n) + drafting), and 1 for none.
func hindsight(s engine.SpecStats, c *grove.Cost, depth int) float64 {
	best := 1.0
	if s.Rounds == 0 || c == nil {
		return best
	}
	drafting := s.Drafting.Seconds() / float64(s.Rounds)
	expected := 1.0
	one := c.Seconds(plan.StepSize{Rows: 1, Depth: depth, Logits: 1})
	for n := 1; n <= len(s.Hit); n++ {
		expected += float64(s.Hit[n-1]) / float64(s.Rounds)
		best = max(best, expected*one/(c.Seconds(plan.StepSize{Rows: n + 1, Depth: depth, Logits: n + 1})+drafting))
	}
	return best
}

// WriteMethods writes figures as a table.
func WriteMethods(w io.Writer, figures []MethodFigures) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "method\tcategory\ttasks\ttokens\tplain t/s\tt/s\tspeed-up\taccepted\trows/token\tdrafting\tbound\tequal\t")
	for _, f := range figures {
		equal := "yes"
		switch {
		case f.Replay:
			equal = "replay"
		case f.Different > 0:
			equal = fmt.Sprintf("%d differ", f.Different)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\t%.1f%%\t%.2f\t%s\t\n", f.Method, f.Category, f.Tasks, f.Tokens,
			f.Plain, f.Rate, f.SpeedUp, f.Accepted, f.Rows, 100*f.Drafting, f.Bound, equal)
	}
	return tw.Flush()
}
