package step

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"grove/internal/compute"
	"grove/internal/engine/adapters"
	"grove/internal/forest"
)

// broken is a job whose place in a step fails, and whose results are refused.
type broken struct {
	idle
	err    error
	placed *int
}

func (j broken) Place(*Step) error {
	*j.placed++
	return j.err
}

func (j broken) Take(*Step) (bool, error) { return false, j.err }

// calling lets trunks call, each under its context, calls f while they all wait, and returns the errors of the calls.
func (m *Maker) calling(trunks []*Trunk, contexts []context.Context, f func()) []error {
	errs := make([]error, len(trunks))
	var all sync.WaitGroup
	var once sync.Once
	for i, o := range trunks {
		all.Go(func() {
			errs[i] = m.queue.Do(contexts[i], o, func(*Trunk) {
				for m.queue.Waiting() < len(trunks) {
					time.Sleep(10 * time.Microsecond)
				}
				once.Do(f)
				rest, _ := m.queue.Callers(nil, nil)
				for _, o := range rest { // f did not end their calls
					m.queue.Finish(o, errors.New("left"))
				}
			})
		})
		for i+1 < len(trunks) && m.queue.Waiting() <= i { // the last one lets f begin
			time.Sleep(10 * time.Microsecond)
		}
	}
	all.Wait()
	return errs
}

// TestOwners: the context of a step has ended when those of all its trunks have.
func TestOwners(t *testing.T) {
	m := newMaker(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	a, b, c := m.admit(t, 0, 0), m.admit(t, 0, 0), m.admit(t, 0, 0)
	m.calling([]*Trunk{a, b, c}, []context.Context{over, t.Context(), over}, func() {
		for _, c := range []struct {
			parts []*Trunk
			want  error
		}{{[]*Trunk{a}, context.Canceled}, {[]*Trunk{a, c}, context.Canceled}, {[]*Trunk{a, b}, nil}, {[]*Trunk{b, c}, nil}} {
			if err := (&owners{t.Context(), c.parts}).Err(); !errors.Is(err, c.want) {
				t.Errorf("%d trunks: %v, want %v", len(c.parts), err, c.want)
			}
		}
	})
}

// TestEachByItself: after a failed step each trunk runs once more, by itself, and gets its own error.
func TestEachByItself(t *testing.T) {
	m := newMaker(t)
	m.Exec = &compute.Exec{Cache: m.Cache, Step: m.Cache.Forest.NewStep(m.Chunk)}
	var trunks []*Trunk
	var contexts []context.Context
	placed := make([]int, 3)
	faults := []error{errors.New("a"), errors.New("b"), errors.New("c")}
	for i := range placed {
		o := m.admit(t, 0, 0)
		o.job = broken{err: faults[i], placed: &placed[i]}
		trunks, contexts = append(trunks, o), append(contexts, t.Context())
	}
	errs := m.calling(trunks, contexts, func() { m.perform(&m.step, trunks) })
	for i, want := range []int{2, 1, 1} {
		if placed[i] != want || !errors.Is(errs[i], faults[i]) {
			t.Errorf("trunk %d was placed %d times, want %d; %v", i, placed[i], want, errs[i])
		}
	}
}

// TestDeliver: rows whose results are refused, or whose caller has left, are dropped.
func TestDeliver(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	fault := errors.New("refused")
	for name, c := range map[string]struct {
		ctx  context.Context
		want error
	}{"refused": {t.Context(), fault}, "left": {over, context.Canceled}} {
		m := newMaker(t)
		o := m.admit(t, 0, 0)
		o.job = broken{err: fault}
		if _, err := m.Cache.Forest.NewStep(1).Add(forest.Row{Seq: o.Seq}); err != nil {
			t.Fatal(err)
		}
		err := m.calling([]*Trunk{o}, []context.Context{c.ctx}, func() { m.deliver(&m.step, o) })[0]
		if !errors.Is(err, c.want) || m.Cache.Forest.AllLive() != 0 {
			t.Errorf("%s: %v, %d rows live", name, err, m.Cache.Forest.AllLive())
		}
	}
}

// TestAdaptersHeld: trunks with a slot share the number of their set; the last one that gives its slot back lets the set go.
func TestAdaptersHeld(t *testing.T) {
	m := newMaker(t)
	m.Exec = &compute.Exec{Cache: m.Cache}
	var trunks []*Trunk
	for _, name := range []byte{1, 1, 2} {
		o := &Trunk{Terms: Terms{Adapters: &adapters.Set{Name: [32]byte{name}}}}
		if err := errors.Join(m.Open(o, m.MaxOpen), m.Admit(o)); err != nil {
			t.Fatal(err)
		}
		trunks = append(trunks, o)
	}
	if a, b, c := trunks[0].adapter, trunks[1].adapter, trunks[2].adapter; a != 1 || b != 1 || c != 2 {
		t.Errorf("the sets have the numbers %d, %d and %d", a, b, c)
	}
	for i, want := range []int{1, 0, 0} {
		if err := trunks[i].Close(); err != nil {
			t.Fatal(err)
		}
		if set := m.adapters[i/2]; set.users != want || (set.Set == nil) != (want == 0) {
			t.Errorf("%d closed: a set has %d users, want %d", i+1, set.users, want)
		}
	}
}
