package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"grove/internal/compute"
	"grove/internal/engine"
	"grove/internal/engine/plan"
	"grove/internal/sample"
	"grove/internal/suite/modeltest"
	"grove/internal/text/token"
	"grove/internal/weights/tensor"
)

// gate is a context that lets some checks of it pass, and holds a step up at the next until it is opened; it may then
// have ended.
type gate struct {
	context.Context
	pass int
	err  error
	held chan struct{} // closed when it holds
	open chan struct{}
}

func newGate(t *testing.T, pass int, err error) *gate {
	return &gate{t.Context(), pass, err, make(chan struct{}), make(chan struct{})}
}

func (g *gate) Err() error {
	switch g.pass--; {
	case g.pass >= 0:
		return nil
	case g.pass == -1:
		close(g.held)
		<-g.open
	}
	return g.err
}

// waiting returns when n callers are in line.
func waiting(t *testing.T, e *engine.Engine, n int) {
	t.Helper()
	for start := time.Now(); e.Load().Waiting != n; time.Sleep(50 * time.Microsecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("%d callers wait, want %d", e.Load().Waiting, n)
		}
	}
}

// together makes calls that all wait in line, in order, before the first step begins for any of them, and returns their
// errors.
func together(t *testing.T, e *engine.Engine, calls ...func() error) []error {
	t.Helper()
	errs := make([]error, len(calls))
	var all sync.WaitGroup
	s, g := sequence(t, e), newGate(t, 0, nil)
	all.Go(func() {
		if err := errors.Join(s.Append(g, []token.ID{1}), s.Close()); err != nil {
			t.Error(err)
		}
	})
	waiting(t, e, 1)
	for i, call := range calls {
		all.Go(func() { errs[i] = call() })
		waiting(t, e, i+2)
	}
	close(g.open)
	all.Wait()
	return errs
}

// lineCost is a cost of so many seconds a row, whatever steps take.
func lineCost(seconds float64) *engine.Cost {
	return &engine.Cost{
		Rows: []int{1, 101}, Layers: []float64{seconds, 101 * seconds},
		Head: plan.Curve{X: []int{1}, Y: []float64{0}},
	}
}

func appends(t *testing.T, s *engine.Sequence, ids []token.ID) func() error {
	return func() error { return s.Append(t.Context(), ids) }
}

// TestOneStep expects callers that wait to get their rows in one step, and the same prompt to be computed once.
func TestOneStep(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 5})
	ids := text(200)
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 5, ids)
	var seqs []*engine.Sequence
	var calls []func() error
	for range 4 {
		s := sequence(t, e)
		seqs, calls = append(seqs, s), append(calls, appends(t, s, ids))
	}
	if err := errors.Join(together(t, e, calls...)...); err != nil {
		t.Fatal(err)
	}
	reused := 0
	for _, s := range seqs {
		reused += s.Reused()
	}
	if l := e.Load(); reused != 3*192 || l.Rows != 1+200+3*8 {
		t.Errorf("%d tokens reused in %d rows", reused, l.Rows)
	}
	for i, s := range seqs {
		if got := draw(t, s, 5); !slices.Equal(got, want) {
			t.Errorf("sequence %d: %v, want %v", i, got, want)
		}
	}
	calls = calls[:0]
	for _, s := range seqs {
		calls = append(calls, func() error { _, err := s.Next(t.Context()); return err })
	}
	before := e.Load()
	if err := errors.Join(together(t, e, calls...)...); err != nil {
		t.Fatal(err)
	}
	if l := e.Load(); l.Steps != before.Steps+2 || l.Rows != before.Rows+1+4 {
		t.Errorf("four tokens took %d steps of %d rows", l.Steps-before.Steps-1, l.Rows-before.Rows-1)
	}
}

// TestPromptsDoNotStall holds steps that a sequence decodes in to three times the usual one, whatever prompts wait, and
// steps of prompts to 250 ms.
func TestPromptsDoNotStall(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 4, Chunk: 200})
	e.SetCost(lineCost(1e-3)) // a step that decodes takes 1 ms; and so three rows may be in one
	s, other := sequence(t, e), sequence(t, e)
	draw(t, s, 2, text(20))
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := other.Append(t.Context(), text(230)[1:]); err != nil {
			t.Error(err)
		}
	})
	for range 60 {
		before, start := e.Load(), time.Now()
		draw(t, s, 1)
		late := time.Since(start) > time.Second/2 // the reader may have been alone for so long that it needs no care
		if l := e.Load(); l.Rows-before.Rows > 3*(l.Steps-before.Steps) && !late {
			t.Errorf("%d rows in %d steps", l.Rows-before.Rows, l.Steps-before.Steps)
		}
	}
	reading.Wait()

	e = newEngine(t, engine.Config{Seqs: 4, Chunk: 200})
	e.SetCost(lineCost(0.01))
	a, b := sequence(t, e), sequence(t, e)
	errs := together(t, e, appends(t, a, text(100)), appends(t, b, text(101)[1:]))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if l := e.Load(); l.Steps < 1+100/25 {
		t.Errorf("200 rows of 10 ms in %d steps", l.Steps-1)
	}
}

