package search

import (
	"context"
	"errors"
	"slices"

	"grove/internal/engine"
	"grove/internal/text/token"
)

// Samples go on side by side, in steps that they share.
type Samples struct {
	All       []Sample
	MaxTokens int  // tokens that each may have; 0: as many as the context holds
	Weigh     bool // samples note the probabilities by which their tokens are drawn
	ctx       context.Context
	errs      []error
	forks     []*engine.Sequence
	enders    func() func(engine.SampledToken) bool
	watch     *Watch
	varied    int // sample indices that were taken by Vary
}

// Sample is one of several answers on their way: a sequence with a sample index, and the tokens that it has drawn.
type Sample struct {
	Seq   *engine.Sequence
	Index int // its sample index
	Drawn []engine.SampledToken
	Ended bool      // by itself
	Full  bool      // it has as many tokens as it may have, or as the context holds
	Waits bool      // its program lets it wait: it draws nothing
	Probs []float64 // by which Drawn were drawn, where samples note them; 0: Follow gave the token
	row   []float64 // the probabilities of all tokens
	ends  func(engine.SampledToken) bool
}

// Fork makes the samples from..to-1 of a problem whose first sequence stands behind the prompt. That
// sequence becomes the first of them. It makes fewer where fewer slots are free, one at least: a search waits for no
// slot, so that searches cannot wait for each other.
func Fork(ctx context.Context, p *Problem, from, to int) (*Samples, error) {
	ss := &Samples{MaxTokens: p.MaxTokens, ctx: ctx, enders: p.Ender, watch: p.Watch}
	p.First.SetSampleIndex(p.Index + from)
	for i := from; i < to; i++ {
		s := p.First
		if i > from {
			var err error
			if s, err = p.First.Fork(p.Index + i); errors.Is(err, engine.ErrBusy) {
				break
			} else if err != nil {
				return nil, errors.Join(err, ss.Close())
			}
			ss.forks = append(ss.forks, s)
			ss.watch.Branched()
		}
		ss.All = append(ss.All, Sample{Seq: s, Index: p.Index + i, ends: p.Ender()})
		ss.All[i-from].Full = ss.full(&ss.All[i-from])
	}
	ss.errs = make([]error, len(ss.All))
	ss.watch.Running(len(ss.All))
	return ss, nil
}

// ForkAll makes the first n samples of a problem, as Fork does, or none: it waits in the queue until all have a slot, and holds none meanwhile.
func ForkAll(ctx context.Context, p *Problem, n int) (*Samples, error) {
	for {
		if err := engine.ReserveSlots(ctx, p.First, n-1); err != nil {
			return nil, err
		}
		ss, err := Fork(ctx, p, 0, n)
		if err != nil || len(ss.All) == n {
			return ss, err
		}
		if err := ss.Close(); err != nil { // the caller was away for so long that others got the slots
			return nil, err
		}
	}
}

// Turns draws n samples of a problem with a function that draws those of a turn, which is told the samples of the turns before.
// Where fewer slots are free than there are samples, there are several turns, with the same samples.
func Turns(ctx context.Context, p *Problem, n int, draw func(turn *Samples, before []Sample) error) (all []Sample, err error) {
	prompt := p.First.Len()
	for len(all) < n {
		if p.First.Len() > prompt { // it was a sample of the turn before
			if err := p.First.Truncate(prompt); err != nil {
				return nil, err
			}
		}
		turn, err := Fork(ctx, p, len(all), n)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(draw(turn, all), turn.Close()); err != nil {
			return nil, err
		}
		all = append(all, turn.All...)
	}
	return all, nil
}

// DrawAll draws until each sample is ended or full.
func (ss *Samples) DrawAll() error {
	for {
		if drew, err := ss.Draw(); err != nil || !drew {
			return err
		}
	}
}

// DrawUpTo calls Draw n times, or until no sample draws.
func (ss *Samples) DrawUpTo(n int) error {
	for range n {
		if drew, err := ss.Draw(); err != nil || !drew {
			return err
		}
	}
	return nil
}

// Let lets those samples draw of which some is true, and the others wait; nil: all draw.
func (ss *Samples) Let(some []bool) {
	for i := range ss.All {
		ss.All[i].Waits = some != nil && !some[i]
	}
}

// GoOn reports whether a sample goes on.
func (ss *Samples) GoOn() bool {
	return slices.ContainsFunc(ss.All, func(s Sample) bool { return s.GoesOn() })
}

