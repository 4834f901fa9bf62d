// Package batch answers a file of requests, one JSON object a line in the format of OpenAI's batches, by an HTTP handler in the same process. A batch that was
// killed goes on: each line is answered exactly once. An answer depends on its line and on the model alone.
package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options name the files of a batch.
type Options struct {
	In     string // the requests, a regular file
	Out    string // the answers, in the order in which they come; beside it lie OUT.state and OUT.lock
	Errors string // lines without an answer; "": beside Out, NAME.errors.jsonl
	Flight int    // requests under way at a time, from 1 to 4096
	URL    string // that all lines must have; "": any
	Most   int64  // bytes of answers and errors together, which requests under way may pass; 0: any number

	// Progress, where it is not nil, is told how many lines are done, of all. One goroutine at a time calls it. It must not wait.
	Progress func(done, all int)
}

// The files beside an output.
const (
	stateSuffix = ".state"
	lockSuffix  = ".lock"
)

// Report says what became of the lines.
type Report struct {
	Lines    int            `json:"lines"`
	Answered int            `json:"answered"`
	Failed   int            `json:"failed"`
	Before   int            `json:"before"`   // of both, by runs before this one
	Failures map[string]int `json:"failures"` // by code
	Seconds  float64        `json:"seconds"`  // of this run
}

// Codes returns the codes of the failures, the most frequent first.
func (r *Report) Codes() []string {
	return slices.SortedFunc(maps.Keys(r.Failures), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Failures[b], r.Failures[a]), cmp.Compare(a, b))
	})
}

// ErrFull reports that answers and errors have more bytes than the options allow.
var ErrFull = errors.New("batch: answers and errors have as many bytes as they may have")

// Batch is an open batch, with a lock on its output. It is for one goroutine, but for [Batch.Report].
type Batch struct {
	o      Options
	in     *input
	out    *output
	errs   *output
	state  *state // nil: the output begins
	unlock func() error

	mu     sync.Mutex // of what follows
	done   []bool     // by line
	n      int        // of these
	report Report
}

// Open reads the places of the requests, locks the output, and finds which lines are done. The caller closes the batch. Errors: a file that cannot be used or is no
// regular one; another batch with the output; an output of other requests, of another version, or that no batch wrote.
func Open(o Options) (b *Batch, err error) {
	if o.Flight < 1 || o.Flight > MaxFlight {
		return nil, fmt.Errorf("batch: %d requests at a time; there must be from 1 to %d", o.Flight, MaxFlight)
	}
	o.Errors = cmp.Or(o.Errors, strings.TrimSuffix(o.Out, ".jsonl")+".errors.jsonl")
	if err := distinct(o.In, o.Out, o.Errors); err != nil {
		return nil, err
	}
	b = &Batch{o: o, report: Report{Failures: map[string]int{}}}
	if b.in, err = openInput(o.In); err != nil {
		return nil, err
	}
	if b.unlock, err = lock(o.Out + lockSuffix); err != nil {
		return nil, errors.Join(err, b.in.file.Close())
	}
	if err := b.recover(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// distinct refuses two names of one file.
func distinct(paths ...string) error {
	for i, a := range paths {
		for _, b := range paths[:i] {
			x, errX := os.Stat(a)
			y, errY := os.Stat(b)
			if a == b || errX == nil && errY == nil && os.SameFile(x, y) {
				return fmt.Errorf("batch: %s and %s are one file; requests, answers and errors need a file each", b, a)
			}
		}
	}
	return nil
}

// recover finds which lines are done.
func (b *Batch) recover() (err error) {
	b.done, b.report.Lines = make([]bool, len(b.in.lines)), len(b.in.lines)
	if b.state, err = readState(b.o.Out + stateSuffix); err != nil {
		return err
	}
	if b.state != nil {
		if err := b.state.checkInput(b.o.Out, b.in); err != nil {
			return err
		}
	}
	if b.out, err = openOutput(b.o.Out, b.recorded); err != nil {
		return err
	}
	if b.errs, err = openOutput(b.o.Errors, b.recorded); err != nil {
		return err
	}
	b.report.Before = b.n
	return nil
}

// recorded counts a line of a file that was written before.
func (b *Batch) recorded(r *Result) error {
	if b.state == nil {
		return fmt.Errorf("no batch is known to have written it (%s is missing): name another file, or remove it", b.o.Out+stateSuffix)
	}
	i, found := 0, false
	if _, failed := r.Failed(); failed {
		i, found = slices.BinarySearchFunc(b.in.lines, r.Line, func(s span, n int32) int { return cmp.Compare(s.number, n) })
	} else if r.CustomID != nil {
		i, found = b.in.first(*r.CustomID)
	}
	switch {
	case !found:
		return errors.New("it is of no line of the requests: name another file")
	case b.done[i]:
		return fmt.Errorf("line %d of the requests has two answers: name another file", b.in.lines[i].number)
	}
	b.count(i, r)
	return nil
}

// count notes that a line is done.
func (b *Batch) count(i int, r *Result) {
	b.done[i] = true
	b.n++
	if code, failed := r.Failed(); failed {
		b.report.Failed++
		b.report.Failures[code]++
	} else {
		b.report.Answered++
	}
}

// Left returns how many lines are not done.
func (b *Batch) Left() int { return len(b.done) - b.n }

// Report returns what became of the lines so far. It is safe for concurrent use.
func (b *Batch) Report() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.report
	r.Failures = maps.Clone(r.Failures)
	return r
}

// Paths returns the files of the answers and of the errors.
func (b *Batch) Paths() (answers, faults string) { return b.o.Out, b.o.Errors }

// Close closes the files and gives the lock back.
func (b *Batch) Close() error {
	err := b.in.file.Close()
	for _, o := range []*output{b.out, b.errs} {
		if o != nil {
			err = errors.Join(err, o.close())
		}
	}
	return errors.Join(err, b.unlock())
}

// Run answers the lines that are not done. model names what answers depend on besides the lines; an output that was begun with another is refused. Errors: those of the
// files, and ctx's; what was written stays, and a later batch goes on from there. It is called once.
func (b *Batch) Run(ctx context.Context, h http.Handler, model string) error {
	if err := b.begin(model); err != nil {
		return err
	}
	began := time.Now()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.report.Seconds = time.Since(began).Seconds()
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan *Request)
	var work sync.WaitGroup
	for range min(b.o.Flight, max(b.Left(), 1)) {
		work.Go(func() {
			for q := range queue {
				if err := b.one(ctx, h, q); err != nil {
					cancel(err)
				}
			}
		})
	}
	if err := b.feed(ctx, queue); err != nil {
		cancel(err)
	}
	close(queue)
	work.Wait()
	return context.Cause(ctx)
}

