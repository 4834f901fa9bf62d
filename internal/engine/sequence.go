package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"grove/internal/engine/speculate"
	"grove/internal/engine/step"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// Sequence is one text on its way: a trunk of committed tokens, the state of its stages, and the logits behind its
// end. It is for one goroutine; several sequences of an engine may be used at a time.
type Sequence struct {
	e      *Engine
	trunk  step.Trunk
	answer Answer
	chain  *sample.Chain
	text   []token.ID
	all    []token.ID // the source and the text, for drafters
	prompt int        // tokens of the text when the last were appended
	first  int        // tokens of the first prompt
	prefix int        // of its first tokens, which see each other
	watch  func(done, all int)
	stated func(at int, state []float32) // is told the states of tokens that are computed; nil: nobody
	known  int                           // tokens of the text that were computed; the cache may hold fewer, once pages were taken
	reused int
	logits []float32 // behind the last token, where all are computed

	prefill  prefill
	round    round
	grow     grow
	drafts   *speculate.Text // nil: one token a step
	family   *family         // the sequences that it was forked from or that were forked from it
	restored bool            // pages of its trunk were read from a file
	closed   bool
	forked   bool // it is a fork of another
	active   bool // the place from which its adapters work is known
}

// NewSequence opens a sequence that draws its tokens as the answer says. Errors: [ErrEncoder], a model of masked diffusion, [ErrBusy], those
// of the answer's settings.
func (e *Engine) NewSequence(a Answer) (*Sequence, error) {
	if err := errors.Join(e.CheckGenerates(), e.checkNext()); err != nil {
		return nil, err
	}
	places, err := e.CheckPlaces(a.Places)
	if err != nil {
		return nil, err
	}
	a.Places = places
	chain, err := sample.NewChain(a.settings(), e.vocab)
	if err != nil {
		return nil, err
	}
	s := e.newSequence(a, chain)
	if err := e.steps.Open(&s.trunk, e.steps.MaxOpen); err != nil {
		return nil, err
	}
	chain.Begin(nil)
	return s, nil
}

func (e *Engine) newSequence(a Answer, chain *sample.Chain) *Sequence {
	s := &Sequence{e: e, answer: a, chain: chain, logits: make([]float32, e.vocab)}
	s.prefill.s, s.round.s = s, s
	s.grow = grow{t: &s.trunk, e: e, s: s, behind: 1}
	s.family = &family{members: []*Sequence{s}}
	return s
}

// SetTerms sets the sequence's terms. It is called before the first Append. It returns an error where the priority
// is out of range.
func (s *Sequence) SetTerms(t Terms) error {
	if err := t.Check(); err != nil {
		return err
	}
	if t.Private {
		t.Salt = rand.Text()
	}
	s.trunk.Terms = t
	return nil
}

// SetProgress sets the function that is told, after each step of an Append, how many tokens of the text are computed, of all; nil:
// none. It must not wait: the goroutine of any sequence's caller may call it, one at a time.
func (s *Sequence) SetProgress(told func(done, all int)) { s.watch = told }

// usable returns an [ErrClosed] where the sequence or its engine is closed.
func (s *Sequence) usable() error {
	if s.closed {
		return errClosed
	}
	return s.e.Closed()
}

// Close gives the sequence's slot and pages back; the engine may be closed. The sequence is of no use afterwards; a second call is an error.
func (s *Sequence) Close() (err error) {
	if s.closed {
		return errClosed
	}
	s.closed = true
	s.family.leave(s)
	if s.drafts != nil {
		err = s.drafts.Close()
		s.drafts = nil
		s.e.texts.Add(-1)
	}
	err = errors.Join(err, s.trunk.Close())
	s.offerShared()
	return err
}

// Len returns the number of tokens of the text.
func (s *Sequence) Len() int { return len(s.text) }

// Admitted returns when the sequence first had a slot; the zero time: it has had none. It waits for no step.
func (s *Sequence) Admitted() time.Time { return s.trunk.Admitted }

// Reused returns how many of the first prompt's tokens were found in the cache.
func (s *Sequence) Reused() int {
	if s.trunk.Source != nil && s.trunk.Source.Found {
		return s.reused + len(s.trunk.Source.IDs)
	}
	return s.reused
}

// Append adds tokens to the text, as a further prompt, and computes them. The first ones of an encoder-decoder are its source: the
// text begins with the model's own token, and Len counts that. Errors: a token that is none, [ErrContext]
// with both numbers, and [ErrClosed], and then the text is as before; [ErrCancelled]; ctx's error or the model's, and
// then a later Append or Next goes on with the tokens that are not computed yet.
func (s *Sequence) Append(ctx context.Context, ids []token.ID) error {
	return s.AppendSaved(ctx, ids, "")
}

