package engine

import (
	"context"
	"errors"

	"grove/internal/engine/pages"
	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
)

// Superposition is drafts behind a sequence's text that share their rows: the input of each row is a mixture of the
// embeddings of the drafts' last tokens (Superposed Decoding, 2024). It is for the sequence's goroutine, and holds the
// sequence's place: nothing else is done with that until [Superposition.End].
type Superposition struct {
	s    *Sequence
	text int // tokens of the text
	rows [1]method.Row
}

// Superpose computes the text and begins drafts of up to most tokens behind it; 0: as many as the context holds. It returns the
// logits behind the text, valid until the next Run. The sequence keeps its pages until it is closed: no text gives the
// keys of mixtures again. Errors: [ErrClosed], those of [Sequence.Append].
func (s *Sequence) Superpose(ctx context.Context, most int) (*Superposition, []float32, error) {
	n := s.e.Context()
	if most > 0 {
		n = min(n, len(s.text)+most)
	}
	if err := s.hold(ctx, n); err != nil {
		return nil, nil, err
	}
	if len(s.text) == 0 {
		return nil, nil, errors.New("engine: superposition: the text is empty; append a prompt first")
	}
	return &Superposition{s: s, text: len(s.text)}, s.logits, nil
}

// Run appends a row whose input is the weighted sum of embeddings, in order, and returns the logits behind it, valid until the
// next Run. A single token is itself, whatever its weight. Errors: no token, one that is none; [ErrContext]; ctx's, the model's.
func (p *Superposition) Run(ctx context.Context, mix []forest.Weighted) ([]float32, error) {
	s := p.s
	if len(mix) == 0 {
		return nil, errors.New("engine: superposition: the mixture is empty; it must have one token or more")
	}
	heaviest := mix[0]
	for _, w := range mix {
		if err := s.e.fits([]token.ID{w.ID}, len(s.text)); err != nil {
			return nil, err
		}
		if w.Weight > heaviest.Weight {
			heaviest = w
		}
	}
	r := forest.Row{Mix: mix, Want: forest.Want{Logits: true}}
	if len(mix) == 1 {
		r.ID, r.Mix = heaviest.ID, nil
	}
	p.rows[0] = method.Row{Row: r}
	results, err := s.growBehind(ctx, p.rows[:])
	if err != nil {
		return nil, err
	}
	return s.logits, s.adopt(results[0].Node, []token.ID{heaviest.ID}, results[0].Logits)
}

// Next returns the state of the sequence's stages behind a token that follows a draft's state; that of the text is 0.
func (p *Superposition) Next(state sample.State, id token.ID) sample.State {
	return p.s.chain.Next(state, id)
}

// Process returns logits as the stages leave them behind a draft's state: the argument where there are none, or space that is
// valid until the next call.
func (p *Superposition) Process(state sample.State, logits []float32) []float32 {
	return p.s.chain.Process(state, logits)
}

// Describe returns a token behind a draft's state as a draw does, by the logits of its row, of which there were n before.
func (p *Superposition) Describe(state sample.State, logits []float32, n int, id token.ID) (SampledToken, error) {
	return p.s.answer.describe(p.s.chain, state, logits, p.text+n, id)
}

// End drops the drafts: the text is as before.
func (p *Superposition) End() error { return p.s.Truncate(p.text) }

// Tokens returns the text. It is not to be changed, and valid until the sequence's next call.
func (s *Sequence) Tokens() []token.ID { return s.text }

// hold computes the text and keeps the sequence's pages from now on, with those for n tokens.
func (s *Sequence) hold(ctx context.Context, n int) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.round.forget()
	err := s.do(ctx, &pages.Claim{Trunk: &s.trunk, Wants: func() (step.Need, error) {
		if s.trunk.Preempted {
			s.known = 0
		}
		return step.Need{PageTokens: n}, nil
	}})
	if err == nil {
		err = s.flush(ctx)
	}
	return err
}

// growBehind runs rows behind the whole text, all of which is computed.
func (s *Sequence) growBehind(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	s.grow.behind = 0
	defer func() { s.grow.behind = 1 }()
	return s.grow.run(ctx, rows)
}

// adopt makes rows behind the text, up to a node, part of it: ids are their tokens, and logits those behind the last one.
func (s *Sequence) adopt(n forest.Node, ids []token.ID, logits []float32) error {
	s.e.steps.Lock()
	defer s.e.steps.Unlock()
	if err := s.e.steps.Cache.Commit(s.trunk.Seq, n); err != nil {
		return err
	}
	copy(s.logits, logits)
	s.text = append(s.text, ids...)
	s.known = len(s.text)
	return nil
}
