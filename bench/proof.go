package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"grove"
	"grove/internal/stat"
	"grove/internal/text/token"
	"grove/method"
)

// Check is one test of a method against its grade.
type Check struct {
	Method string       `json:"method"`
	Grade  method.Grade `json:"grade"`
	Test   string       `json:"test"`
	OK     bool         `json:"ok"`
	Detail string       `json:"detail,omitempty"` // the first difference, or the tested figure
}

// ProofOptions says how methods are tested.
type ProofOptions struct {
	Methods []string // names of methods

	// LeftOut, where it is not nil, gets the methods whose needs the models do not meet. They are left out.
	LeftOut func(method string, err error)

	Prompts []Prompt
	Tokens  int // of an answer
	Draws   int // answers of the tests of a distribution
}

// proof tests methods on one model that is open twice: with prefill steps of usual size, and with small ones.
type proof struct {
	ctx    context.Context
	whole  *grove.Model
	chunks *grove.Model
	o      ProofOptions
	report func(Check)
}

// Prove tests each method against its grade and reports every test: for exact methods, tokens and log-probabilities
// equal to plain decoding's, greedy and sampled, alone and beside other texts, with small prefill steps and whole
// ones; for same-distribution methods, equality at temperature 0, and above it the distribution of what they draw by a
// chi-square test against plain decoding; for lossy ones, equality at temperature 0. ok reports whether all passed.
func Prove(ctx context.Context, open func(grove.Options) (*grove.Model, error), o ProofOptions, report func(Check)) (ok bool, err error) {
	p := &proof{ctx: ctx, o: o}
	ok = true
	p.report = func(c Check) {
		ok = ok && c.OK
		report(c)
	}
	if p.whole, err = open(grove.Options{Parallel: beside + 1, Eager: true, Forget: true}); err != nil {
		return false, err
	}
	defer p.whole.Close()
	if p.chunks, err = open(grove.Options{Parallel: 1, Chunk: smallChunk, Eager: true, Forget: true}); err != nil {
		return false, err
	}
	defer p.chunks.Close()
	for _, name := range o.Methods {
		err := p.method(name)
		if o.LeftOut != nil && errors.Is(err, method.ErrNeeds) {
			o.LeftOut(name, err)
			continue
		}
		if err != nil {
			return false, fmt.Errorf("bench: method %s: %w", name, err)
		}
	}
	return ok, nil
}

const (
	beside     = 2 // other texts in the same steps
	smallChunk = 7 // rows of a small prefill step
)

// samplings are the sampling settings for which exactness is tested.
var samplings = []struct {
	name string
	p    grove.Sampling
}{
	{"greedy", grove.Sampling{}},
	{"temperature 1", grove.Sampling{Temperature: 1}},
	{"temperature 0.7, top-k 40, top-p 0.95", grove.Sampling{Temperature: 0.7, TopK: 40, TopP: 0.95}},
}

func (p *proof) method(name string) error {
	grade := grove.MethodGrade(name)
	for _, s := range samplings {
		if s.p.Temperature > 0 && grade != method.Exact {
			continue
		}
		for _, way := range []struct {
			name string
			run  func(method string, s grove.Sampling) ([]result, error)
		}{
			{"alone", func(m string, s grove.Sampling) ([]result, error) { return p.alone(p.whole, m, s) }},
			{"beside others", p.batched},
			{"small prefill steps", func(m string, s grove.Sampling) ([]result, error) { return p.alone(p.chunks, m, s) }},
		} {
			want, err := p.alone(p.whole, grove.MethodOff, s.p)
			if err != nil {
				return err
			}
			got, err := way.run(name, s.p)
			if err != nil {
				return err
			}
			p.report(p.compare(Check{Method: name, Grade: grade, Test: s.name + ", " + way.name}, want, got))
		}
	}
	if grade == method.SameDistribution {
		return p.distribution(name)
	}
	return nil
}

// compare fills in a check of equality.
func (p *proof) compare(c Check, want, got []result) Check {
	c.OK = true
	tokens, drafted, accepted := 0, 0, 0
	for i := range want {
		tokens += len(want[i].ids)
		drafted, accepted = drafted+got[i].stats.Drafting.Drafted, accepted+got[i].stats.Drafting.Accepted
		if d := difference(want[i], got[i]); d != "" && c.OK {
			c.OK, c.Detail = false, fmt.Sprintf("prompt %s: %s", p.o.Prompts[i].ID, d)
		}
	}
	if c.OK {
		c.Detail = fmt.Sprintf("%d tokens equal, %d of %d draft tokens accepted", tokens, accepted, drafted)
	}
	return c
}

func (p *proof) alone(m *grove.Model, method string, s grove.Sampling) ([]result, error) {
	all := make([]result, len(p.o.Prompts))
	for i := range all {
		var err error
		if all[i], err = p.answer(m, i, method, s, uint64(i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// batched answers several prompts at the same time by the same method.
func (p *proof) batched(method string, s grove.Sampling) ([]result, error) {
	all, errs := make([]result, len(p.o.Prompts)), make([]error, len(p.o.Prompts))
	turn := make(chan struct{}, beside+1)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			all[i], errs[i] = p.answer(p.whole, i, method, s, uint64(i))
		})
	}
	group.Wait()
	return all, errors.Join(errs...)
}

func (p *proof) answer(m *grove.Model, prompt int, method string, s grove.Sampling, seed uint64) (result, error) {
	return answerTask(p.ctx, m, p.o.Prompts[prompt], MethodsOptions{Tokens: p.o.Tokens, Sampling: s, Seed: seed}, method)
}

// shortAnswer is the number of tokens of an answer that is compared. No method drafts the first.
const shortAnswer = 4

// distribution draws many short answers by plain decoding and by the method, with different seeds, and compares the counts
// of each pair of neighbouring tokens.
func (p *proof) distribution(name string) error {
	s := grove.Sampling{Temperature: 0.8, TopK: 8}
	counts := [2]map[[2]token.ID]float64{{}, {}}
	for draw := range p.o.Draws {
		for side, m := range []string{grove.MethodOff, name} {
			prompt := p.o.Prompts[0]
			prompt.MaxTokens = shortAnswer
			r, err := answerTask(p.ctx, p.whole, prompt, MethodsOptions{Sampling: s, Seed: uint64(2*draw + side)}, m)
			if err != nil {
				return err
			}
			for i := 1; i < len(r.ids); i++ {
				counts[side][[2]token.ID{r.ids[i-1], r.ids[i]}]++
			}
		}
	}
	chi, freedom := stat.Homogeneity(counts[0], counts[1])
	limit := stat.ChiSquareLimit(freedom)
	p.report(Check{
		Method: name, Grade: method.SameDistribution, Test: fmt.Sprintf("distribution of %d answers", p.o.Draws), OK: chi <= limit,
		Detail: fmt.Sprintf("chi-square %.1f with %d degrees of freedom, limit %.1f", chi, freedom, limit),
	})
	return nil
}
