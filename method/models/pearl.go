// pearl.go drafts by a second model while the target's step runs: the drafts that the step verifies, and those that may follow them, are made at
// the same time (PEARL: parallel speculative decoding with adaptive draft length, Liu et al. 2024).
//
// Pre-verify: behind a rejection a step runs the text's last token alone, and verifies the first of the drafts that are made meanwhile. Post-verify:
// where it was accepted the others are the next step's tree, and further ones are made meanwhile. No step waits for drafts; in
// exchange the first step behind a rejection gives one token.

package models

import (
	"context"
	"errors"

	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// The drafts of a step.
const (
	pearlLeast   = 2  // are made, however short the step is
	pearlMost    = 16 // are made, however long it is
	pearlLongest = 32 // wait at most
)

func init() {
	method.Register(method.Info{
		Name: "pearl", Paper: "PEARL: a draft model beside the target, 2024", Kind: method.KindModel, Grade: method.Exact,
		NotAuto:    "its threads are taken from the step",
		Needs:      "a draft model with the same vocabulary",
		CheckNeeds: func(e method.Env) error { return grow.MeetsDraft(e, true) },
		Open:       func(e method.Env) (method.Method, error) { return pearl{e}, nil },
	})
}

// pearl is a draft model.
type pearl struct{ env method.Env }

// NewDrafter implements [method.Method].
func (m pearl) NewDrafter(method.Trunk) (method.Drafter, error) { return newDrafter(m.env), nil }

func newDrafter(e method.Env) *pearlDrafter {
	d := &pearlDrafter{least: pearlLeast, most: pearlMost}
	if e.Draft != nil {
		d.vocabulary = min(e.Vocabulary, e.Draft.Size().Vocabulary)
		d.model = grow.NewFollower(e.Draft, e.Vocabulary)
	}
	return d
}

type pearlDrafter struct {
	model       *grow.Follower
	vocabulary  int // of its logits
	least, most int // drafts of a step
	sampler     *sample.Chain
	source      int // tokens before the answer's own text
	best        [1]sample.Candidate

	text    []token.ID // the history's, and behind it the drafts that wait
	certain int        // tokens of the history
	probs   []float32  // of the drafts that wait
	err     error      // of the last Work
}

// Begin implements [method.Drafter].
func (d *pearlDrafter) Begin(h *method.History) (err error) {
	d.text, d.probs, d.source, d.err = append(d.text[:0], h.IDs()...), d.probs[:0], h.SourceLen, nil
	d.certain = len(d.text)
	d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.vocabulary)
	return errors.Join(err, d.model.Begin())
}

// Committed implements [method.Drafter]. Drafts that wait stay where all before them have become text.
func (d *pearlDrafter) Committed(r method.Update) {
	n := 0
	for n < len(r.IDs) && n < len(d.probs) && d.text[d.certain+n] == r.IDs[n] {
		n++
	}
	if n < len(r.IDs) {
		d.text = append(d.text[:d.certain], r.IDs...)
		d.certain, d.probs = len(d.text), d.probs[:0]
		return
	}
	d.certain += n
	d.probs = append(d.probs[:0], d.probs[n:]...)
}

// Draft implements [method.Drafter]: it runs no rows.
func (d *pearlDrafter) Draft(_ context.Context, t *method.Tree) error {
	if err := d.err; err != nil {
		d.err = nil
		return err
	}
	at := method.Root
	for i, p := range d.probs {
		if at = t.Add(at, d.text[d.certain+i], grow.Class(0, p), grow.Belief(0, p)); at == method.Root {
			return nil
		}
	}
	return nil
}

// Work implements [method.Ahead]: it drafts behind the drafts that wait until the step has ended. A pass that has begun when the step ends is
// finished, and its draft waits like the others.
func (d *pearlDrafter) Work(ctx context.Context) {
	for n := 0; n < d.most && len(d.probs) < pearlLongest && (n < d.least || ctx.Err() == nil); n++ {
		ok, err := d.next(context.Background())
		if d.err = err; !ok || err != nil {
			return
		}
	}
}

// next drafts a token behind those that wait.
func (d *pearlDrafter) next(ctx context.Context) (ok bool, err error) {
	d.model.Follow(d.text, d.certain)
	if ok, err = d.model.Root(ctx); !ok || err != nil {
		return false, err
	}
	best, err := d.sampler.Candidates(d.best[:], d.model.Logits(0), len(d.text)-d.source)
	if err != nil {
		return false, err
	}
	d.text, d.probs = append(d.text, best[0].ID), append(d.probs, best[0].P)
	return true, nil
}

// Close implements [method.Closer].
func (d *pearlDrafter) Close() error { return d.model.Close() }

// MemoryFor implements [method.Sized].
func (d *pearlDrafter) MemoryFor(int, sample.Params) method.Memory { return d.model.MemoryOf(1) }

// Held implements [method.Sized].
func (d *pearlDrafter) Held() method.Memory { return method.Memory{Logits: d.model.HeldBytes()} }