// TestDeepPromptsDoNotStall: rows deep in a prompt, each of which costs three times one at its beginning, are fewer.
func TestDeepPromptsDoNotStall(t *testing.T) {
	const least, row, perToken = 10e-3, 1e-3, 1e-5
	cost := func() *engine.Cost {
		return &engine.Cost{
			Rows: []int{1, 2}, Layers: []float64{least, least + row},
			Depth: plan.Curve{X: []int{1, 2}, Y: []float64{perToken, 2 * perToken}},
			Head:  plan.Curve{X: []int{1}, Y: []float64{0}},
		}
	}
	e := newEngine(t, engine.Config{Seqs: 8, Chunk: 200})
	for _, tt := range []struct{ depth, least, most int }{{0, 10, 16}, {200, 3, 6}} {
		s, other := sequence(t, e), sequence(t, e)
		draw(t, s, 2, text(2))
		ids := text(260)[1:]
		if err := other.Append(t.Context(), ids[:tt.depth]); err != nil {
			t.Fatal(err)
		}
		e.SetCost(cost())
		before := e.Load()
		errs := together(t, e, appends(t, other, ids[tt.depth:tt.depth+50]), func() error { _, err := s.Next(t.Context()); return err })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		steps := e.Load().Steps - before.Steps // that of the one that held them up may have rows of theirs
		if fewest, most := (50+tt.most-1)/tt.most, 50/tt.least+2; steps < fewest || steps > most {
			t.Errorf("50 rows behind %d took %d steps, want %d to %d", tt.depth, steps, fewest, most)
		}
	}
}

