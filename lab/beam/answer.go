package beam

import (
	"context"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"grove/server/batch"
)

func init() {
	register.DoFn4x1[context.Context, Line, func(string), func(string), error](new(answerFn))
}

// Answer answers lines of requests ([Line]), of which there must be an end, by a model. Its outputs are texts: the lines of answers, and of those that have none, in the form of grove batch (docs/batch.md).
// Both are in the global window. Errors: settings of the model that are out of their range.
func Answer(s beam.Scope, m Model, lines beam.PCollection) (answers, failures beam.PCollection, err error) {
	if m, err = m.complete(); err != nil {
		return answers, failures, err
	}
	s = s.Scope("grove.Answer")
	requests, refused := choose(s, beam.WindowInto(s, window.NewGlobalWindows(), lines))
	answers, unanswered := beam.ParDo2(s, &answerFn{Model: m}, requests)
	return answers, beam.Flatten(s, refused, unanswered), nil
}

// answerFn answers requests, many of a bundle at a time. The SDK calls an instance by one goroutine at a time.
type answerFn struct {
	Model Model

	opened *opened
	bundle *bundle // nil: none is under way
}

// Setup opens the model, unless this process has it.
func (f *answerFn) Setup(ctx context.Context) (err error) {
	f.opened, err = f.Model.use(ctx)
	return err
}

// StartBundle begins a bundle. One that the runner left before its end is given up.
func (f *answerFn) StartBundle(ctx context.Context, _, _ func(string)) {
	f.Teardown()
	f.bundle = newBundle(ctx, f.opened)
}

// ProcessElement begins to answer a request, and emits what is answered of those before it.
func (f *answerFn) ProcessElement(ctx context.Context, l Line, answers, failures func(string)) error {
	return f.guard(func(b *bundle) error {
		q, bad := batch.Parse(l.Number, l.Text)
		if bad != nil {
			return write(ctx, q.Refuse(bad), answers, failures)
		}
		requests.Inc(ctx, 1)
		for b.full() {
			if err := b.emit(ctx, answers, failures); err != nil {
				return err
			}
		}
		if err := b.begin(q); err != nil {
			return err
		}
		for b.ready() {
			if err := b.emit(ctx, answers, failures); err != nil {
				return err
			}
		}
		return nil
	})
}

// FinishBundle waits for the requests of the bundle.
func (f *answerFn) FinishBundle(ctx context.Context, answers, failures func(string)) error {
	defer f.Teardown()
	return f.guard(func(b *bundle) error {
		for b.left > 0 {
			if err := b.emit(ctx, answers, failures); err != nil {
				return err
			}
		}
		return nil
	})
}

// guard gives up a bundle that fails by an error or a panic: the runner tries it again, by this instance or another.
func (f *answerFn) guard(do func(b *bundle) error) error {
	failing := true
	defer func() {
		if failing {
			f.Teardown()
		}
	}()
	err := do(f.bundle)
	failing = err != nil
	return err
}

// Teardown gives up the requests that are under way.
func (f *answerFn) Teardown() {
	if f.bundle != nil {
		f.bundle.cancel()
		f.bundle = nil
	}
}

// bundle is the requests of a bundle that are under way. One goroutine uses it.
type bundle struct {
	ctx    context.Context
	cancel context.CancelFunc
	model  *opened
	left   int          // requests that are not emitted
	done   chan outcome // as long as requests may be left, so that no answer waits for a bundle that was given up
}

// outcome is the end of a request.
type outcome struct {
	result *batch.Result
	took   time.Duration
	err    error
}

func newBundle(ctx context.Context, m *opened) *bundle {
	b := &bundle{model: m, done: make(chan outcome, cap(m.flight))}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b
}

// full reports whether one request must be emitted before the next begins.
func (b *bundle) full() bool { return b.left == cap(b.done) }

// ready reports whether a request can be emitted without a wait.
func (b *bundle) ready() bool { return len(b.done) > 0 }

// begin begins to answer a request when the process has room for it. Errors: the context's.
func (b *bundle) begin(q *batch.Request) error {
	began := time.Now()
	select {
	case b.model.flight <- struct{}{}:
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
	b.left++
	go func() {
		defer func() { <-b.model.flight }()
		r, err := batch.Answer(b.ctx, b.model, q)
		b.done <- outcome{r, time.Since(began), err}
	}()
	return nil
}

// emit waits for a request and emits its result.
func (b *bundle) emit(ctx context.Context, answers, failures func(string)) error {
	o := <-b.done
	b.left--
	if o.err != nil {
		return o.err
	}
	timed(ctx, o.took)
	return write(ctx, o.result, answers, failures)
}
