package search

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/engine"
	"grove/internal/text/tokenizer"
	"grove/search/bytewise"
)

// ErrPrompt reports a prompt that a guide of another vocabulary cannot read.
var ErrPrompt = errors.New("it has no text")

// Guide is a model beside the request's that steers its answer.
type Guide struct {
	Name      string
	Engine    *engine.Engine
	Tokenizer *tokenizer.Tokenizer
	Same      bool // its tokens are those of the request's model

	Words func() (*bytewise.Vocabulary, error) // as [Problem.Words]
}

// Combining is a program that draws the tokens of the problem's first sequence by other logits than that sequence's own. The sequence drafts nothing, and
// has the stage of the problem's [Combiner] behind the request's own stages.
type Combining interface {
	Program
	// Combines reports whether it does with its options.
	Combines() bool
}

// Guided returns an error where a program cannot have a guide, by its number from 1, with the vocabulary of the request's model.
func (p *Problem) Guided(program string, number int) error {
	switch n := len(p.Guides); {
	case n < number && number == 1:
		return fmt.Errorf("search: %s: it needs a guide, and no model is open as one; add one (--guide MODEL, Options.Guides)", program)
	case n < number:
		return fmt.Errorf("search: %s: it needs guide %d, and %d are open; add one (--guide MODEL, Options.Guides)", program, number, n)
	case p.Weighed:
		return fmt.Errorf("search: %s: the constraint weighs the tokens that the model draws, and %s draws by two models; leave the weights out", program, program)
	}
	if g := p.Guides[number-1]; !g.Same {
		hint := ""
		if _, ok := registry["ensemble"]; ok {
			hint = ", or the search ensemble, which goes by bytes"
		}
		return fmt.Errorf("search: %s: guide %d (%s) has another vocabulary than the model; open one with the model's%s", program, number, g.Name, hint)
	}
	return nil
}

// Open opens a sequence of a guide behind the prompt of a problem, for the caller to close. It draws as an answer says. Its prompt waits for a slot of the guide, which
// sequences that wait for nothing lend. Errors: those of [engine.Engine.NewSequence] and of [engine.Sequence.Append]; a prompt that exceeds the guide's context.
func (g *Guide) Open(ctx context.Context, p *Problem, a engine.Answer) (*engine.Sequence, error) {
	if n := g.Engine.Context(); len(p.Prompt) > n {
		return nil, fmt.Errorf("search: guide %s: the prompt has %d tokens, and its context %d: %w", g.Name, len(p.Prompt), n, engine.ErrContext)
	}
	s, err := g.Engine.NewSequence(a)
	if err != nil {
		return nil, fmt.Errorf("search: guide %s: %w", g.Name, err)
	}
	if err = s.SetTerms(p.Terms); err == nil {
		err = s.Append(ctx, p.Prompt)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("search: guide %s: %w", g.Name, err), s.Close())
	}
	return s, nil
}

// DrawOne draws a problem's answer with the function that draws its next token, as plain decoding does.
func (p *Problem) DrawOne(ctx context.Context, next func(context.Context) (engine.SampledToken, error)) (*Result, error) {
	ss, err := Fork(ctx, p, 0, 1)
	if err != nil {
		return nil, err
	}
	return ss.First(nil, func() error {
		d, err := next(ctx)
		return ss.give(&ss.All[0], d, err)
	})
}
