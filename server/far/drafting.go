package far

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"grove"
	"grove/internal/text/token"
	"grove/server/access"
	"grove/server/far/remote"
)

// pace is what is known of the far server's speed, from all answers. The proxy's lock guards it.
type pace struct {
	steps  remote.Steps
	draft  remote.Average // seconds of a draft here
	accept remote.Average
}

const (
	likely    = 0.7 // a draft is accepted with that probability, before anything is known
	idBytes   = 3   // of a draft in a frame, about
	tries     = 32  // rounds in which no draft is accepted, behind which drafting pauses
	mostPaced = 512 // rounds that it pauses at most
	piece     = 4   // drafts that are sent together where the far side does not wait for them
)

// drafting is a text of the far side that is drafted for here. Its goroutine drafts; the answer's tells it what becomes of the text.
type drafting struct {
	a      *answer
	answer int
	start  remote.Start
	told   chan struct{} // has a value where there is news

	mu    sync.Mutex
	news  []remote.Tokens
	count int // tokens of the text, with the news
	sum   uint64
	total Totals

	// of the goroutine
	text   []token.ID
	digest uint64
	drafts []token.ID // behind the text
	sent   int        // of these
	seq    *grove.Sequence
	same   int // tokens of the sequence that are those of the text and the drafts

	barren, pause, idle int // rounds without an accepted draft; that drafting pauses; that are left of it
}

// start begins to draft for a text, or begins anew. Texts that the near model cannot take are not drafted for.
func (a *answer) start(ctx context.Context, s remote.Start) {
	d := &drafting{a: a, answer: s.Answer, start: s, told: make(chan struct{}, 1), text: s.Text, count: len(s.Text), digest: remote.Digest(0, s.Text)}
	d.sum = d.digest
	if old := a.drafts[s.Answer]; old != nil {
		d.total = old.end()
	}
	a.drafts[s.Answer] = d
	var sampling grove.Sampling
	if a.model == nil || json.Unmarshal([]byte(s.Sampling), &sampling) != nil || len(s.Text) == 0 {
		return
	}
	a.working.Go(func() {
		r := grove.Request{
			PromptIDs: s.Text, Sampling: sampling, Seed: &sampling.Seed, SampleIndex: s.SampleIndex, Method: grove.MethodOff,
			CacheSalt: access.CallerOf(ctx).Salt(""),
		}
		var err error
		defer a.x.Server.Pool.Guard(ctx, &err) // the far side goes on without drafts
		if d.seq, err = a.model.Model.NewSequence(ctx, r); err != nil {
			return // the far side goes on without drafts
		}
		d.same = d.seq.Len()
		d.run(ctx)
		_ = d.seq.Close() // it held nothing but its slot
	})
}

// end lets the goroutine end, and returns what was done.
func (d *drafting) end() Totals {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count = -1
	d.wake()
	return d.total
}

func (d *drafting) wake() {
	select {
	case d.told <- struct{}{}:
	default:
	}
}

// tell notes tokens of the far side. They must continue the text, with the digest that the text has then.
func (d *drafting) tell(t remote.Tokens) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sum = remote.Digest(d.sum, t.IDs)
	if t.At != d.count || d.sum != t.Digest || len(t.IDs) == 0 {
		return errLie
	}
	if d.a.model != nil {
		for _, id := range t.IDs {
			if int(id) >= d.a.model.Info.Vocabulary {
				return errLie
			}
		}
	}
	d.count += len(t.IDs)
	d.total.Tokens += len(t.IDs)
	d.total.Rounds++
	d.total.Accepted += t.Accepted
	d.news = append(d.news, t)
	d.wake()
	return nil
}

// run drafts until the text or ctx ends.
func (d *drafting) run(ctx context.Context) {
	for ctx.Err() == nil {
		ended := d.follow()
		if ended {
			return
		}
		if d.idle == 0 {
			n, wait := d.plan()
			d.send(n, wait)
			if len(d.drafts) < 2*n {
				if d.next(ctx) != nil {
					return // the context is full, or the model fails: the far side goes on without drafts
				}
				continue
			}
		}
		select {
		case <-d.told:
		case <-ctx.Done():
		}
	}
}

