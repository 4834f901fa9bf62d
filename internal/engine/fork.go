package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// ErrCancelled reports a sequence that another one of its family has cancelled.
var ErrCancelled = step.ErrCancelled

// family is the sequences that come from one by forks.
type family struct {
	mu      sync.Mutex
	members []*Sequence
}

func (f *family) leave(s *Sequence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = slices.DeleteFunc(f.members, func(o *Sequence) bool { return o == s })
}

// Fork opens a sequence that goes on from the text as it is, with the same settings and another sample index. It
// shares the text's full pages; the rest is copied. What was drawn and not taken is not part of the text. Errors:
// [ErrClosed]; [ErrBusy] where no slot is free: a fork does not wait for one; see [ReserveSlots].
func (s *Sequence) Fork(sampleIndex int) (*Sequence, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	s.round.forget()
	f := s.e.newSequence(s.answer, s.chain.Fork())
	f.SetSampleIndex(sampleIndex)
	f.family = s.family
	most := s.e.steps.MaxOpen
	if s.e.steps.Kept(&s.trunk) > 0 {
		most = math.MaxInt // its slot is there, however many others wait
	}
	if err := s.e.steps.Open(&f.trunk, most); err != nil {
		return nil, err
	}
	f.trunk.Owner = s.trunk.Owner
	f.family.mu.Lock()
	f.family.members = append(f.family.members, f)
	f.family.mu.Unlock()
	if src := s.trunk.Source; src != nil {
		f.trunk.Source = &step.Source{IDs: src.IDs, Name: src.Name, States: src.States}
	}
	f.active, f.forked = true, true
	f.prefix, f.first = s.prefix, s.first
	f.trunk.Terms, f.text, f.prompt, f.known, f.trunk.Begun = s.trunk.Terms, slices.Clone(s.text), s.prompt, s.known, s.trunk.Begun
	copy(f.logits, s.logits)
	err := s.forkTrunk(f)
	if err == nil && s.drafts != nil {
		if err = f.SetDrafting(s.drafts.Methods(), s.drafts.History.Prediction); err == nil {
			err = f.SetRule(s.drafts.Rule)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReserveSlots waits until n forks of a sequence can have slots, all of them at once, and keeps these for [Sequence.Fork]. A sequence that has to wait gives its own slot back meanwhile: so two that reserve
// hold nothing that the other waits for; what the cache has lost of its text is computed anew. Errors: more slots than there are; those of [Sequence.Append].
func ReserveSlots(ctx context.Context, s *Sequence, n int) error {
	if err := s.usable(); err != nil {
		return err
	}
	if n < 1 {
		return nil
	}
	if n >= s.e.steps.Seqs {
		return fmt.Errorf("engine: %d forks of a sequence at once; there are %d slots", n, s.e.steps.Seqs)
	}
	s.round.forget()
	if err := s.e.steps.ReserveSlots(&s.trunk, n); err != nil {
		return err
	}
	err := s.do(ctx, reservation{s})
	if err == nil {
		err = s.flush(ctx)
	}
	return err
}

// reservation is the job of a sequence that waits for slots alone.
type reservation struct{ s *Sequence }

// Need implements [step.Job].
func (g reservation) Need() (step.Need, error) {
	if g.s.trunk.Preempted {
		g.s.known = 0 // its forks share its pages: they are computed first
	}
	return step.Need{}, g.s.settle()
}

// Place implements [step.Job].
func (reservation) Place(*step.Step) error { return nil }

// Take implements [step.Job].
func (reservation) Take(*step.Step) (done bool, err error) { return true, nil }

// forkTrunk gives a fork its slot and its pages. Where no page is free for the part that is copied, the fork computes
// that anew.
func (s *Sequence) forkTrunk(f *Sequence) error {
	e := s.e
	e.steps.Lock()
	defer e.steps.Unlock()
	if err := s.settle(); err != nil {
		return err
	}
	if err := e.steps.TakeSlot(&s.trunk); err != nil {
		return fmt.Errorf("engine: a fork: %w", err)
	}
	if s.trunk.Seq < 0 {
		return nil
	}
	seq, err := e.steps.Cache.Fork(s.trunk.Seq, forest.Trunk)
	switch {
	case errors.Is(err, kv.ErrFull):
		return e.steps.Admit(&f.trunk)
	case err != nil:
		return err
	}
	e.steps.Bind(&f.trunk, seq)
	return nil
}

// CancelSiblings cancels all sequences that have forks with this one in common: their running calls end within a
// step, and all later ones are refused, with [ErrCancelled].
func (s *Sequence) CancelSiblings() {
	s.family.mu.Lock()
	defer s.family.mu.Unlock()
	for _, o := range s.family.members {
		if o != s {
			o.e.steps.Cancel(&o.trunk)
		}
	}
}

// SetSampleIndex changes the sample index, and so all further draws. What was drawn and not taken is forgotten.
func (s *Sequence) SetSampleIndex(i int) {
	s.round.forget()
	s.answer.SampleIndex = i
	s.chain.SetSampleIndex(i)
	if s.drafts != nil {
		s.drafts.History.Noise.SampleIndex = i
		s.drafts.Restart()
	}
}

// Truncate cuts the text to its first n tokens and forgets what was drawn and not taken. Stages and drafters
// begin anew with what is left. Errors: [ErrClosed], a length out of range.
func (s *Sequence) Truncate(n int) error {
	if err := s.usable(); err != nil {
		return err
	}
	if n < 0 || n > len(s.text) {
		return fmt.Errorf("engine: truncating a text of %d tokens to %d", len(s.text), n)
	}
	s.round.forget()
	e := s.e
	e.steps.Lock()
	defer e.steps.Unlock()
	last := s.cutPrefix(n)
	if err := s.cut(last); err != nil {
		return err
	}
	s.text, s.known, s.prompt = s.text[:n], min(s.known, last), min(s.prompt, n)
	s.chain.Begin(s.text[:s.prompt])
	s.chain.Append(s.text[s.prompt:], false)
	if s.drafts != nil {
		s.drafts.Clear(token.None) // rows of the text as it was
		s.drafts.Restart()
	}
	return nil
}

// cut settles, and cuts what the cache has of the text to its first n tokens, or to fewer: what a window or a state has passed is computed anew. The
// caller holds the maker's lock.
func (s *Sequence) cut(n int) error {
	err := s.settle()
	if err == nil && s.trunk.Seq >= 0 && s.trunk.Len() > n {
		_, err = s.e.steps.Cache.Rewind(s.trunk.Seq, n)
	}
	return err
}

// Logits computes what is not computed of the text and returns the logits behind its end, valid until the sequence's
// next call. What was drawn and not taken is forgotten. Errors are those of [Sequence.Append].
func (s *Sequence) Logits(ctx context.Context) ([]float32, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	s.round.forget()
	return s.logits, s.flush(ctx)
}

// Likeliest returns the n tokens that are likeliest behind the text once stages have changed the logits, with the
// logarithms of the probabilities that they then have. Errors are those of Logits.
func (s *Sequence) Likeliest(ctx context.Context, n int) ([]sample.Token, error) {
	logits, err := s.Processed(ctx)
	if err != nil {
		return nil, err
	}
	return s.chain.Top(logits, n)
}

// Processed is Logits once stages have changed them.
func (s *Sequence) Processed(ctx context.Context) ([]float32, error) {
	logits, err := s.Logits(ctx)
	if err != nil {
		return nil, err
	}
	return s.chain.Process(0, logits), nil
}

// Follow appends a token that was drawn elsewhere to the text; a later call computes it. Errors: those of
// [Sequence.Append] but for the model's.
func (s *Sequence) Follow(id token.ID) error {
	if s.e.encoder != nil && s.trunk.Source == nil {
		return s.e.CheckSource("a token cannot follow before it is appended")
	}
	if err := s.extend([]token.ID{id}); err != nil {
		return err
	}
	s.chain.Append([]token.ID{id}, false)
	return nil
}
