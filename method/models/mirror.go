// mirror.go drafts by a second model, and while the target's step runs rolls out what would be drafted behind each of the likeliest outcomes of
// the step: if the outcome is among them the next step's drafts are there when it begins (Mirror-SD: Mirror Speculative Decoding, 2025).
//
// In the paper the target's middle layer names the outcomes. A step gives its results when it has ended, so here the draft
// model names them: an outcome is a number of accepted drafts and one of the tokens that the draft model finds likeliest behind them.

package models

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

// The size of the drafts.
const (
	mirrorLength = 4            // of a chain
	outcomes     = 8            // that are rolled out
	mirrorRanks  = outcomes + 1 // tokens that are looked at behind a node: one is the chain's own
	mirrorLeast  = 2            // tokens of a roll-out, however short the step is
)

func init() {
	method.Register(method.Info{
		Name: "mirror", Paper: "Mirror-SD: drafts behind each likely outcome of a step, 2025", Kind: method.KindModel, Grade: method.Exact,
		NotAuto: "its threads are taken from the step",
		Needs:   "a draft model with the same vocabulary", RunsRows: true,
		CheckNeeds: func(e method.Env) error { return grow.MeetsDraft(e, true) },
		Open:       func(e method.Env) (method.Method, error) { return mirror{e}, nil },
	})
}

// mirror is a draft model.
type mirror struct{ env method.Env }

// NewDrafter implements [method.Method].
func (m mirror) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &mirrorDrafter{
		model: grow.NewFollower(m.env.Draft, m.env.Vocabulary), vocabulary: min(m.env.Vocabulary, m.env.Draft.Size().Vocabulary),
		length: mirrorLength, outcomes: outcomes, best: make([]sample.Candidate, mirrorRanks),
	}, nil
}

// draft is a token of a chain, with the draft model's probability.
type draft struct {
	id token.ID
	p  float32
}

// outcome is what a step may give: the first drafts of the chain, and another token; and the chain that is rolled out behind it.
type outcome struct {
	accepted int
	id       token.ID
	score    float32 // its probability, by the draft model
	live     int     // the row of the end of what is rolled out
	chain    []draft
}

type mirrorDrafter struct {
	model      *grow.Follower
	vocabulary int // of its logits
	length     int
	outcomes   int
	sampler    *sample.Chain
	source     int // tokens before the answer's own text
	best       []sample.Candidate

	text  []token.ID
	chain []draft // behind the text
	ready bool    // the chain was rolled out
	asked bool    // the chain is drafted in this round
	all   []outcome
	rows  []grow.LiveRow
	err   error // of the last Work

	hits, misses int
}

// Begin implements [method.Drafter].
func (d *mirrorDrafter) Begin(h *method.History) (err error) {
	d.text, d.chain, d.source = append(d.text[:0], h.IDs()...), d.chain[:0], h.SourceLen
	d.all, d.ready, d.asked, d.err = d.all[:0], false, false, nil
	d.sampler, err = sample.NewChain(sample.Settings{Params: h.Noise.Sampling, SampleIndex: h.Noise.SampleIndex}, d.vocabulary)
	return errors.Join(err, d.model.Begin())
}

// Committed implements [method.Drafter]. What was rolled out behind the outcome becomes the chain.
func (d *mirrorDrafter) Committed(r method.Update) {
	d.text = append(d.text, r.IDs...)
	d.ready, d.asked = false, false
	n := 0
	for n < len(r.IDs) && n < len(d.chain) && d.chain[n].id == r.IDs[n] {
		n++
	}
	switch {
	case n == len(r.IDs): // the last draft was accepted without a row
		d.chain = append(d.chain[:0], d.chain[n:]...)
		d.ready = len(d.chain) > 0
	case n == len(r.IDs)-1 && len(d.all) > 0:
		d.chain = d.chain[:0]
		for i := range d.all {
			if o := &d.all[i]; o.accepted == n && o.id == r.IDs[n] {
				d.chain = append(d.chain, o.chain...)
			}
		}
		if d.ready = len(d.chain) > 0; d.ready {
			d.hits++
		} else {
			d.misses++
		}
	}
	d.all = d.all[:0]
}

// Draft implements [method.Drafter].
func (d *mirrorDrafter) Draft(ctx context.Context, t *method.Tree) error {
	err := d.err
	if d.err = nil; err != nil {
		return err
	}
	if d.asked = true; !d.ready {
		if err := d.draft(ctx); err != nil {
			return err
		}
	}
	at := method.Root
	for _, c := range d.chain {
		if at = t.Add(at, c.id, grow.Class(0, c.p), grow.Belief(0, c.p)); at == method.Root {
			break
		}
	}
	return nil
}

