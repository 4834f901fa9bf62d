package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"grove"
	"grove/internal/engine"
	"grove/internal/stat"
	"grove/internal/text/token"
	"grove/method"
)

// MethodsOptions says how methods are compared.
type MethodsOptions struct {
	Methods  []string // as [grove.Request] takes them
	Accept   string   // the rule that accepts drafts, as [grove.Request] takes it
	Tokens   int      // limit of an answer, where the task has none
	Sampling grove.Sampling
	Seed     uint64

	// At are larger models at whose cost the rounds are predicted.
	At []StepShape

	// LeftOut, where it is not nil, gets the methods whose needs the models do not meet. They are left out.
	LeftOut func(method string, err error)
}

// MethodFigures is the figures of a method on the tasks of a category, compared with plain decoding of the same tasks in
// the same run.
type MethodFigures struct {
	Method    string           `json:"method"`
	Category  string           `json:"category"` // "overall": all
	Tasks     int              `json:"tasks"`
	Tokens    int              `json:"tokens"`
	Plain     float64          `json:"plain_tokens_per_second"`
	Rate      float64          `json:"tokens_per_second"`
	SpeedUp   float64          `json:"speed_up"`
	Accepted  float64          `json:"mean_accepted_tokens"` // a step, with the token that the model draws itself
	Rows      float64          `json:"rows_per_token"`
	Drafting  float64          `json:"drafting_share"` // of the time
	Bound     float64          `json:"hindsight_bound"`
	Different int              `json:"different_answers"`
	First     string           `json:"first_difference,omitempty"`
	Replay    bool             `json:"replay,omitempty"`
	Passes    float64          `json:"drafting_passes_per_step"`
	Rounds    grove.DraftBytes `json:"round_bytes"` // what the rounds of a text take at most

	// Predicted is the speed-up at the cost of other models, by their names: that of the best number of drafts in hindsight, if as many of
	// them are accepted there.
	Predicted map[string]float64 `json:"predicted_speed_up,omitempty"`

	// Error is the share of the tokens that plain decoding would not have drawn behind the same text: of a lossy rule, at
	// temperature 0.
	Error float64 `json:"share_of_other_tokens,omitempty"`
}

// Overall is the category of all tasks together.
const Overall = "overall"

// tally is the sum of the runs of one method in one category.
type tally struct {
	tasks, tokens, different int
	first                    string
	seconds, plain           float64
	depth                    int // sum over tasks
	spec                     engine.SpecStats
	last                     grove.Stats // of a task
	others, judged           int         // tokens that plain decoding would not have drawn behind the same text; of how many
}

// board is the tallies of methods by category.
type board struct {
	methods, categories []string
	tallies             map[[2]string]*tally // by method and category
	leftOut             func(method string, err error)
}

func newBoard(methods []string, prompts []Prompt, leftOut func(method string, err error)) *board {
	b := &board{slices.Clone(methods), append(Categories(prompts), Overall), map[[2]string]*tally{}, leftOut}
	for _, name := range methods {
		for _, c := range b.categories {
			b.tallies[[2]string{name, c}] = &tally{}
		}
	}
	return b
}

// task runs a task by each method, and adds it to the tallies of its category and of all. A method whose needs are not met is left out.
func (b *board) task(p Prompt, run func(method string) (add func(*tally), err error)) error {
	for _, name := range slices.Clone(b.methods) {
		add, err := run(name)
		if b.leftOut != nil && errors.Is(err, method.ErrNeeds) {
			b.leftOut(name, err)
			b.methods = slices.DeleteFunc(b.methods, func(other string) bool { return other == name })
			continue
		}
		if err != nil {
			return fmt.Errorf("bench: task %s, method %s: %w", p.ID, name, err)
		}
		for _, c := range []string{p.Category, Overall} {
			add(b.tallies[[2]string{name, c}])
		}
	}
	return nil
}

func (b *board) figures(cost *grove.Cost) (figures []MethodFigures) {
	for _, name := range b.methods {
		for _, c := range b.categories {
			figures = append(figures, b.tallies[[2]string{name, c}].figures(name, c, cost))
		}
	}
	return figures
}

// CompareMethods answers every task by plain decoding and by each method in turns, and returns the figures of every
// method by category and overall.
func CompareMethods(ctx context.Context, m *grove.Model, prompts []Prompt, o MethodsOptions, progress Progress) ([]MethodFigures, error) {
	b := newBoard(o.Methods, prompts, o.LeftOut)
	for i, p := range prompts {
		plain, err := answerTask(ctx, m, p, o, grove.MethodOff)
		if err != nil {
			return nil, fmt.Errorf("bench: task %s: %w", p.ID, err)
		}
		err = b.task(p, func(name string) (func(*tally), error) {
			got, err := answerTask(ctx, m, p, o, name)
			if err == nil && o.Sampling.Temperature == 0 {
				if grade, _ := method.GradeOf(name, o.Accept); grade == grove.Lossy {
					got.others, err = others(ctx, m, p.Prompt, got.ids)
				}
			}
			return func(t *tally) { t.add(p, plain, got) }, err
		})
		if err != nil {
			return nil, err
		}
		progress.show(i+1, len(prompts))
	}
	figures := b.figures(m.Cost())
	for i := range figures {
		if f := &figures[i]; len(o.At) > 0 && predictable(f.Method) {
			f.Predicted = PredictAt(o.At, b.tallies[[2]string{f.Method, f.Category}].spec)
		}
	}
	return figures, nil
}

