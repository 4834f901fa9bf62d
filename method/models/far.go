// far.go drafts nothing itself: it takes drafts that a request brings, such as those of another server that has a smaller model (FlexSpec: frozen
// drafts meet evolving targets in edge-cloud collaborative speculative decoding). Where none has come in time the step runs without, so that
// the text never depends on where the drafts come from.

package models

import (
	"context"
	"time"

	"grove/internal/text/token"
	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "far", Paper: "FlexSpec, edge and cloud", Kind: method.KindModel, Grade: method.Exact,
		Needs: "a request that brings drafts", Auto: true,
		Open: func(method.Env) (method.Method, error) { return far{}, nil },
	})
}

// far has nothing: drafts belong to texts.
type far struct{}

// NewDrafter implements [method.Method].
func (far) NewDrafter(method.Trunk) (method.Drafter, error) { return &farDrafter{}, nil }

type farDrafter struct {
	remote method.Remote // nil: the text has none
	drafts []token.ID    // of the last round
	began  time.Time     // when the last drafts were asked for
	asked  bool
}

// Begin implements [method.Drafter].
func (d *farDrafter) Begin(h *method.History) error {
	if d.remote, d.drafts, d.asked = h.Remote, d.drafts[:0], false; d.remote != nil {
		d.remote.Begin(h)
	}
	return nil
}

// Committed implements [method.Drafter].
func (d *farDrafter) Committed(r method.Update) {
	if d.remote == nil || len(r.IDs) == 0 {
		return
	}
	accepted, rows, step := 0, 0, time.Duration(0)
	if d.asked {
		for accepted < min(len(r.IDs), len(d.drafts)) && r.IDs[accepted] == d.drafts[accepted] {
			accepted++
		}
		rows, step = 1+len(d.drafts), time.Since(d.began)
	}
	d.remote.Committed(r.IDs, accepted, rows, step)
	d.drafts, d.asked = d.drafts[:0], false
}

// belief is how often a draft is accepted before anything is known. The class of a draft is its depth.
const belief = 0.7

// Draft implements [method.Drafter].
func (d *farDrafter) Draft(ctx context.Context, t *method.Tree) error {
	if d.remote == nil {
		return nil
	}
	d.drafts = d.remote.Drafts(ctx, d.drafts[:0])
	at := method.Root
	for i, id := range d.drafts {
		if at = t.Add(at, id, min(i, method.Classes-1), belief); at == method.Root {
			d.drafts = d.drafts[:i]
			break
		}
	}
	d.began, d.asked = time.Now(), true
	return nil
}
