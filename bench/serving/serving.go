// Package serving measures servers of language models under load: how many requests and tokens they answer a
// second, and how long a user waits for them. Any server that speaks OpenAI's API will do; nothing here knows
// grove's engine.
package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// API is what a server is asked for.
type API string

// The routes that can be measured.
const (
	Completions API = "completions"
	Chat        API = "chat"
)

// Task is what a request asks for.
type Task struct {
	Prompt     string
	Prediction string // what the answer is expected to contain; sent by Chat alone, which has a field for it
	MaxTokens  int
}

// Options says how a server is loaded.
type Options struct {
	URL         string // with or without /v1 at its end
	APIKey      string // "": none
	Model       string // "": the first that the server lists
	API         API
	Tasks       []Task // requests take them in turn
	Requests    int
	Concurrency int           // requests at a time; 0: no bound, which needs a Rate
	Rate        float64       // requests that begin a second, a Poisson process; 0: one begins when another has ended
	Seed        uint64        // of the times of a Poisson process, and of the server's draws
	Temperature float64       // of the server's draws
	IgnoreEOS   bool          // ask for answers of their full length; a field that not every server knows
	ExtraBody   string        // a JSON object whose fields are added to every request, in place of those it has; "": none
	Timeout     time.Duration // of a request
	Warmup      int           // requests that go ahead and do not count

	Transport http.RoundTripper // nil: one of its own
}

// The limits of Options, which keep what a run collects within memory.
const (
	maxRequests = 1 << 20
	maxTokens   = 1 << 20
)

// Validate returns what makes no sense in the options.
func (o Options) Validate() error {
	extra := map[string]json.RawMessage{}
	if o.ExtraBody != "" {
		if err := json.Unmarshal([]byte(o.ExtraBody), &extra); err != nil || extra == nil {
			return fmt.Errorf("serving: extra body %.40q is no JSON object", o.ExtraBody)
		}
	}
	switch {
	case o.API != Completions && o.API != Chat:
		return fmt.Errorf("serving: api %q is not known; %s and %s are", o.API, Chat, Completions)
	case len(o.Tasks) == 0:
		return errors.New("serving: no task")
	case o.Requests < 1 || o.Requests > maxRequests:
		return fmt.Errorf("serving: %d requests; from 1 to %d can be sent", o.Requests, maxRequests)
	case o.Warmup < 0 || o.Warmup > maxRequests:
		return fmt.Errorf("serving: %d requests ahead; from 0 to %d can be sent", o.Warmup, maxRequests)
	case !(o.Rate >= 0) || math.IsInf(o.Rate, 0):
		return fmt.Errorf("serving: a rate of %v requests a second", o.Rate)
	case o.Concurrency < 0, o.Concurrency == 0 && o.Rate == 0:
		return fmt.Errorf("serving: %d requests at a time", o.Concurrency)
	case !(o.Temperature >= 0) || math.IsInf(o.Temperature, 0):
		return fmt.Errorf("serving: a temperature of %v", o.Temperature)
	case o.Timeout <= 0:
		return fmt.Errorf("serving: a timeout of %v", o.Timeout)
	}
	for i, t := range o.Tasks {
		if t.MaxTokens < 1 || t.MaxTokens > maxTokens {
			return fmt.Errorf("serving: task %d asks for %d tokens; from 1 to %d can be asked for", i, t.MaxTokens, maxTokens)
		}
	}
	_, err := baseURL(o.URL)
	return err
}

// Run sends requests and returns what came of them. When ctx ends, what has been measured until then is returned
// besides its error. progress, unless nil, is told of the requests that have ended and of all.
func Run(ctx context.Context, o Options, progress func(done, all int)) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Concurrency == 0 || o.Concurrency > o.Requests {
		o.Concurrency = o.Requests
	}
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if c.model == "" {
		if c.model, err = c.firstModel(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.warm(ctx); err != nil {
		return nil, err
	}
	before, counts := c.counters(ctx)
	t := tally{failures: map[string]*Failure{}}
	start := time.Now()
	answers := make(chan answer)
	go c.load(ctx, answers)
	for a := range answers {
		t.add(a)
		if progress != nil && !a.stopped {
			progress(t.ended, o.Requests)
		}
	}
	if after, ok := c.counters(ctx); ok && counts && !t.reported {
		t.drafted, t.accepted = max(0, after.drafted-before.drafted), max(0, after.accepted-before.accepted)
	}
	return t.report(c, start), ctx.Err()
}

// warm sends the requests ahead: the first alone, so that a server that cannot answer is known at once, then the
// others as the load does. They take the tasks behind those of the load.
func (c *client) warm(ctx context.Context) error {
	if c.options.Warmup == 0 {
		return nil
	}
	first := c.ask(ctx, c.options.Requests)
	if first.failure != nil && first.failure.refuses("stream_options") {
		c.noUsage = true
		first = c.ask(ctx, c.options.Requests)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case first.failure != nil:
		return fmt.Errorf("serving: the first request failed: %w", first.failure)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, c.options.Concurrency)
	for i := 1; i < c.options.Warmup; i++ {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		wg.Go(func() {
			c.ask(ctx, c.options.Requests+i)
			<-slots
		})
	}
	return nil
}

// load sends every request when it is due and a place is free, and then closes answers.
func (c *client) load(ctx context.Context, answers chan<- answer) {
	defer close(answers)
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, c.options.Concurrency)
	gaps := rand.New(rand.NewPCG(c.options.Seed, 0))
	due := time.Now()
	for i := range c.options.Requests {
		if c.options.Rate > 0 && i > 0 {
			due = due.Add(time.Duration(min(gaps.ExpFloat64()/c.options.Rate, math.MaxInt32) * float64(time.Second)))
			if !sleepUntil(ctx, due) {
				return
			}
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		late := time.Since(due)
		wg.Go(func() {
			a := c.ask(ctx, i)
			a.late = late
			<-slots
			answers <- a
		})
	}
}

// sleepUntil waits for a time, and returns whether it came before the end of ctx.
func sleepUntil(ctx context.Context, due time.Time) bool {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
