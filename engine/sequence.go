package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grove/forest"
	"grove/sample"
	"grove/text/token"
)

// Terms are what a sequence may ask of the scheduler.
type Terms struct {
	// Priority weighs the share of prefill rows, twice for each step up, and decides who gives pages back where
	// they run out, the lowest first; usually 0, and within [LeastPriority] and [MostPriority].
	Priority int
	// Salt keeps the pages of a sequence apart: they are shared with sequences of the same salt only.
	Salt string
}

// The range of [Terms.Priority].
const (
	LeastPriority = -10
	MostPriority  = 10
)

// Sequence is one text on its way: a trunk of committed tokens and the logits behind its end. It is
// for one goroutine; several sequences of an engine may be used at a time.
type Sequence struct {
	e       *Engine
	answer  Answer
	chain   *sample.Chain
	end     sample.State // of the chain at the end of the text
	terms   Terms
	arrival uint64
	closed  bool

	text   []token.ID
	known  int  // tokens of the text that were computed; the cache may hold fewer, once pages ran out
	begun  bool // the first prompt is computed
	reused int
	logits []float32 // behind the last token, where all are computed

	spec       *speculation // nil: one token a step
	prediction []token.ID
	queue      []Drawn // drawn by the last round, of which some are taken: part of the text
	taken      int

	seq    forest.Seq    // -1: none yet
	root   forest.Node   // of the last round
	path   []forest.Node // the root and the guesses that came true, live until they are settled
	lost   bool          // the trunk and the path were given up for their pages: the text is computed anew
	clock  float64       // prefill rows, weighed by priority
	timed  bool          // the clock goes with the engine's
	round  bool          // the call is for a round of drafting
	chosen []int32       // guesses that the step runs
	first  int           // of the step's rows
	rows   int

	call
}

// call is a caller that waits, guarded by the line's lock.
type call struct {
	ctx    context.Context
	err    error
	done   bool
	wake   chan struct{} // the caller is to look
	due    bool          // it is expected to call again soon
	served time.Time     // when the last call ended
	away   time.Duration // from one call's end to the next, averaged
}

// NewSequence opens a sequence that draws its tokens as the answer says. Errors: [ErrEncoder], [ErrBusy], those
// of the answer's settings.
func (e *Engine) NewSequence(a Answer) (*Sequence, error) {
	if err := e.Generates(); err != nil {
		return nil, err
	}
	chain, err := sample.NewChain(sample.Settings{Params: a.Sampling, Penalties: a.Penalties, Thinking: a.Thinking,
		SampleIndex: a.SampleIndex, Stages: a.Stages}, e.vocab)
	if err != nil {
		return nil, err
	}
	if err := e.line.open(e.most); err != nil {
		return nil, err
	}
	s := &Sequence{e: e, seq: -1, answer: a, chain: chain, logits: make([]float32, e.vocab)}
	s.arrival = e.line.number()
	s.wake = make(chan struct{}, 1)
	return s, nil
}

// Schedule sets the sequence's terms. It is called before the first Append. It returns an error where the priority
// is out of range.
func (s *Sequence) Schedule(t Terms) error {
	if t.Priority < LeastPriority || t.Priority > MostPriority {
		return fmt.Errorf("engine: priority %d; it must be within %d and %d", t.Priority, LeastPriority, MostPriority)
	}
	s.terms = t
	return nil
}

// Close gives the sequence's room back. The sequence is of no use afterwards; a second call is an error.
func (s *Sequence) Close() (err error) {
	if s.closed {
		return fmt.Errorf("engine: %w", ErrClosed)
	}
	s.closed = true
	if s.spec != nil {
		err = s.spec.close()
		s.spec = nil
	}
	return errors.Join(err, s.e.unseat(s))
}

// Len returns the number of tokens of the text.
func (s *Sequence) Len() int { return len(s.text) }

// Reused returns how many of the first prompt's tokens were found in the cache.
func (s *Sequence) Reused() int { return s.reused }

// Append adds tokens to the text and computes them. Errors: a token that is none, [ErrContext] with both numbers, and [ErrClosed], and then
// the text is as before; ctx's error or the model's, and then a later Append or Next goes on with the tokens
// that are not computed yet.
func (s *Sequence) Append(ctx context.Context, ids []token.ID) error {
	if s.closed {
		return fmt.Errorf("engine: %w", ErrClosed)
	}
	if n := len(s.text) + len(ids); n > s.e.Context() {
		return fmt.Errorf("engine: %d tokens do not fit: %w of %d tokens", n, ErrContext, s.e.Context())
	}
	for i, id := range ids {
		if id < 0 || int(id) >= s.e.vocab {
			return fmt.Errorf("engine: token id %d at index %d is out of range: the vocabulary has %d", id, len(s.text)+i, s.e.vocab)
		}
	}
	s.queue = s.queue[:s.taken] // what was drawn and not taken is forgotten
	s.text = append(s.text, ids...)
	s.settle()
	s.chain.Append(ids, true)
	if s.spec != nil {
		s.spec.fresh = append(s.spec.fresh, ids...)
	}
	return s.flush(ctx)
}

// flush computes what is not computed yet, and leaves the logits behind it.
func (s *Sequence) flush(ctx context.Context) error {
	if s.known == len(s.text) {
		return nil
	}
	return s.compute(ctx, false)
}

// Next draws the token behind the text, appends it, and returns it. The token is computed by the call
// that needs what follows it, so the last one costs nothing. Errors: [ErrContext] where the text fills
// the context, [ErrClosed], ctx's error, the model's.
func (s *Sequence) Next(ctx context.Context) (Drawn, error) {
	switch {
	case s.closed:
		return Drawn{}, fmt.Errorf("engine: %w", ErrClosed)
	case len(s.text) == 0:
		return Drawn{}, errors.New("engine: drawing a token of an empty text")
	case len(s.text) == s.e.Context():
		return Drawn{}, fmt.Errorf("engine: %d tokens: %w", len(s.text), ErrContext)
	case s.taken < len(s.queue):
		return s.take(), nil
	}
	if s.spec != nil && s.begun && s.known == len(s.text)-1 {
		if err := s.draw(ctx); err != nil {
			return Drawn{}, err
		}
		return s.take(), nil
	}
	if err := s.flush(ctx); err != nil {
		return Drawn{}, err
	}
	d, err := s.pick(s.logits, s.end, len(s.text))
	if err != nil {
		return d, err
	}
	s.add(d.ID)
	s.settle()
	return d, nil
}

// take returns the next token of the queue.
func (s *Sequence) take() Drawn {
	d := s.queue[s.taken]
	s.taken++
	s.add(d.ID)
	return d
}

// Drafted reports whether the token that Next returned last was a guess that came true: the step that drew it
// drew what follows, too.
func (s *Sequence) Drafted() bool { return s.taken > 0 && s.taken < len(s.queue) }

// add appends a token that was drawn behind the text.
func (s *Sequence) add(id token.ID) {
	s.known = len(s.text)
	s.text = append(s.text, id)
	s.end = s.chain.Next(s.end, id)
	if s.spec != nil {
		s.spec.drew(id)
	}
}
