package beam

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"grove/server/batch"
)

// attempt is one try of a bundle, which ends somewhere.
type attempt struct {
	ends int    // the element before which it ends; that behind the last: before its FinishBundle; more: it succeeds
	how  string // left, panic or cancelled
}

// errPanic is the panic of an emitter.
var errPanic = errors.New("the next transform failed")

// try drives an instance through a bundle as the SDK does. It returns what the bundle emits if it succeeds.
func (a attempt) try(ctx context.Context, f *answerFn, bundle []Line) (answers, failures []string, err error) {
	cancel := func() {}
	if a.how == "cancelled" { // the other attempts leave a context that does not end
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	broken := false
	emit := func(to *[]string) func(string) {
		return func(line string) {
			if broken {
				panic(errPanic)
			}
			*to = append(*to, line)
		}
	}
	toAnswers, toFailures := emit(&answers), emit(&failures)
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	f.StartBundle(ctx, toAnswers, toFailures)
	for i := 0; ; i++ {
		if i == a.ends {
			switch a.how {
			case "left":
				return nil, nil, errors.New("left")
			case "panic":
				broken = true
			case "cancelled":
				cancel()
			}
		}
		if i == len(bundle) {
			return answers, failures, f.FinishBundle(ctx, toAnswers, toFailures)
		}
		if err := f.ProcessElement(ctx, bundle[i], toAnswers, toFailures); err != nil {
			return nil, nil, err
		}
	}
}

// linesOf reads a file of requests.
func linesOf(t *testing.T, path string) (all []Line) {
	t.Helper()
	if err := new(readFn).ProcessElement(t.Context(), path, func(l Line) { all = append(all, l) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAttempts: bundles that are left, fail, are cancelled and run twice at a time, several at once, have the answers of a batch in the attempt that succeeds.
func TestAttempts(t *testing.T) {
	var requests []string
	for _, l := range mixed(400) { // of which repeated ones are not this transform's
		if q, bad := batch.Parse(1, []byte(l)); bad == nil && (q.Refuse(nil).CustomID == nil || *q.Refuse(nil).CustomID != "line-0" || len(requests) == 0) {
			requests = append(requests, l)
		}
	}
	in := put(t, filepath.Join(t.TempDir(), "in"), requests...)
	want := reference(t, nano, in)
	m, err := nano.complete()
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.use(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	few := &opened{Handler: o, flight: make(chan struct{}, 5)}
	all := linesOf(t, in)
	var mu sync.Mutex
	var answers, failures []string
	tried := map[string]int{}
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(w)))
			f := &answerFn{opened: few}
			for at := w * len(all) / 4; at < (w+1)*len(all)/4; {
				bundle := all[at:min(at+1+r.IntN(10), (w+1)*len(all)/4)]
				a := attempt{r.IntN(len(bundle)*3/2 + 2), []string{"left", "panic", "cancelled"}[r.IntN(3)]}
				good, bad, err := a.try(t.Context(), f, bundle)
				if r.IntN(3) == 0 { // another worker has the bundle, too
					twin := &answerFn{opened: few}
					good2, bad2, err2 := attempt{ends: -1}.try(t.Context(), twin, bundle)
					twin.Teardown()
					if err2 != nil || err == nil && !(equal(good, good2) && equal(bad, bad2)) {
						t.Errorf("two attempts differ: %v", err2)
					}
					good, bad, err = good2, bad2, nil
				}
				mu.Lock()
				if err == nil {
					tried["success"]++
					answers, failures = append(answers, good...), append(failures, bad...)
					at += len(bundle)
				} else {
					tried[a.how]++
				}
				mu.Unlock()
				if r.IntN(4) == 0 {
					f.Teardown()
					f = &answerFn{opened: few}
				}
			}
			f.Teardown()
		})
	}
	workers.Wait()
	for _, how := range []string{"left", "panic", "cancelled", "success"} {
		if tried[how] < 3 {
			t.Errorf("the attempts are %v", tried)
		}
	}
	dir := t.TempDir()
	same(t, want.Output, put(t, filepath.Join(dir, "answers"), answers...))
	same(t, want.Errors, put(t, filepath.Join(dir, "failures"), failures...))
	for range cap(few.flight) { // what was given up has left its places
		few.flight <- struct{}{}
	}
}

