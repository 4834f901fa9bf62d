package batches

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"grove/server/access"
	"grove/server/batch"
)

// Why a batch ends early.
var (
	errCancelled = errors.New("the batch was cancelled")
	errExpired   = errors.New("the completion window of the batch has passed")
	errStopping  = errors.New("the server stops")
	errOwner     = errors.New("the key of the batch is gone")
)

// The codes of the lines that are not answered then.
const (
	codeCancelled = "batch_cancelled"
	codeExpired   = "batch_expired"
)

// Times of the runner.
const (
	lookEach   = 30 * time.Second // for files and batches that expire
	retryAfter = 30 * time.Second // of a batch whose files could not be written
)

// runner answers the batches: the oldest of each key first, and those of several keys at a time.
type runner struct {
	*Service
	host   Host
	ctx    context.Context
	cancel context.CancelCauseFunc
	wake   chan struct{}
	work   sync.WaitGroup

	mu      sync.Mutex
	ended   bool
	running map[string]*run // by the batch's id
	lines   int64           // that were answered or failed
	broken  int64           // times that a batch was interrupted by an error and waited
}

// run is a batch that is being answered.
type run struct {
	owner  string
	cancel context.CancelCauseFunc
	batch  *batch.Batch // nil: it is not open
}

// begin starts the runner.
func (r *runner) begin(h Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.host = h
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.work.Go(func() {
		for r.ctx.Err() == nil {
			for _, do := range []func() error{r.expire, r.schedule} { // batches begin although others cannot end
				if err := do(); err != nil {
					r.config.Log.Error("the state of batches cannot be used", "error", err)
				}
			}
			select {
			case <-r.ctx.Done():
			case <-r.wake:
			case <-time.After(lookEach):
			}
		}
	})
}

// end stops the runner, and waits until no batch runs.
func (r *runner) end() {
	r.mu.Lock()
	r.ended = true
	if r.cancel != nil {
		r.cancel(errStopping)
	}
	r.mu.Unlock()
	r.work.Wait()
}

// alarm makes the runner look for work.
func (r *runner) alarm() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// stop ends a batch that runs.
func (r *runner) stop(id string, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.running[id]; one != nil {
		one.cancel(cause)
	}
}

// count brings the counts of a batch that runs up to date.
func (r *runner) count(b *batchRecord) {
	var open *batch.Batch
	r.mu.Lock()
	if one := r.running[b.ID]; one != nil {
		open = one.batch
	}
	r.mu.Unlock()
	if open != nil { // not under the lock, for which the batch waits to count a line
		b.report(open.Report())
	}
}

// report takes the counts of a batch.
func (b *batchRecord) report(p batch.Report) {
	b.Counts, b.Unasked = counts{p.Lines, p.Answered, p.Failed}, p.Failures[codeCancelled]+p.Failures[codeExpired]
}

