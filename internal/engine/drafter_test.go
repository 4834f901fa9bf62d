package engine_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/method"
)

// drafter is a drafter that a test writes as a function of the text.
type drafter struct {
	h       *method.History
	r       *rand.Rand
	draft   func(d *drafter, t *method.Tree)
	rows    func(d *drafter, r method.Update) // what the last round gave; nil: it is not looked at
	wants   method.Wants
	own     method.Trunk
	ahead   func(ctx context.Context)
	watched int
	faults  []string
}

func (d *drafter) Begin(h *method.History) error {
	d.h, d.r = h, rand.New(rand.NewPCG(uint64(len(h.IDs())), 1))
	return nil
}

func (d *drafter) Committed(r method.Update) {
	if d.rows != nil {
		d.rows(d, r)
	}
}

func (d *drafter) Wants() method.Wants { return d.wants }

func (d *drafter) Draft(_ context.Context, t *method.Tree) error { d.draft(d, t); return nil }

// answer returns what the prediction says of the text's places from at on.
func (d *drafter) answer(at int) []token.ID { return d.h.Prediction[min(at, len(d.h.Prediction)):] }

// each makes a drafter for each text.
type each func() *drafter

func (e each) NewDrafter(own method.Trunk) (method.Drafter, error) {
	d := e()
	d.own = own
	if d.ahead != nil {
		return worker{d}, nil
	}
	return d, nil
}

// worker is a drafter that works while the step runs.
type worker struct{ *drafter }

func (w worker) Work(ctx context.Context) { w.ahead(ctx) }

// openDrafters opens methods of a test's own.
func openDrafters(t testing.TB, e *engine.Engine, eager bool, drafters ...each) *engine.Drafting {
	t.Helper()
	var infos []method.Info
	for _, d := range drafters { // of several, the turn does not depend on their time
		infos = append(infos, method.Info{Name: "test", RunsRows: len(drafters) > 1, Open: func(method.Env) (method.Method, error) { return d, nil }})
	}
	all, err := e.OpenDrafting(t.Context(), infos, method.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if eager {
		all.Eager()
	}
	return all
}

// scripted drafts the answer with a mistake at some places, or never, or only mistakes.
func scripted(length int, wrong func(at int) bool) each {
	return func() *drafter {
		return &drafter{draft: func(d *drafter, t *method.Tree) {
			at, n := method.Root, len(d.h.IDs())
			for i, id := range d.answer(n)[:min(length, len(d.answer(n)))] {
				if wrong(n + i) {
					id = (id + 1) % 48
				}
				if at = t.Add(at, id, 0, 0.9); at == method.Root {
					return
				}
			}
		}}
	}
}

// oracles draft what a sequence's prediction says follows, some of it and with other drafts among it: they stand for
// drafters of every kind.
func oracles() *drafter {
	return &drafter{draft: func(d *drafter, t *method.Tree) {
		right, at := method.Root, len(d.h.IDs())
		for range d.r.IntN(12) {
			if len(d.answer(at)) > 0 && d.r.IntN(4) > 0 {
				if right = t.Add(right, d.answer(at)[0], 0, 0.8); right == method.Root {
					return
				}
				at++
				continue
			}
			t.Add(d.r.IntN(t.Len()+1)-1, token.ID(d.r.IntN(48)), 1, d.r.Float32())
		}
	}}
}
