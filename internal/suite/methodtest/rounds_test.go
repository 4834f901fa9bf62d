package methodtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/sample"
	"grove/method"
)

// passes is what happens to the passes of draft modules: before is called with the number of each, and a pass of which it returns an error does not run.
type passes struct {
	n      int
	before func(n int) error
}

// told is a model of rows whose passes are told.
type told struct {
	method.Model
	passes *passes
}

// Open implements [method.Model].
func (m told) Open() (method.Branch, error) {
	b, err := m.Model.Open()
	return toldBranch{b, m.passes}, err
}

type toldBranch struct {
	method.Branch
	passes *passes
}

// Grow implements [method.Trunk].
func (b toldBranch) Grow(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	b.passes.n++
	if err := b.passes.before(b.passes.n); err != nil {
		return nil, err
	}
	return b.Branch.Grow(ctx, rows)
}

// rounds opens a method with modules whose passes are told, and returns it with the modules' engines.
func (s *subject) rounds(e *engine.Engine, p *passes) (*engine.Drafting, []*engine.Engine, error) {
	var engines []*engine.Engine
	modules := s.headsBy(e, func(m model.Model) method.Model {
		engines = append(engines, s.engineOf(m, engine.Config{Seqs: 4}))
		return told{engines[len(engines)-1].Model(), p}
	})
	d, err := e.OpenDrafting(s.ctx, []method.Info{s.info}, method.Env{Datastore: s.store, Modules: modules})
	if err == nil {
		d.Eager()
	}
	return d, engines, err
}

// ofHeads runs a test on the methods that draft with modules. runs says that the module runs rows of its own.
func ofHeads(t *testing.T, run func(t *testing.T, s *subject, runs bool)) {
	l := newLab(t)
	for _, info := range method.All() {
		if info.Kind == method.KindHeads {
			t.Run(info.Name, func(t *testing.T) {
				run(t, &subject{lab: l, info: info, ctx: t.Context()}, !slices.Contains([]string{"ppd", "hidden-transfer", "m2r2"}, info.Name))
			})
		}
	}
}

// empty expects that no sequence is left in engines.
func empty(t *testing.T, engines ...*engine.Engine) {
	t.Helper()
	for i, e := range engines {
		if l := e.Load(); l.Open != 0 || l.Admitted != 0 || l.Waiting != 0 {
			t.Errorf("engine %d: %+v", i, l)
		}
	}
}

// story is a text that is drawn, forked and cut back; draw draws n tokens of a sequence.
func (s *subject) story(q *engine.Sequence, draw func(q *engine.Sequence, n int) []sample.Token) (all []sample.Token, err error) {
	if err := q.Append(s.ctx, s.prompt()); err != nil {
		return nil, err
	}
	all = draw(q, 23)
	f, err := q.Fork(7)
	if err != nil {
		return nil, err
	}
	all = append(all, draw(q, 9)...)
	all = append(all, draw(f, 20)...)
	err = q.Truncate(q.Len() - 12)
	all = append(all, draw(q, 15)...)
	all = append(all, draw(f, 7)...)
	return all, errors.Join(err, f.Close())
}