// schedule starts the batches that may run: those that were cancelled, whose lines need no computing, and of each key the oldest.
func (r *runner) schedule() error {
	var all []*batchRecord
	err := r.store.db.View(func(tx *bolt.Tx) (err error) {
		all, err = list[batchRecord](tx, nil)
		return err
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	busy, n := map[string]bool{}, 0
	for _, one := range r.running {
		busy[one.owner] = true
		n++
	}
	for _, b := range all {
		if b.Status.ended() || r.running[b.ID] != nil || b.Status != cancelling && (busy[b.Owner] || n >= maxRunning) {
			continue
		}
		busy[b.Owner] = true
		n++
		one := &run{owner: b.Owner}
		var ctx context.Context
		ctx, one.cancel = context.WithCancelCause(r.ctx)
		if b.Status == cancelling {
			one.cancel(errCancelled)
		}
		r.running[b.ID] = one
		r.work.Go(func() { r.do(ctx, b, one) })
	}
	return nil
}

// do answers a batch to its end, or to that of the server.
func (r *runner) do(ctx context.Context, b *batchRecord, one *run) {
	defer func() {
		r.mu.Lock()
		delete(r.running, b.ID)
		r.mu.Unlock()
		one.cancel(nil)
		r.alarm()
	}()
	left := time.Duration(b.Due-r.store.clock.now()) * time.Second
	ctx, stop := context.WithTimeoutCause(ctx, max(left, 0), errExpired)
	defer stop()
	for {
		err := r.attempt(ctx, b, one)
		if err == nil || errors.Is(err, errStopping) {
			return
		}
		r.config.Log.Error("a batch is interrupted; it goes on later", "batch", b.ID, "after", r.config.retry.String(), "error", err)
		r.mu.Lock()
		r.broken++
		r.mu.Unlock()
		select {
		case <-r.ctx.Done():
			return
		case <-ctx.Done():
		case <-time.After(r.config.retry):
		}
	}
}

// attempt answers what is left of a batch. Errors: those of the disk, after which it can be tried again, and errStopping.
func (r *runner) attempt(ctx context.Context, b *batchRecord, one *run) (err error) {
	answers, faulty := r.store.path(b.Answers), r.store.path(b.Faulty)
	open, err := batch.Open(batch.Options{
		In: r.store.path(b.Input), Out: answers, Errors: faulty, Flight: r.config.Flight, URL: b.Endpoint, Most: max(r.left(b.Owner), 1),
		Progress: func(int, int) { r.tick() },
	})
	if err != nil {
		return r.unreadable(b, err)
	}
	r.mu.Lock()
	one.batch = open
	r.mu.Unlock()
	ended := context.Cause(ctx)
	cause := r.answer(ctx, b, open) // a batch that is cancelled has the file of its answers all the same
	if ended != nil {
		cause = ended
	}
	return r.settle(b, open, cause)
}

// left returns how many bytes the answers to a batch may have.
func (r *runner) left(owner string) int64 { return r.usage.left(owner) }

// tick counts a line.
func (r *runner) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines++
}

// unreadable ends a batch whose requests are no batch, such as an empty file; other errors are those of the disk.
func (r *runner) unreadable(b *batchRecord, err error) error {
	if at := new(os.PathError); errors.As(err, &at) && !(errors.Is(err, os.ErrNotExist) && at.Path == r.store.path(b.Input)) {
		return err
	}
	return r.fail(b, batch.Fault{Code: "invalid_file", Message: r.plain(err)})
}

// plain returns an error without places on this machine.
func (r *runner) plain(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "batch: "), filepath.Join(r.config.Dir, filesDir)+string(filepath.Separator), "")
}

// fail ends a batch that cannot be answered.
func (r *runner) fail(b *batchRecord, faults ...batch.Fault) error {
	return r.finish(b, failed, func() { b.Faults = faults })
}

// faulty is an error of the lines of a batch.
type faulty []batch.Fault

// Error says how many there are.
func (f faulty) Error() string { return fmt.Sprintf("%d lines are no requests", len(f)) }

// answer checks a batch that is new, and answers its lines.
func (r *runner) answer(ctx context.Context, b *batchRecord, open *batch.Batch) error {
	models, faults, err := open.Check(ctx, maxFaults)
	switch {
	case err != nil:
		return err
	case len(faults) > 0:
		return faulty(faults)
	case len(models) == maxModels:
		return faulty{{Code: "too_many_models", Message: fmt.Sprintf("the requests name more than %d models", maxModels-1)}}
	}
	caller := r.host.Owner(b.Owner)
	if caller == nil {
		return errOwner
	}
	identity, err := r.host.Identity(ctx, models)
	if err != nil {
		return err
	}
	if err := r.change(b, func() error {
		if b.Status == validating {
			b.to(inProgress)
		}
		return nil
	}); err != nil {
		return err
	}
	r.config.Log.Info("a batch runs", "batch", b.ID, "lines", open.Report().Lines, "left", open.Left())
	return open.Run(ctx, behind{r.host, caller}, identity)
}

