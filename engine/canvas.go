package engine

import (
	"context"
	"errors"
	"fmt"

	"grove/engine/step"
	"grove/forest"
	"grove/method"
	"grove/text/token"
)

// Canvas is a block of rows behind a sequence's text that see each other: they are run again and again with other
// inputs, and committed at last. Its passes share steps with all other work. It is for the sequence's goroutine, and
// holds the sequence's place: nothing else is done with that until the canvas is committed or dropped.
type Canvas struct {
	s    *Sequence
	rows []method.Row
	last forest.Node // of the last pass; Trunk: none
	gave []float32   // the logits behind it
}

// Canvas begins a canvas behind the text, which is computed first. The sequence keeps its pages from now on: keys of
// rows that saw later rows cannot be computed anew from the text. Errors: [ErrClosed], those of [Sequence.Append].
func (s *Sequence) Canvas(ctx context.Context) (*Canvas, error) {
	err := s.hold(ctx, s.e.Context())
	return &Canvas{s: s}, err
}

// hold computes the text and keeps the sequence's pages from now on, with those for n tokens.
func (s *Sequence) hold(ctx context.Context, n int) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.round.forget()
	err := s.do(ctx, &claim{s, func() (step.Need, error) {
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

// Run runs the canvas anew: a row for each input, of which Parent, Block and Seq are filled in. The rows of the pass
// before are dropped. The results are valid until the next pass. Errors: no rows, rows beyond the context or a step;
// ctx's, the model's.
func (c *Canvas) Run(ctx context.Context, inputs []forest.Row) ([]method.Result, error) {
	s := c.s
	if len(inputs) == 0 {
		return nil, errors.New("engine: canvas: 0 rows; it must have 1 or more")
	}
	if n := len(s.text) + len(inputs); n > s.e.Context() {
		return nil, fmt.Errorf("engine: canvas: the last index is %d: %w of %d tokens", n, ErrContext, s.e.Context())
	}
	if err := c.Drop(); err != nil {
		return nil, err
	}
	c.rows = c.rows[:0]
	for i, r := range inputs {
		r.Parent, r.Block = forest.Trunk, 1
		c.rows = append(c.rows, method.Row{Row: r, After: i})
	}
	results, err := s.growBehind(ctx, c.rows)
	if err != nil {
		return nil, err
	}
	end := &results[len(results)-1]
	c.last, c.gave = end.Node, end.Logits
	return results, nil
}

// growBehind runs rows behind the whole text, all of which is computed.
func (s *Sequence) growBehind(ctx context.Context, rows []method.Row) ([]method.Result, error) {
	s.grow.behind = 0
	defer func() { s.grow.behind = 1 }()
	return s.grow.run(ctx, rows)
}

// Drop drops the rows of the last pass.
func (c *Canvas) Drop() error {
	c.last = forest.Trunk
	return c.s.grow.Drop()
}

// Commit makes the rows of the last pass part of the text: ids are their tokens. The last row must have wanted its
// logits. Errors: another number of ids, no pass.
func (c *Canvas) Commit(ids []token.ID) error {
	s := c.s
	if c.last == forest.Trunk || len(ids) != len(c.rows) || len(c.gave) == 0 {
		return fmt.Errorf("engine: committing %d tokens of a canvas of %d rows; its last row must have been run, and want its logits", len(ids), len(c.rows))
	}
	if err := s.adopt(c.last, ids, c.gave); err != nil {
		return err
	}
	c.last = forest.Trunk
	s.chain.Append(ids, false)
	return nil
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
