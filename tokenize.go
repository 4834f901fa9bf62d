package grove

import (
	"context"
	"fmt"
	"io"
	"slices"

	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Tokenize returns the ids of a text. With special, the tokens that begin and end a text are added as
// the model's file asks; with plain, special tokens written in the text are taken as text.
func (m *Model) Tokenize(text string, special, plain bool) ([]token.ID, error) {
	return m.tokenizer.Encode(nil, text, tokenizer.Options{Special: special, Plain: plain})
}

// TokenizeParts is [Model.Tokenize] for texts of any length. It calls part with some thousand ids at a time, which part must not keep,
// and with none every few milliseconds, and ends with ctx or an error of part; [io.EOF] ends it without an error.
func (m *Model) TokenizeParts(ctx context.Context, text string, special, plain bool, part func(ids []token.ID) error) error {
	return m.parts(ctx, text, tokenizer.Options{Special: special, Plain: plain}, part)
}

// TokenizeEmbedded is [Model.TokenizeParts] for a text that is embedded, with the tokens that begin and end such a text.
func (m *Model) TokenizeEmbedded(ctx context.Context, text string, part func(ids []token.ID) error) error {
	return m.parts(ctx, text, tokenizer.Options{Special: true, Mode: tokenizer.Represent}, part)
}

// parts tokenizes a text in parts.
func (m *Model) parts(ctx context.Context, text string, o tokenizer.Options, part func(ids []token.ID) error) error {
	o.Part = func(ids []token.ID) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return part(ids)
	}
	_, err := m.tokenizer.Encode(nil, text, o)
	if err == io.EOF {
		return nil
	}
	return err
}

// File is a file beside the one that is filled in.
type File = tokenizer.InfillFile

// PromptError is an [engine.ErrContext] of a prompt that does not fit.
type PromptError struct {
	Tokens, Context int
	More            bool // or more than Tokens: they were not all counted
}

// Error returns both numbers.
func (e *PromptError) Error() string {
	return fmt.Sprintf("grove: the prompt has %d tokens%s and the context holds %d: %v", e.Tokens, map[bool]string{true: " or more"}[e.More], e.Context, engine.ErrContext)
}

// Unwrap returns [engine.ErrContext].
func (e *PromptError) Unwrap() error { return engine.ErrContext }

// CheckPrompt returns a [*PromptError] for a prompt of n tokens and more that is not worth counting: of more than four times the
// context and 16,384.
func (m *Model) CheckPrompt(n int) error {
	if holds := m.engine.Context(); n > 4*holds+1<<14 {
		return &PromptError{Tokens: n, Context: holds, More: true}
	}
	return nil
}

// encode returns the tokens of a prompt. With a suffix, special tokens that are written in the prompt are text.
func (m *Model) encode(ctx context.Context, r Request) (ids []token.ID, err error) {
	if r.PromptIDs != nil {
		return r.PromptIDs, nil
	}
	part := func(part []token.ID) error {
		ids = append(ids, part...)
		return m.CheckPrompt(len(ids))
	}
	if r.form != nil {
		_, err = r.form.Encode(nil, r.Prompt, *r.Suffix, part, r.Files...)
		return ids, err
	}
	o := tokenizer.Options{Special: true}
	if r.Prefix {
		o.Mode = tokenizer.Answer
	}
	err = m.parts(ctx, r.Prompt, o, part)
	return ids, err
}

// fills chooses the form of a prompt with a suffix, whose own tokens end the answer too, and whose tokens may see each other.
func (m *Model) fills(r *Request) (err error) {
	if r.Suffix == nil || r.PromptIDs != nil {
		return nil
	}
	if r.form, err = tokenizer.InfillOf(m.tokenizer, m.model.Info().Source != nil); err != nil {
		return &OptionError{Err: fmt.Errorf("grove: a suffix is given: %w", err)}
	}
	if r.Prefix = r.Prefix || r.form.Whole; !r.IgnoreEnd {
		r.StopTokens = append(slices.Clip(r.StopTokens), r.form.Ends...)
	}
	return nil
}

// predict returns the tokens of a prediction, those that the context holds.
func (m *Model) predict(ctx context.Context, text string) (ids []token.ID, err error) {
	holds := m.engine.Context()
	err = m.TokenizeParts(ctx, text, false, false, func(part []token.ID) error {
		if ids = append(ids, part...); len(ids) >= holds {
			return io.EOF
		}
		return nil
	})
	return ids[:min(len(ids), holds)], err
}