// Draw draws a token for each sample that is not ended, full or waiting, in steps that they share, and reports whether
// there was one. An error of one sample is the error of all.
func (ss *Samples) Draw() (drew bool, err error) {
	drew, errs := ss.Step()
	return drew, errors.Join(errs...)
}

// Step is Draw with the error of each sample; a sample with an error is full. The slice is good until the next call.
func (ss *Samples) Step() (drew bool, errs []error) {
	clear(ss.errs)
	done := make(chan struct{})
	running := 0
	for i := range ss.All {
		if one := &ss.All[i]; one.GoesOn() && !one.Waits {
			running++
			go func() {
				ss.errs[i] = one.draw(ss.ctx, ss)
				done <- struct{}{}
			}()
		}
	}
	if running > 0 {
		ss.watch.Running(running)
	}
	for range running {
		<-done
	}
	for i, err := range ss.errs {
		ss.All[i].Full = ss.All[i].Full || err != nil
	}
	return running > 0, ss.errs
}

// Follow gives a sample a token that its program has chosen, in place of a draw. A sample for which the context has no place is full.
func (ss *Samples) Follow(ctx context.Context, i int, id token.ID) error {
	one := &ss.All[i]
	if err := ctx.Err(); err != nil {
		return err
	}
	d, err := one.Seq.Describe(ctx, id)
	if err == nil {
		err = one.Seq.Follow(id)
	}
	return ss.give(one, d, err)
}

// Try runs several tokens behind a sample in one step and gives it the one that choose returns by their states; see [engine.Sequence.Try].
func (ss *Samples) Try(ctx context.Context, i int, ids []token.ID, choose func(states [][]float32) int) error {
	d, err := ss.All[i].Seq.Try(ctx, ids, choose)
	return ss.give(&ss.All[i], d, err)
}

// DrawFrom gives a sample a token that is drawn from other logits than the model's; see [engine.Sequence.DrawFrom].
func (ss *Samples) DrawFrom(ctx context.Context, i int, logits []float32) error {
	d, err := ss.All[i].Seq.DrawFrom(ctx, logits)
	return ss.give(&ss.All[i], d, err)
}

// give adds a token that a sample's sequence has drawn. A sample for which the context has no place is full.
func (ss *Samples) give(one *Sample, d engine.SampledToken, err error) error {
	if errors.Is(err, engine.ErrContext) {
		one.Full = true
		return nil
	}
	if err == nil {
		ss.take(one, d)
		ss.watch.Drew(1)
	}
	return err
}

// First calls step until the first sample, which is the answer, is ended or full, or the context of the search has ended, and closes the forks.
func (ss *Samples) First(figures map[string]float64, step func() error) (*Result, error) {
	main := &ss.All[0]
	var err error
	for err == nil && main.GoesOn() {
		if err = ss.ctx.Err(); err == nil { // a step may compute nothing
			err = step()
		}
	}
	if err = errors.Join(err, ss.Close()); err != nil {
		return nil, err
	}
	return &Result{Tokens: main.Drawn, Index: main.Index, Attempts: []Attempt{main.Attempt()}, Figures: figures}, nil
}

// FollowAll is Follow for tokens that are computed in passes: for as many of them as the context has places.
func (ss *Samples) FollowAll(ctx context.Context, i int, ids []token.ID) error {
	one := &ss.All[i]
	drawn, err := one.Seq.FollowAll(ctx, ids[:min(len(ids), one.places())])
	for _, d := range drawn {
		ss.take(one, d)
	}
	return err
}

// Copy makes sample to a copy of sample from, with its own sample index, so that it goes on otherwise.
func (ss *Samples) Copy(to, from int) error {
	t, f := &ss.All[to], &ss.All[from]
	if err := t.Seq.Become(f.Seq); err != nil {
		return err
	}
	ss.watch.Branched()
	ss.replay(t, slices.Clone(f.Drawn), f.Probs)
	t.Full = f.Full
	return nil
}

// Rewind makes drawn the tokens of a sample, which begin as those that it has: it cuts what it has besides, and appends the others, as many as the
// context has places for.
func (ss *Samples) Rewind(i int, drawn []engine.SampledToken) error {
	one := &ss.All[i]
	same := 0
	for same < min(len(drawn), len(one.Drawn)) && drawn[same].ID == one.Drawn[same].ID {
		same++
	}
	if err := one.Seq.Truncate(one.Seq.Len() - len(one.Drawn) + same); err != nil {
		return err
	}
	drawn = drawn[:min(len(drawn), same+one.places())]
	for _, d := range drawn[same:] {
		if err := one.Seq.Follow(d.ID); err != nil {
			return err
		}
	}
	ss.replay(one, drawn, one.Probs[:same])
	return nil
}