// predictable reports whether the passes of a list of methods are those of the target and of modules: the cost of a draft model is not known elsewhere.
func predictable(list string) bool {
	infos, auto, err := method.Parse(list)
	return err == nil && !auto && !slices.ContainsFunc(infos, func(i method.Info) bool { return i.Kind == method.KindModel })
}

// result is an answer and its statistics.
type result struct {
	ids      []token.ID
	logprobs []float32
	stats    grove.Stats
	others   int // tokens that plain decoding would not have drawn behind the same text
}

// others counts the tokens of an answer that greedy decoding would not have drawn behind the prompt and the tokens before.
func others(ctx context.Context, m *grove.Model, prompt string, answer []token.ID) (n int, err error) {
	ids, err := m.Tokenize(prompt, true, false)
	if err != nil {
		return 0, err
	}
	first, at := len(ids), 0
	err = m.Logits(ctx, append(ids, answer...), func(row []float32) error {
		at++
		if i := at - first; i >= 0 && i < len(answer) && row[answer[i]] < slices.Max(row) {
			n++
		}
		return nil
	})
	return n, err
}

// accepted returns the rule for a method; plain decoding has none.
func accepted(method, rule string) string {
	if method == grove.MethodOff {
		return ""
	}
	return rule
}

func answerTask(ctx context.Context, m *grove.Model, p Prompt, o MethodsOptions, method string) (result, error) {
	tokens := o.Tokens
	if p.MaxTokens > 0 {
		tokens = p.MaxTokens
	}
	g, err := m.Generate(ctx, grove.Request{
		Prompt: p.Prompt, MaxTokens: tokens, Sampling: o.Sampling, Seed: &o.Seed, Method: method, Prediction: p.Prediction,
		Accept: accepted(method, o.Accept),
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

// difference describes the first difference of two answers; "": they are equal.
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
	t.tasks, t.last = t.tasks+1, got.stats
	t.tokens += max(0, got.stats.Tokens-1) // the step of the prompt gives the first
	t.plain += plain.stats.GenerationTime.Seconds()
	t.seconds += got.stats.GenerationTime.Seconds()
	t.depth += got.stats.PromptTokens + got.stats.Tokens/2
	t.spec.Add(got.stats.Drafting)
	t.others, t.judged = t.others+got.others, t.judged+len(got.ids)
	if d := difference(plain, got); d != "" {
		t.different++
		if t.first == "" {
			t.first = fmt.Sprintf("task %s: %s", p.ID, d)
		}
	}
}

func (t *tally) figures(name, category string, c *grove.Cost) MethodFigures {
	f := MethodFigures{
		Method: name, Category: category, Tasks: t.tasks, Tokens: t.tokens, Different: t.different, First: t.first, Rounds: t.last.RoundBytes,
		Error: stat.Ratio(float64(t.others), float64(t.judged)),
		Plain: stat.Ratio(float64(t.tokens), t.plain), Rate: stat.Ratio(float64(t.tokens), t.seconds), SpeedUp: stat.Ratio(t.plain, t.seconds),
	}
	f.speculation(t.spec, c, t.depth/max(1, t.tasks))
	return f
}

// speculation fills in the figures of drafting.
func (f *MethodFigures) speculation(s engine.SpecStats, c *grove.Cost, depth int) {
	f.Accepted = stat.Ratio(float64(s.Tokens), float64(s.Rounds))
	f.Rows = stat.Ratio(float64(s.Rounds+s.Drafted), float64(s.Tokens))
	f.Drafting = stat.Ratio(s.Drafting.Seconds(), (s.Drafting + s.Stepping).Seconds())
	f.Passes = stat.Ratio(float64(s.Ran.Passes), float64(s.Rounds))
	f.Bound = Hindsight(s, c, depth, s.Drafting.Seconds()/float64(max(1, s.Rounds)))
}

// WriteMethods writes figures as a table.
func WriteMethods(w io.Writer, figures []MethodFigures) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	shapes := shapesOf(figures)
	fmt.Fprint(tw, "method\tcategory\ttasks\ttokens\tplain t/s\tt/s\tspeed-up\taccepted\trows/token\tpasses\tdrafting\tbound\t")
	for _, name := range shapes {
		fmt.Fprintf(tw, "at %s\t", name)
	}
	fmt.Fprintln(tw, "equal\t")
	for _, f := range figures {
		equal := "yes"
		switch {
		case f.Replay:
			equal = "replay"
		case f.Error > 0:
			equal = fmt.Sprintf("%d differ, %.2f%% of tokens", f.Different, 100*f.Error)
		case f.Different > 0:
			equal = fmt.Sprintf("%d differ", f.Different)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f%%\t%.2f\t", f.Method, f.Category, f.Tasks, f.Tokens,
			f.Plain, f.Rate, f.SpeedUp, f.Accepted, f.Rows, f.Passes, 100*f.Drafting, f.Bound)
		for _, name := range shapes {
			if x, ok := f.Predicted[name]; ok {
				fmt.Fprintf(tw, "%.2f\t", x)
			} else {
				fmt.Fprint(tw, "-\t")
			}
		}
		fmt.Fprintf(tw, "%s\t\n", equal)
	}
	return tw.Flush()
}

// shapesOf returns the names of the models at whose cost figures are predicted, sorted.
func shapesOf(figures []MethodFigures) []string {
	names := map[string]bool{}
	for _, f := range figures {
		for name := range f.Predicted {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