// TestFlight: as many requests are under way as the process may have, in all bundles together, and no more.
func TestFlight(t *testing.T) {
	const most = 5
	var mu sync.Mutex
	now, peak, all := 0, 0, make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if now++; now > peak {
			if peak = now; peak == most {
				time.AfterFunc(50*time.Millisecond, func() { close(all) }) // more would come by then
			}
		}
		mu.Unlock()
		<-all // no request ends before that
		mu.Lock()
		now--
		mu.Unlock()
		_, _ = io.WriteString(w, "{}")
	})
	o := &opened{Handler: h, flight: make(chan struct{}, most)}
	var bundles sync.WaitGroup
	for b := range 3 {
		var lines []Line
		for i := range 20 {
			lines = append(lines, Line{int32(i + 1), []byte(line(fmt.Sprintf("%d-%d", b, i), "/v1/embeddings", "{}"))})
		}
		bundles.Go(func() {
			f := &answerFn{opened: o}
			answers, failures, err := attempt{ends: -1}.try(t.Context(), f, lines)
			if len(answers) != len(lines) || len(failures) != 0 || err != nil {
				t.Errorf("%d answers, %d failures, %v", len(answers), len(failures), err)
			}
		})
	}
	bundles.Wait()
	if peak != most {
		t.Errorf("%d requests were under way at a time", peak)
	}
}

// equal reports whether two attempts emitted the same lines, in any order.
func equal(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// TestFirst: in any order of a group, the first line of the input has the custom_id.
func TestFirst(t *testing.T) {
	good, bad := line("a", "/v1/embeddings", "{}"), line("a", "/other", "{}")
	for _, c := range []struct {
		lines           []string
		want            string // numbers of requests
		repeated, wrong int
	}{
		{[]string{good}, "[1]", 0, 0}, {[]string{good, good, bad, good}, "[1]", 2, 1}, {[]string{bad, good, good}, "[]", 2, 1}, {[]string{bad, bad}, "[]", 0, 2},
	} {
		var group []Line
		for i, text := range c.lines {
			group = append(group, Line{int32(i + 1), []byte(text)})
		}
		for range 20 {
			rand.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
			next, requests, failures := 0, []int32{}, []string(nil)
			err := new(firstFn).ProcessElement(t.Context(), "a", func(l *Line) bool {
				if next == len(group) {
					return false
				}
				*l = group[next]
				next++
				return true
			}, func(l Line) { requests = append(requests, l.Number) }, func(f string) { failures = append(failures, f) })
			text := strings.Join(failures, "\n")
			if err != nil || fmt.Sprint(requests) != c.want || strings.Count(text, "custom_id is that of line 1;") != c.repeated || strings.Count(text, "invalid_url") != c.wrong {
				t.Fatalf("%v of %q: %v, %v\n%s", group, c.lines, requests, err, text)
			}
		}
	}
}

// TestOpenedOnce: all who ask for a model have one; a model that could not be opened is tried again.
func TestOpenedOnce(t *testing.T) {
	m, err := Model{Path: nano.Path, Threads: 1, Parallel: 2}.complete()
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan *opened, 16)
	for range cap(found) {
		go func() {
			o, err := m.use(t.Context())
			if err != nil {
				t.Error(err)
			}
			found <- o
		}()
	}
	one := <-found
	for range cap(found) - 1 {
		if o := <-found; o != one {
			t.Error("two are open")
		}
	}
	if cap(one.flight) != 4 {
		t.Errorf("%d requests may be under way", cap(one.flight))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	m.Name = "another"
	if _, err := m.use(gone); err == nil {
		t.Error("a model is opened by a bundle that is cancelled")
	}
	if o, err := m.use(t.Context()); err != nil || o == one {
		t.Error(err)
	}
}