// draft drafts a chain behind the text, a pass for each token.
func (d *mirrorDrafter) draft(ctx context.Context) error {
	d.chain = d.chain[:0]
	d.model.Follow(d.text, len(d.text))
	ok, err := d.model.Root(ctx)
	for at := d.model.Base; ok && err == nil; {
		c, err := d.candidates(0, len(d.chain), 1)
		if err != nil {
			return err
		}
		d.chain = append(d.chain, draft{c[0].ID, c[0].P})
		room, depth := d.model.Room()
		if len(d.chain) == d.length || room < 1 || depth < len(d.chain) {
			return nil
		}
		d.rows = append(d.rows[:0], grow.LiveRow{ID: c[0].ID, Parent: at})
		if err := d.model.Run(ctx, d.rows); err != nil {
			return err
		}
		at = len(d.model.Live) - 1
	}
	return err
}

// candidates returns the tokens that are likeliest drawn by the logits of a row of the last pass, depth drafts behind the text.
func (d *mirrorDrafter) candidates(row, depth, n int) ([]sample.Candidate, error) {
	return d.sampler.Candidates(d.best[:min(n, len(d.best))], d.model.Logits(row), len(d.text)+depth-d.source)
}

// Work implements [method.Ahead]: it rolls out the likeliest outcomes, all by a token in a pass, until the step has ended.
func (d *mirrorDrafter) Work(ctx context.Context) {
	if !d.asked {
		return
	}
	passes := context.Background() // one that has begun is finished
	ok, err := d.foresee(passes)
	for n := 0; ok && err == nil && n < d.length && (n < mirrorLeast || ctx.Err() == nil); n++ {
		ok, err = d.roll(passes, n)
	}
	d.err = err
}

// foresee runs the chain in one pass and picks the outcomes.
func (d *mirrorDrafter) foresee(ctx context.Context) (ok bool, err error) {
	d.rows, d.all = d.rows[:0], d.all[:0]
	for i, c := range d.chain {
		d.rows = append(d.rows, grow.LiveRow{ID: c.id, Parent: i - 1})
	}
	d.model.Follow(d.text, len(d.text))
	n, err := d.model.Join(ctx, d.rows)
	if err != nil {
		return false, err
	}
	score := float32(1)
	for i := range n {
		best, err := d.candidates(i, i, d.outcomes+1)
		if err != nil {
			return false, err
		}
		for rank, c := range best {
			if i < len(d.chain) && c.ID == d.chain[i].id {
				continue
			}
			d.foreseen(outcome{accepted: i, id: c.ID, score: score * grow.Belief(rank, c.P), live: d.model.Base + i})
		}
		if i < len(d.chain) {
			score *= grow.Belief(0, d.chain[i].p)
		}
	}
	slices.SortStableFunc(d.all, func(a, b outcome) int { return cmp.Compare(b.score, a.score) })
	d.all = d.all[:min(len(d.all), d.outcomes)]
	return len(d.all) > 0, nil
}

// foreseen adds an outcome, in the storage of an earlier one.
func (d *mirrorDrafter) foreseen(o outcome) {
	if n := len(d.all); n < cap(d.all) {
		o.chain = d.all[:n+1][n].chain[:0]
	}
	d.all = append(d.all, o)
}

// roll adds a token to each roll-out: first the row of the outcome's own token runs, then those of the tokens rolled out.
func (d *mirrorDrafter) roll(ctx context.Context, n int) (ok bool, err error) {
	if room, depth := d.model.Room(); room < len(d.all) || depth < d.length+n+1 {
		return false, nil
	}
	d.rows = d.rows[:0]
	for i := range d.all {
		row := grow.LiveRow{ID: d.all[i].id, Parent: d.all[i].live}
		if n > 0 {
			row.ID = d.all[i].chain[n-1].id
		}
		d.rows = append(d.rows, row)
	}
	first := len(d.model.Live)
	if err := d.model.Run(ctx, d.rows); err != nil {
		return false, err
	}
	for i := range d.all {
		o := &d.all[i]
		c, err := d.candidates(i, o.accepted+1+n, 1)
		if err != nil {
			return false, err
		}
		o.live, o.chain = first+i, append(o.chain, draft{c[0].ID, c[0].P})
	}
	return true, nil
}

// Close implements [method.Closer].
func (d *mirrorDrafter) Close() error { return d.model.Close() }

// MemoryFor implements [method.Sized].
func (d *mirrorDrafter) MemoryFor(int, sample.Params) method.Memory {
	return d.model.MemoryOf(max(1+d.length, d.outcomes))
}

// Held implements [method.Sized].
func (d *mirrorDrafter) Held() method.Memory { return method.Memory{Logits: d.model.HeldBytes()} }