// TestShortPromptsPass expects a short prompt not to wait for a long one, and priority to speed a prompt up.
func TestShortPromptsPass(t *testing.T) {
	for name, p := range map[string]int{"long": 100, "short": 10} {
		e := newEngine(t, engine.Config{Seqs: 4, Chunk: 20})
		first, second := sequence(t, e), sequence(t, e)
		if name == "long" {
			if err := second.SetTerms(engine.Terms{Priority: 3}); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		var order []string
		ended := func(name string, call func() error) func() error {
			return func() error {
				err := call()
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
				return err
			}
		}
		errs := together(t, e, ended("first", appends(t, first, text(200))), ended("second", appends(t, second, text(p + 1)[1:])))
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(order, []string{"second", "first"}) {
			t.Errorf("%s: %v", name, order)
		}
	}
	s := sequence(t, newEngine(t, engine.Config{}))
	expect(t, s.SetTerms(engine.Terms{Priority: 11}), "engine: priority is 11; it must be from -10 to 10", nil)
}

// TestFaultIsItsOwn expects NaN in one sequence's rows to fail that sequence alone, also where guesses run.
func TestFaultIsItsOwn(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file := modeltest.Spec{Type: tensor.F32, Context: 300}.File(t)
	v, _ := file.Tensor("token_embd.weight")
	copy(v.Data[4*64*7:], []byte{0, 0, 0xc0, 0x7f}) // token 7
	b := newBed(t, few(), file)
	alone := func(ids []token.ID) []sample.Token {
		return draw(t, sequence(t, b.engine(t, engine.Config{})), 1, ids)
	}
	e := b.engine(t, engine.Config{Seqs: 5})
	x, y, z := sequence(t, e), sequence(t, e), sequence(t, e)
	errs := together(t, e, appends(t, x, []token.ID{1, 2, 3}), appends(t, y, []token.ID{4, 7, 5}), appends(t, z, []token.ID{4, 5, 6, 8}))
	if errs[0] != nil || errs[2] != nil || !errors.Is(errs[1], compute.ErrNotFinite) {
		t.Fatalf("%v", errs)
	}
	if e.Load().Failed != 1 {
		t.Errorf("%d steps failed", e.Load().Failed)
	}
	if got, want := draw(t, x, 1), alone([]token.ID{1, 2, 3}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := draw(t, z, 1), alone([]token.ID{4, 5, 6, 8}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, s := range []*engine.Sequence{x, y, z} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
		t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
	}
}

// TestCancelled expects a step to go on for the others where one caller goes between two layers, and to be undone where
// all have.
func TestCancelled(t *testing.T) {
	want := draw(t, sequence(t, newEngine(t, engine.Config{})), 4, text(70))
	for _, all := range []bool{false, true} {
		e := newEngine(t, engine.Config{Seqs: 4})
		s, other := sequence(t, e), sequence(t, e)
		g := newGate(t, 2, context.Canceled)
		ctx, cancel := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() {
			<-g.held
			if all {
				cancel()
			}
			close(g.open)
		})
		errs := together(t, e,
			func() error { return s.Append(g, text(70)) }, func() error { return other.Append(ctx, text(50)[1:]) })
		watch.Wait()
		cancel()
		steps := 1
		if !all {
			steps = 2
		}
		if !errors.Is(errs[0], context.Canceled) || all != errors.Is(errs[1], context.Canceled) || !all && errs[1] != nil || e.Load().Steps != steps {
			t.Errorf("all %v: %v, %d steps", all, errs, e.Load().Steps)
		}
		if u, live, _ := e.Held(); all && u.Idle != 0 || live != 0 {
			t.Errorf("%d pages and %d rows of calls that were cancelled", u.Idle, live)
		}
		if got := draw(t, s, 4); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if err := errors.Join(s.Close(), other.Close()); err != nil {
			t.Error(err)
		}
		if u, live, open := e.Held(); u.Used != 0 || live != 0 || open != 0 {
			t.Errorf("%d pages, %d rows and %d sequences are left", u.Used, live, open)
		}
	}
}

// TestPagesRunOut expects sequences that together need more pages than there are to end as they do alone.
func TestPagesRunOut(t *testing.T) {
	var prompts [3][]token.ID
	var want [3][]sample.Token
	for i := range prompts {
		prompts[i] = text(70 + i)[i:]
		want[i] = draw(t, sequence(t, newEngine(t, engine.Config{Context: 192})), 120, prompts[i])
	}
	e := newEngine(t, engine.Config{Context: 192, Seqs: 3, Tokens: 192}) // 6 pages; 9 are needed
	var got [3][]sample.Token
	var seqs [3]*engine.Sequence
	for i := range seqs {
		seqs[i] = sequence(t, e)
		got[i] = draw(t, seqs[i], 50, prompts[i])
	}
	var all sync.WaitGroup
	for i, s := range seqs {
		all.Go(func() {
			for len(got[i]) < len(want[i]) {
				c, err := s.Next(t.Context())
				if err != nil {
					t.Error(err)
					break
				}
				got[i] = append(got[i], c.Token)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("sequence %d: %v, want %v", i, got[i], want[i])
		}
	}
	if u, _, _ := e.Held(); u.Used != 0 || e.Load().Preempted == 0 {
		t.Errorf("%d pages are left; %d times pages were given back", u.Used, e.Load().Preempted)
	}
}

// TestIdlePages expects a sequence that nobody calls for to give its pages to one that ranks below, and to go on as
// if nothing had been.
func TestIdlePages(t *testing.T) {
	config := engine.Config{Context: 250, Seqs: 2, Tokens: 250} // 6 pages
	want := draw(t, sequence(t, newEngine(t, config)), 20, text(220))
	e := newEngine(t, config)
	idle, s := sequence(t, e), sequence(t, e)
	got := draw(t, idle, 10, text(220))
	draw(t, s, 3, text(230)[1:])
	if e.Load().Preempted != 1 {
		t.Errorf("pages were given back %d times", e.Load().Preempted)
	}
	if got = append(got, draw(t, idle, 10)...); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSeats expects sequences beyond those of a step to wait for one that closes, and those beyond the queue to be
// refused.
func TestSeats(t *testing.T) {
	e := newEngine(t, engine.Config{Seqs: 1, Queue: 1})
	s, next := sequence(t, e), sequence(t, e)
	_, err := e.NewSequence(engine.Answer{})
	expect(t, err, "engine: 2 sequences: too many sequences are open", engine.ErrBusy)
	draw(t, s, 1, text(5))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := next.Append(ctx, text(5)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	var waits sync.WaitGroup
	waits.Go(func() {
		if err := next.Append(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
	waiting(t, e, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	waits.Wait()
	draw(t, next, 3)
}

// TestNextAllocatesNothing holds plain decoding in the steady state to no allocation.
func TestNextAllocatesNothing(t *testing.T) {
	s := sequence(t, newEngine(t, engine.Config{Context: 300}))
	draw(t, s, 80, text(100))
	if n := testing.AllocsPerRun(50, func() { draw1(t, s) }); n > 0 {
		t.Errorf("%v allocations a token", n)
	}
}

func draw1(t *testing.T, s *engine.Sequence) {
	if _, err := s.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
}
