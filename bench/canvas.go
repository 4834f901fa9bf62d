// canvas.go compares how policies and caches fill the canvas of a model of masked diffusion: what they cost, and what their texts are worth.

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"grove"
	"grove/internal/stat"
	"grove/internal/text/token"
)

// CanvasTask is a prompt, and what makes an answer right.
type CanvasTask struct {
	ID, Prompt string
	// Right reports whether an answer is right, of a task that has right answers; nil: the answer is code, of which go/parser takes a part or not.
	Right func(answer string) bool
}

// CanvasOptions says what is compared.
type CanvasOptions struct {
	Policies, Caches []string // as [grove.Diffusion] has them
	Block, Steps     int      // of all but the base
	Tokens           int      // of an answer
	Sampling         grove.Sampling
	Seed             uint64
}

// base is what all are compared with: a token a pass, by passes of all rows.
var base = grove.Diffusion{Policy: "static", Cache: "none"}

// CanvasFigures holds the figures of a policy with a cache over all tasks. Means are of tokens or of tasks.
type CanvasFigures struct {
	Policy  string  `json:"policy"`
	Cache   string  `json:"cache"`
	Refused string  `json:"refused,omitempty"` // why they do not go together; the rest is 0 then
	Tasks   int     `json:"tasks"`
	Tokens  int     `json:"tokens"`
	Passes  float64 `json:"passes_per_token"`
	Rows    float64 `json:"rows_per_token"`
	Rate    float64 `json:"tokens_per_second"`
	Ratio   float64 `json:"speed_up"` // the rate by that of the base
	Loss    float64 `json:"judge_nats_per_token"`
	Right   float64 `json:"right"`         // share of answers that go/parser takes, or that are right
	Order   float64 `json:"commit_order"`  // Kendall's correlation of place and pass: 1 is from left to right
	Bound   float64 `json:"least_passes"`  // of a task, by the rule of the policy; 0: it has none
	Nats    float64 `json:"nats_per_pass"` // information that a pass fixes, by the model itself
}

// CanvasReport is a comparison.
type CanvasReport struct {
	Model   string          `json:"model"`
	Judge   string          `json:"judge"`
	Lists   bool            `json:"lists"` // the tasks are lists
	Figures []CanvasFigures `json:"figures"`
}

// run is a policy with a cache on its way.
type run struct {
	d       grove.Diffusion
	refused error
	canvasTally
}

// canvasTally is sums over tasks.
type canvasTally struct {
	tasks, tokens, passes, rows, right, bound int
	judged                                    int // tokens of the judge
	seconds, loss, order, nats                float64
}

// CanvasFitting returns the tasks whose prompt and answer fit the context of a model.
func CanvasFitting(m *grove.Model, tasks []CanvasTask, tokens int) (kept []CanvasTask, err error) {
	for _, task := range tasks {
		ids, err := m.Tokenize(task.Prompt, true, false)
		if err != nil {
			return nil, fmt.Errorf("bench: task %s: %w", task.ID, err)
		}
		if len(ids)+tokens <= m.Info().Context {
			kept = append(kept, task)
		}
	}
	return kept, nil
}

// CanvasCompare answers each task by the base and by every policy with every cache in turns, and has the judge read the answers. Settings that do not go together are refused by name in
// the figures. Errors: a model of no masked diffusion, those of generations, and those of the judge.
func CanvasCompare(ctx context.Context, m, judge *grove.Model, tasks []CanvasTask, o CanvasOptions, show func(done, all int)) (*CanvasReport, error) {
	if len(tasks) == 0 {
		return nil, errors.New("bench: there are no tasks")
	}
	runs := []*run{{d: grove.Diffusion{Policy: base.Policy, Cache: base.Cache, Block: o.Block}}}
	for _, policy := range o.Policies {
		for _, cache := range o.Caches {
			if d := (grove.Diffusion{Policy: policy, Cache: cache, Block: o.Block, Steps: o.Steps}); d != runs[0].d {
				runs = append(runs, &run{d: d})
			}
		}
	}
	for i, task := range tasks {
		losses := map[string]loss{}
		for turn := range runs {
			r := runs[(turn+i)%len(runs)] // each comes first and last as often
			if r.refused != nil {
				continue
			}
			answer, err := r.answer(ctx, m, task, o)
			if refused := new(grove.OptionError); errors.As(err, &refused) && r != runs[0] {
				r.refused = err
				continue
			} else if err != nil {
				return nil, fmt.Errorf("bench: task %s, %s with cache %s: %w", task.ID, r.d.Policy, r.d.Cache, err)
			}
			read, known := losses[answer]
			if !known {
				if read, err = lossOf(ctx, judge, task.Prompt, answer); err != nil {
					return nil, fmt.Errorf("bench: task %s, the judge: %w", task.ID, err)
				}
				losses[answer] = read
			}
			r.loss, r.judged = r.loss+read.nats, r.judged+read.tokens
		}
		show(i+1, len(tasks))
	}
	report := &CanvasReport{Model: m.Info().Name, Judge: judge.Info().Name, Lists: tasks[0].Right != nil}
	for _, r := range runs {
		report.Figures = append(report.Figures, r.figures(&runs[0].canvasTally))
	}
	return report, nil
}