// settle writes how a batch ended, by its cause; nil: all lines are done.
func (r *runner) settle(b *batchRecord, open *batch.Batch, cause error) error {
	end, faults := completed, []batch.Fault(nil)
	var lines faulty
	var err error
	switch {
	case cause == nil:
	case errors.Is(cause, errStopping):
		return errors.Join(cause, open.Close())
	case errors.Is(cause, errCancelled):
		end, err = cancelled, open.FailRest(codeCancelled, errCancelled.Error())
	case errors.Is(cause, errExpired):
		end, err = expired, open.FailRest(codeExpired, errExpired.Error())
	case errors.Is(cause, errOwner):
		end, faults = failed, []batch.Fault{{Code: "key_gone", Message: errOwner.Error()}}
	case errors.Is(cause, batch.ErrFull):
		end, faults = failed, []batch.Fault{{Code: "storage_full", Message: fmt.Sprintf("the answers and the other files would have more than %d bytes together (grove serve --max-state-bytes)", r.usage.most)}}
	case errors.Is(cause, batch.ErrMixed):
		end, faults = failed, []batch.Fault{{Code: "model_changed", Message: "the model, or its settings, changed since the batch began; what was answered before is kept: send the rest as a new batch"}}
	case errors.As(cause, &lines):
		end, faults = failed, lines
	default:
		return errors.Join(cause, open.Close())
	}
	if err != nil && !errors.Is(err, batch.ErrFull) {
		return errors.Join(err, open.Close())
	}
	p := open.Report()
	if err := open.Close(); err != nil {
		return err
	}
	return r.finish(b, end, func() { b.report(p); b.Faults = faults })
}

// finish gives a batch its last status, and its files records.
func (r *runner) finish(b *batchRecord, end status, also func()) error {
	var made []*fileRecord
	for _, f := range []struct{ id, name string }{{b.Answers, b.ID + "_output.jsonl"}, {b.Faulty, b.ID + "_error.jsonl"}} {
		n, err := sizeOf(r.store.path(f.id))
		if err != nil {
			return err
		}
		if n > 0 {
			made = append(made, r.newFile(b.Owner, f.id, f.name, purposeOutput, n, b.Keep))
		} else if err := os.Remove(r.store.path(f.id)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	count := func(sign int64) {
		for _, f := range made {
			r.usage.add(f.Owner, sign*f.Bytes)
		}
	}
	count(1) // before anybody sees the files
	err := r.store.update(func(tx *bolt.Tx) error {
		now := new(batchRecord)
		if found, err := get(tx, b.Owner, b.ID, now); err != nil || !found {
			return errors.Join(err, missingUnless(found, b.ID))
		}
		*b = *now
		also()
		if end == completed {
			b.to(finalizing)
		}
		b.to(end)
		for _, f := range made {
			b.HasAnswers, b.HasFaulty = b.HasAnswers || f.ID == b.Answers, b.HasFaulty || f.ID == b.Faulty
			f.Seq = 0
			if err := put(tx, f); err != nil {
				return err
			}
		}
		b.Due = r.store.clock.now()
		return put(tx, b)
	})
	if err != nil {
		count(-1)
		return err
	}
	r.clean(b)
	r.config.Log.Info("a batch ended", "batch", b.ID, "status", string(end), "lines", b.Counts.Total, "answered", b.Counts.Completed, "failed", b.Counts.Failed)
	return nil
}

// behind is the handler of the requests of a batch, which count for the key that made it.
type behind struct {
	http.Handler
	caller *access.Caller
}

// ServeHTTP waits until the key may send a request, and lets the host answer it.
func (h behind) ServeHTTP(w http.ResponseWriter, x *http.Request) {
	if h.caller.Wait(x.Context()) == nil {
		h.Handler.ServeHTTP(w, x.WithContext(access.Behind(x.Context(), h.caller)))
	}
}