// replay gives a sample tokens that its sequence has, with the probabilities by which the first were drawn.
func (ss *Samples) replay(one *Sample, drawn []engine.SampledToken, probs []float64) {
	probs = slices.Clone(probs)
	one.Drawn, one.Probs, one.Ended, one.ends = one.Drawn[:0:0], one.Probs[:0:0], false, ss.enders()
	one.Full = ss.full(one)
	for _, d := range drawn {
		ss.take(one, d)
	}
	copy(one.Probs, probs)
}

// draw draws a token.
func (one *Sample) draw(ctx context.Context, ss *Samples) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ss.Weigh {
		if one.row, err = one.Seq.Probs(ctx, one.row); err != nil {
			return err
		}
	}
	d, err := one.Seq.Next(ctx)
	n := len(one.Drawn)
	if err = ss.give(one, d, err); err == nil && ss.Weigh && len(one.Drawn) > n {
		one.Probs[n] = one.row[d.ID]
	}
	return err
}

// GoesOn reports whether the sample is neither ended nor full.
func (one *Sample) GoesOn() bool { return !one.Ended && !one.Full }

// places returns how many tokens fit behind a sample's text.
func (one *Sample) places() int { return max(0, one.Seq.Engine().Context()-one.Seq.Len()) }

// full reports whether a sample has as many tokens as it may have, or its sequence as many as the context holds: whoever rewinds or copies samples relies
// on their tokens alone to say so.
func (ss *Samples) full(one *Sample) bool {
	return ss.MaxTokens > 0 && len(one.Drawn) >= ss.MaxTokens || one.places() == 0
}

// take adds a token, which its sequence has.
func (ss *Samples) take(one *Sample, d engine.SampledToken) {
	one.Drawn, one.Probs = append(one.Drawn, d), append(one.Probs, 0)
	one.Ended = one.ends(d)
	one.Full = ss.full(one)
}

// Close closes the forks.
func (ss *Samples) Close() (err error) {
	for _, s := range ss.forks {
		err = errors.Join(err, s.Close())
	}
	ss.forks = nil
	return err
}

// Aside lets those samples draw of which some is true, in do, by sample indices of their own, and gives them the tokens back that they had.
func (ss *Samples) Aside(some []bool, do func() error) error {
	ss.Let(some)
	defer ss.Let(nil)
	kept := ss.Vary(some)
	err := do()
	return errors.Join(err, ss.Restore(kept, some))
}

// Vary gives the samples of which some is true sample indices by which no token was drawn, and returns all samples as they are, for Restore.
func (ss *Samples) Vary(some []bool) (kept []Sample) {
	for i := range ss.All {
		if kept = append(kept, ss.All[i]); some[i] {
			ss.varied++
			ss.All[i].Seq.SetSampleIndex(SpareIndex(ss.All[0].Index, ss.varied))
		}
	}
	return kept
}

// SpareIndex returns sample index n of those that an answer has for draws that are not its own. No answer's own index is among them.
func SpareIndex(answer, n int) int {
	const above = 1 << 30 // the indices of answers are below it
	return above | (answer<<16+n)&(above-1)
}

// Restore gives the samples of which some is true the tokens and the sample indices back that they had.
func (ss *Samples) Restore(kept []Sample, some []bool) error {
	for i, back := range some {
		if !back {
			continue
		}
		if err := ss.Rewind(i, kept[i].Drawn); err != nil {
			return err
		}
		s := &ss.All[i]
		s.Probs, s.Ended, s.Full = kept[i].Probs, kept[i].Ended, kept[i].Full
		s.Seq.SetSampleIndex(s.Index)
	}
	return nil
}

// IDs returns the tokens of a sample.
func (one *Sample) IDs() (ids []token.ID) {
	for _, d := range one.Drawn {
		ids = append(ids, d.ID)
	}
	return ids
}

// Logprob returns the sum of the logarithms of the probabilities of a sample's tokens.
func (one *Sample) Logprob() (sum float64) {
	for _, d := range one.Drawn {
		sum += float64(d.Logprob)
	}
	return sum
}

// Attempt returns what a result says of a sample.
func (one *Sample) Attempt() Attempt {
	return Attempt{Index: one.Index, Tokens: len(one.Drawn), Ended: one.Ended, IDs: one.IDs(), Logprob: one.Logprob()}
}