// answer answers a task, and adds what it took.
func (r *run) answer(ctx context.Context, m *grove.Model, task CanvasTask, o CanvasOptions) (string, error) {
	start := time.Now()
	g, err := m.Generate(ctx, grove.Request{Prompt: task.Prompt, MaxTokens: o.Tokens, Sampling: o.Sampling, Seed: &o.Seed, Diffusion: &r.d})
	if err != nil {
		return "", err
	}
	answer, err := g.Text()
	if err != nil {
		return "", err
	}
	s := g.Stats()
	r.tasks, r.tokens, r.passes, r.rows, r.bound = r.tasks+1, r.tokens+s.Tokens, r.passes+s.Passes, r.rows+s.Rows, r.bound+s.Bound
	r.seconds += time.Since(start).Seconds()
	r.nats += s.Information
	r.order += kendall(s.Fixed)
	right := task.Right
	if right == nil {
		right = func(answer string) bool { return parses(task.Prompt, answer) }
	}
	if right(answer) {
		r.right++
	}
	return answer, nil
}

func (r *run) figures(base *canvasTally) CanvasFigures {
	f := CanvasFigures{Policy: r.d.Policy, Cache: cmp.Or(r.d.Cache, "none")}
	if r.refused != nil {
		f.Refused = strings.TrimPrefix(r.refused.Error(), "grove: ")
		return f
	}
	per := func(sum float64, n int) float64 { return stat.Ratio(sum, float64(n)) }
	f.Tasks, f.Tokens = r.tasks, r.tokens
	f.Passes, f.Rows = per(float64(r.passes), r.tokens), per(float64(r.rows), r.tokens)
	f.Rate = stat.Ratio(float64(r.tokens), r.seconds)
	f.Ratio = stat.Ratio(f.Rate, stat.Ratio(float64(base.tokens), base.seconds))
	f.Loss, f.Right, f.Order = per(r.loss, r.judged), per(float64(r.right), r.tasks), per(r.order, r.tasks)
	f.Bound, f.Nats = per(float64(r.bound), r.tasks), per(r.nats, r.passes)
	return f
}

// loss is what a judge says of an answer.
type loss struct {
	nats   float64 // sum over the answer's tokens
	tokens int
}

// lossOf returns the negative log-probability of an answer behind a prompt under a model of the next token, which reads the end of the prompt where the whole does not fit.
func lossOf(ctx context.Context, judge *grove.Model, prompt, answer string) (l loss, err error) {
	before, err := judge.Tokenize(prompt, true, false)
	if err != nil {
		return l, err
	}
	behind, err := judge.Tokenize(answer, false, false)
	if err != nil {
		return l, err
	}
	room := judge.Info().Context
	behind = behind[:min(len(behind), room/2)]
	before = before[max(0, len(before)+len(behind)-room):]
	if len(before) == 0 || len(behind) == 0 {
		return l, nil
	}
	ids, at := append(append([]token.ID(nil), before...), behind...), 0
	err = judge.Logprobs(ctx, ids, func(row grove.LogprobRow) error {
		if at++; at >= len(before) && at < len(ids) {
			l.nats -= float64(row.Of(ids[at]))
			l.tokens++
		}
		return nil
	})
	return l, err
}
