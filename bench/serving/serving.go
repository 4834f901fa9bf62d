// Package serving measures a server of language models under load: requests and tokens per second, and latencies. It works
// with any server that has OpenAI's API, and knows nothing of the engine.
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

// API is a route that is measured.
type API string

// The routes.
const (
	Completions API = "completions"
	Chat        API = "chat"
)

// Task is the content of a request.
type Task struct {
	Prompt     string
	Prediction string // text that the answer is likely to contain; only Chat has a field for it
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
	Concurrency int           // requests at a time; 0: no limit, which needs a Rate
	Rate        float64       // requests that begin in a second, a Poisson process; 0: a request begins when another ends
	Seed        uint64        // of the times of a Poisson process, and of the server's draws
	Temperature float64       // of the server's draws
	IgnoreEOS   bool          // ask for answers of their full length; not every server supports it
	ExtraBody   string        // JSON object whose fields are added to every request or replace its fields; "": none
	Timeout     time.Duration // of a request
	Warmup      int           // requests before the measurement

	Transport http.RoundTripper // nil: one of its own
}

// The limits of Options, which bound the memory of a run.
const (
	maxRequests = 1 << 20
	maxTokens   = 1 << 20
)

// Validate returns an error that names the option that is out of range.
func (o Options) Validate() error {
	extra := map[string]json.RawMessage{}
	if o.ExtraBody != "" {
		if err := json.Unmarshal([]byte(o.ExtraBody), &extra); err != nil || extra == nil {
			return fmt.Errorf("serving: extra body %.40q is not a JSON object", o.ExtraBody)
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
		return fmt.Errorf("serving: %d requests of warm-up; from 0 to %d can be sent", o.Warmup, maxRequests)
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

// Run sends the requests and returns the figures. When ctx ends, it returns the figures until then and the error of ctx.
// progress, where it is not nil, gets the number of requests that have ended and of all requests.
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

// warm sends the requests of the warm-up: the first alone, which shows at once whether the server can answer, then the
// others as load does. They take the tasks that follow those of the load.
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

// load sends each request when it is due and fewer than Concurrency are under way. At the end it closes answers.
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