// TestPassesThatFail tells a story while two of seven passes of the modules find its rows' pages taken, no page, or no room: the text is that of plain decoding, drafts
// are accepted all the same, and no sequence is left in the engines.
func TestPassesThatFail(t *testing.T) {
	ofHeads(t, func(t *testing.T, s *subject, runs bool) {
		for _, p := range s.samplings() {
			want := s.plainStory(t, p)
			failed, all := 0, &passes{}
			all.before = func(n int) error {
				if n%7%3 != 2 {
					return nil
				}
				failed++
				return fmt.Errorf("a pass: %w", []error{method.ErrPreempted, kv.ErrFull, forest.ErrScratch}[failed%3])
			}
			e := s.engine(engine.Config{Seqs: 3})
			d, engines, err := s.rounds(e, all)
			if err != nil {
				t.Fatal(err)
			}
			q, err := s.begin(e, d, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.story(q, func(q *engine.Sequence, n int) []sample.Token { return s.drawn(t, q, n) })
			accepted := q.SpecStats().Accepted
			if err := errors.Join(err, differ(fmt.Sprint(p), got, want), q.Close()); err != nil {
				t.Error(err)
			}
			if runs && (failed < 3 || accepted == 0) {
				t.Errorf("%+v: %d passes failed, %d drafts were accepted", p, failed, accepted)
			}
			empty(t, append(engines, e)...)
		}
	})
}

// plainStory tells the story without drafts.
func (s *subject) plainStory(t *testing.T, p sample.Params) []sample.Token {
	want, err := s.once(fmt.Sprint("story ", p), func() ([]sample.Token, error) {
		q, err := s.begin(s.engine(engine.Config{Seqs: 3}), nil, p, 0)
		if err != nil {
			return nil, err
		}
		all, err := s.story(q, func(q *engine.Sequence, n int) []sample.Token { return s.drawn(t, q, n) })
		return all, errors.Join(err, q.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// drawn draws n tokens.
func (s *subject) drawn(t *testing.T, q *engine.Sequence, n int) []sample.Token {
	t.Helper()
	got, err := s.follow(q, []move{{nil, n}})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestCancelledPasses cancels the caller while a pass of the modules is on its way, now and then: Next says so, and then goes on with the text of plain decoding.
func TestCancelledPasses(t *testing.T) {
	ofHeads(t, func(t *testing.T, s *subject, runs bool) {
		p := s.samplings()[len(s.samplings())-1]
		want := s.plainStory(t, p)
		cancel, cancelled, all := func() {}, 0, &passes{}
		all.before = func(n int) error {
			if n%5 == 2 && cancelled < 6 {
				cancel()
			}
			return nil
		}
		e := s.engine(engine.Config{Seqs: 3})
		d, engines, err := s.rounds(e, all)
		if err != nil {
			t.Fatal(err)
		}
		q, err := s.begin(e, d, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.story(q, func(q *engine.Sequence, n int) (out []sample.Token) {
			for len(out) < n {
				var ctx context.Context
				ctx, cancel = context.WithCancel(s.ctx)
				c, err := q.Next(ctx)
				cancel()
				switch {
				case errors.Is(err, context.Canceled):
					cancelled++
				case err != nil:
					t.Fatal(err)
				default:
					out = append(out, c.Token)
				}
			}
			return out
		})
		if err := errors.Join(err, differ("with callers that leave", got, want), q.Close()); err != nil {
			t.Error(err)
		}
		if runs && cancelled < 2 {
			t.Errorf("%d callers left in %d passes", cancelled, all.n)
		}
		empty(t, append(engines, e)...)
	})
}

// TestPassThatPanics: a pass that panics fails its own sequence. Another one that drafts with the same modules goes on with the text of plain decoding.
func TestPassThatPanics(t *testing.T) {
	ofHeads(t, func(t *testing.T, s *subject, runs bool) {
		if !runs {
			t.Skip("its module runs no rows")
		}
		p := s.samplings()[0]
		want := s.plainStory(t, p)
		broken, all := false, &passes{}
		all.before = func(int) error {
			if broken {
				broken = false
				panic("the pass has a fault")
			}
			return nil
		}
		e := s.engine(engine.Config{Seqs: 3})
		d, engines, err := s.rounds(e, all)
		if err != nil {
			t.Fatal(err)
		}
		var both [2]*engine.Sequence
		for i := range both {
			if both[i], err = s.begin(e, d, p, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := both[0].Append(s.ctx, s.prompt()); err != nil {
			t.Fatal(err)
		}
		s.drawn(t, both[0], 10)
		broken = true
		for i := 0; i < 40 && err == nil; i++ {
			_, err = both[0].Next(s.ctx)
		}
		if !errors.Is(err, engine.ErrPanic) {
			t.Errorf("%v; want %v", err, engine.ErrPanic)
		}
		got, err := s.story(both[1], func(q *engine.Sequence, n int) []sample.Token { return s.drawn(t, q, n) })
		if err := errors.Join(err, differ("beside one that panicked", got, want), both[0].Close(), both[1].Close()); err != nil {
			t.Error(err)
		}
		empty(t, append(engines, e)...)
	})
}