// follow takes the news: the drafts that have become text leave the others in their place; where one differs all are dropped.
func (d *drafting) follow() (ended bool) {
	d.mu.Lock()
	news := d.news
	d.news = nil
	ended = d.count < 0
	d.mu.Unlock()
	for i := range news {
		d.commit(&news[i])
	}
	return ended
}

func (d *drafting) commit(t *remote.Tokens) {
	n := 0
	for n < len(t.IDs) && n < len(d.drafts) && t.IDs[n] == d.drafts[n] {
		n++
	}
	p := d.a.p
	p.mu.Lock()
	for i := range min(len(t.IDs), n+1, d.sent) {
		hit := 0.0
		if i < n {
			hit = 1
		}
		p.pace.accept.Add(hit)
	}
	if t.Rows > 0 {
		p.pace.steps.Add(t.Rows, t.Step)
	}
	p.mu.Unlock()
	if n == len(t.IDs) {
		d.drafts, d.sent = d.drafts[n:], max(0, d.sent-n)
	} else {
		d.same = min(d.same, len(d.text)+n)
		d.drafts, d.sent = nil, 0
	}
	d.text = append(d.text, t.IDs...)
	d.digest = remote.Digest(d.digest, t.IDs)
	d.rest(t.Accepted)
}

// rest lets drafting pause where no draft has come in time for long.
func (d *drafting) rest(accepted int) {
	switch {
	case accepted > 0:
		d.barren, d.pause = 0, 0
	case d.idle > 0:
		d.idle--
	default:
		if d.barren++; d.barren >= tries && d.a.p.config.Wait == 0 {
			d.pause = min(max(tries, 2*d.pause), mostPaced)
			d.barren, d.idle = 0, d.pause
		}
	}
}

// plan returns the number of drafts of a round, and how long the far side is to wait for them.
func (d *drafting) plan() (n int, wait time.Duration) {
	p := d.a.p
	t := d.a.link.Traffic()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := remote.Cost{Accept: likely, Draft: p.pace.draft.Value(), Bytes: idBytes, Bandwidth: t.Bandwidth, RoundTrip: t.RoundTrip.Seconds(), Step: p.pace.steps.Time}
	if p.pace.accept.Value() > 0 {
		c.Accept = p.pace.accept.Value()
	}
	n = c.Length(p.config.Drafts)
	switch {
	case p.config.Wait != 0:
		wait = max(0, p.config.Wait)
	case p.pace.steps.Known() && t.RoundTrip > 0 && c.Pays(n):
		const slack = 10 * time.Millisecond
		wait = time.Duration(2*c.Round(n)*float64(time.Second)) + slack
	}
	return n, wait
}

// next drafts a token behind the text and the drafts.
func (d *drafting) next(ctx context.Context) error {
	start := time.Now()
	behind := d.seq.Len() != d.same || d.same < len(d.text)
	if d.seq.Len() > d.same {
		if err := d.seq.Truncate(d.same); err != nil {
			return err
		}
	}
	if d.same < len(d.text) {
		if err := d.seq.Append(ctx, d.text[d.same:]); err != nil {
			return err
		}
	}
	drawn, err := d.seq.Next(ctx)
	if err != nil {
		return err
	}
	d.drafts = append(d.drafts, drawn.ID)
	d.same = d.seq.Len()
	if !behind { // else tokens of the text were computed too
		p := d.a.p
		p.mu.Lock()
		p.pace.draft.Add(time.Since(start).Seconds())
		p.mu.Unlock()
	}
	return nil
}

// send sends the drafts whose turn it is: a round's at once where the far side waits for them, else a few at a time, as far as a round's.
func (d *drafting) send(n int, wait time.Duration) {
	to := min(len(d.drafts), n)
	if to <= d.sent || to < n && (wait > 0 || to-d.sent < piece) {
		return
	}
	f := remote.Drafts{Answer: d.answer, At: len(d.text) + d.sent, Digest: remote.Digest(d.digest, d.drafts[:d.sent]), Wait: wait, IDs: d.drafts[d.sent:to]}
	if d.a.link.TrySend(remote.KindDrafts, remote.Append(nil, &f)) {
		d.mu.Lock()
		d.total.Drafted += to - d.sent
		d.mu.Unlock()
		d.sent = to
	}
}