// extend adds tokens to the text.
func (s *Sequence) extend(ids []token.ID) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.e.fits(ids, len(s.text)); err != nil {
		return err
	}
	s.round.forget()
	if !s.active {
		s.active, s.first = true, len(ids)
		s.trunk.Terms.Activate(ids)
	}
	s.text = append(s.text, ids...)
	return nil
}

// fits returns an error where tokens do not fit behind a text of n tokens, or one is none.
func (e *Engine) fits(ids []token.ID, n int) error {
	if n += len(ids); n > e.Context() {
		return fmt.Errorf("engine: %d tokens do not fit: %w of %d tokens", n, ErrContext, e.Context())
	}
	for i, id := range ids {
		if id < 0 || int(id) >= e.vocab {
			return fmt.Errorf("engine: token id %d at index %d is out of range: the vocabulary has %d", id, n-len(ids)+i, e.vocab)
		}
	}
	return nil
}

// flush computes what is not computed yet, and leaves the logits behind it.
func (s *Sequence) flush(ctx context.Context) error {
	if s.known == len(s.text) {
		return nil
	}
	s.chain.Prepare(0)
	defer s.chain.Wait()
	return s.do(ctx, &s.prefill)
}

// Next draws the token behind the text, appends it, and returns it. The token is computed by the call
// that needs what follows it, so the last one costs nothing. Errors: [ErrContext] where the text fills
// the context, [ErrClosed], [ErrCancelled], [ErrPanic], ctx's error, the model's.
func (s *Sequence) Next(ctx context.Context) (d SampledToken, err error) {
	defer func() { // of a stage or a method, on the caller's own goroutine
		if p := recover(); p != nil {
			d, err = SampledToken{}, step.NewPanicError(p)
			s.trunk.Caller().Busy.Store(false)
		}
	}()
	if err := s.usable(); err != nil {
		return SampledToken{}, err
	}
	switch {
	case s.trunk.Caller().Cancelled():
		return SampledToken{}, fmt.Errorf("engine: %w", ErrCancelled)
	case len(s.text) == 0:
		return SampledToken{}, errors.New("engine: the text is empty; append a prompt before the first draw")
	case len(s.text) == s.e.Context():
		return SampledToken{}, fmt.Errorf("engine: %d tokens: %w", len(s.text), ErrContext)
	case s.round.taken < len(s.round.drawn):
		return s.next(), nil
	}
	s.round.keep()
	if s.drafts != nil && s.trunk.Begun && s.known == len(s.text)-1 {
		if err := s.draft(ctx); err != nil {
			return SampledToken{}, err
		}
		return s.next(), nil
	}
	if err := s.flush(ctx); err != nil {
		return SampledToken{}, err
	}
	if d, err = s.answer.draw(s.chain, 0, s.logits, len(s.text)); err != nil {
		return d, err
	}
	s.chain.Keep(s.chain.Next(0, d.ID))
	s.add(d.ID)
	return d, nil
}

// next returns the next token that the last round drew.
func (s *Sequence) next() SampledToken {
	d := s.round.drawn[s.round.taken]
	s.round.taken++
	s.add(d.ID)
	return d
}

// Drafted reports whether the token that Next returned last was a draft that was accepted: the step that drew it
// drew what follows, too.
func (s *Sequence) Drafted() bool { return s.round.taken > 0 && s.round.taken < len(s.round.drawn) }

// Ended reports whether a stage lets nothing follow the text but its end, which then need not be drawn.
func (s *Sequence) Ended() bool { return s.chain.Ended(s.state()) }

// LogWeight returns the logarithm of the weight of the answer so far; false where no stage weighs it. See [sample.Weigher].
func (s *Sequence) LogWeight() (float64, bool) { return s.chain.LogWeight(s.state()) }

// state returns the state behind the tokens that were taken.
func (s *Sequence) state() sample.State {
	if len(s.round.after) > 0 {
		return s.round.after[s.round.taken]
	}
	return 0
}

// add appends a token that was drawn behind the text.
func (s *Sequence) add(id token.ID) {
	s.known = len(s.text)
	s.text = append(s.text, id)
}

// settle commits what the last round accepted, as far as its tokens were taken: the last of these is
// to be computed again, and tokens that were drawn and not taken are forgotten. The caller holds the maker's lock.
func (s *Sequence) settle() error {
	r := &s.round
	if r.taken > 0 && !s.trunk.Preempted {
		if err := s.e.steps.Cache.Commit(s.trunk.Seq, r.path[r.taken-1]); err != nil {
			return err
		}
		s.trunk.Drop() // drafts behind it
	}
	if s.trunk.Preempted && s.drafts != nil {
		s.drafts.Tree.DropLive()
	}
	r.path, r.drawn, r.taken, s.trunk.Preempted = r.path[:0], r.drawn[:0], 0, false
	return nil
}