// one answers a request.
func (b *Batch) one(ctx context.Context, h http.Handler, q *Request) error {
	if ctx.Err() != nil {
		return nil
	}
	r, err := Answer(ctx, h, q)
	if err != nil {
		return err
	}
	return b.write(q.index, r)
}

// write writes the record of a line.
func (b *Batch) write(i int, r *Result) error {
	if b.o.Most > 0 && b.out.size()+b.errs.size() >= b.o.Most {
		return ErrFull
	}
	to := b.out
	if _, failed := r.Failed(); failed {
		to = b.errs
	}
	if err := to.append(r); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count(i, r); b.o.Progress != nil {
		b.o.Progress(b.n, len(b.done))
	}
	return nil
}

// Bounds of a window of requests, which are sorted. The first window is small, so that the model does not wait for it, and each has twice as many lines as the one before.
const (
	firstLines  = 256
	windowLines = 4096
	windowBytes = 64 << 20
)

// feed sends the requests that are not done, and writes the lines that are none. A window is read while the one before is answered.
func (b *Batch) feed(ctx context.Context, queue chan<- *Request) (err error) {
	windows := make(chan []*Request)
	go func() {
		defer close(windows)
		err = b.read(ctx, windows)
	}()
	for w := range windows { // to the end: then nobody reads the file any more
		for _, q := range w {
			select {
			case queue <- q:
			case <-ctx.Done():
			}
		}
	}
	return cmp.Or(err, context.Cause(ctx))
}

// read sends windows of the requests that are not done, each in an order by which requests that begin alike share what is computed of their beginnings.
func (b *Batch) read(ctx context.Context, windows chan<- []*Request) error {
	var window []*Request
	bytes, most := 0, firstLines
	send := func() error {
		select {
		case windows <- sort(window, b.o.Flight):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		window, bytes, most = nil, 0, min(2*most, windowLines)
		return nil
	}
	for i := range b.in.lines {
		if b.done[i] {
			continue
		}
		q, err := b.request(i)
		if err != nil {
			return err
		}
		if q == nil {
			continue
		}
		window, bytes = append(window, q), bytes+len(q.body)
		if len(window) == most || bytes > windowBytes {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// request reads the request of a line; nil: it is none, which is written.
func (b *Batch) request(i int) (*Request, error) {
	q, bad, err := b.check(i)
	if bad == nil || err != nil {
		return q, err
	}
	return nil, b.write(i, q.Refuse(bad))
}

// check reads the request of a line, or the fault of one that is none.
func (b *Batch) check(i int) (*Request, *Refusal, error) {
	line, err := b.in.read(i)
	if err != nil {
		return nil, nil, err
	}
	q, bad := Parse(b.in.lines[i].number, line)
	q.index = i
	if bad != nil {
		return q, bad, nil
	}
	switch first, known := b.in.first(q.id); {
	case !known:
		return nil, nil, fmt.Errorf("batch: %s: line %d has changed; the file must not change while a batch runs", b.o.In, b.in.lines[i].number)
	case first != i:
		bad = Repeated(b.in.lines[first].number)
	case b.o.URL != "" && q.url != b.o.URL:
		bad = refusalf("invalid_url", "url is %q; the lines of this batch must have %q", clip(q.url), b.o.URL)
	}
	return q, bad, nil
}
