package grove

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/sample"
	"grove/search/bytewise"
)

// healed is the end of a prompt that is drawn anew.
type healed struct {
	head    []byte            // that was taken back of the prompt
	healing *bytewise.Healing // draws it by its exact distribution; nil: nothing does
}

// healExactly takes back the end of the prompt, or of the text before the gap, that is to be drawn by its exact distribution.
func (g *Generation) healExactly() error {
	r := &g.req
	if r.PromptIDs != nil || g.model.model.Info().Source != nil || g.diffusion != nil {
		return &OptionError{Err: errors.New("grove: Request.HealExact: the prompt is tokens or a source, or the model fills a canvas; only the end of a text that goes on token by token is healed")}
	}
	if r.Constraint != nil && r.Constraint.Lookahead != nil {
		return &OptionError{Err: errors.New("grove: Request.HealExact: the constraint looks ahead, and its hidden Markov model knows no text that begins inside a prompt")}
	}
	words, err := g.model.resident.Words()
	var h *bytewise.Healing
	switch {
	case err != nil:
	case r.Suffix == nil:
		if h, err = words.Heal(g.prompt); err == nil {
			g.prompt, g.head = g.prompt[:h.Left], h.Shown
		}
	default:
		var prefix string
		if h, prefix, err = words.HealText(r.Prompt); err == nil {
			g.head = h.Head
			g.prompt, err = r.form.Encode(nil, prefix, *r.Suffix, nil, r.Files...)
		}
	}
	if err != nil {
		return &OptionError{Err: fmt.Errorf("grove: Request.HealExact: %w", err)}
	}
	if len(g.head) > 0 {
		g.healing, g.stages = h, []sample.Stage{h}
	}
	return nil
}

// weigh computes how likely the ways are to write the end of the prompt that is drawn anew.
func (g *Generation) weigh(ctx context.Context, s *Sequence) error {
	if g.healing == nil {
		return nil
	}
	rows := bytewise.NewTree(s)
	if err := g.healing.Weigh(ctx, rows); err != nil {
		return err
	}
	return rows.End()
}

// ByteView is the text behind a [Sequence] as bytes: the probabilities of the next byte, whatever the tokens that write it.
type ByteView = bytewise.TreeView

// Bytes returns the view of bytes behind a sequence's text. Errors: an [*OptionError] of [bytewise.ErrNone].
func (m *Model) Bytes(s *Sequence) (*ByteView, error) {
	words, err := m.resident.Words()
	if err != nil {
		return nil, &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	return bytewise.OpenTree(words, s), nil
}
