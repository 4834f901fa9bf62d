// latent.go decodes texts behind blocks of latent thoughts (LaDiR, 2025): rows whose inputs are embeddings in place of tokens. The rows of a block see each other and all before
// them. Passes of the model denoise the block, which then stays as a part of the text, and the answer behind it is decoded token by token.

package fill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/internal/engine/step"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// LatentText is a text with blocks of latents: a prompt, blocks and tokens in any order. Without blocks its tokens are those of an [engine.Sequence], bit by bit. It holds a slot and its
// pages until it is closed. It is for one goroutine; several texts of an engine, and its other work, share steps.
type LatentText struct {
	steps *step.Maker
	trunk step.Trunk
	chain *sample.Chain
	most  int // rows of the text

	ids      []token.ID // by row; [token.None]: a latent
	latents  bool       // there are some
	computed int        // rows
	logits   []float32  // behind the last row, where all are computed
	tokens   tokens
	block    block
}

// OpenLatent opens an empty text whose tokens are drawn by settings. Errors: a model that does not decode token by token, or reads a source; [engine.ErrBusy]; those of the settings.
func OpenLatent(e *engine.Engine, s sample.Settings, terms engine.Terms) (*LatentText, error) {
	steps := e.Steps()
	info := steps.Model.Info()
	if err := errors.Join(e.Closed(), e.CheckGenerates(), e.CheckSource("a text with latents has none")); err != nil {
		return nil, err
	}
	if info.Diffusion != nil {
		return nil, fmt.Errorf("latent: %s fills a canvas by diffusion; a text with latents is decoded token by token", info.Arch)
	}
	chain, err := sample.NewChain(s, info.Vocabulary)
	if err != nil {
		return nil, err
	}
	t := &LatentText{steps: steps, chain: chain, most: e.Context(), logits: make([]float32, info.Vocabulary)}
	t.tokens.t, t.block.t = t, t
	if err := steps.Open(&t.trunk, steps.MaxOpen); err != nil {
		return nil, err
	}
	t.trunk.Pinned, t.trunk.Terms = true, terms // what was denoised is not computed again
	chain.Begin(nil)
	return t, nil
}

// Close gives the text's slot and pages back.
func (t *LatentText) Close() error { return t.trunk.Close() }

// Len returns the rows of the text: its tokens and its latents.
func (t *LatentText) Len() int { return len(t.ids) }

// Append adds tokens to the text, as a further prompt, and computes them. Errors: a token that is none, [engine.ErrContext], and then the text is as before; ctx's, the model's, and
// then a later call goes on with the tokens that are not computed yet.
func (t *LatentText) Append(ctx context.Context, ids []token.ID) error {
	for _, id := range ids {
		if id < 0 || int(id) >= len(t.logits) {
			return fmt.Errorf("latent: token id %d is out of range: the vocabulary has %d", id, len(t.logits))
		}
	}
	if err := t.fits(len(ids)); err != nil {
		return err
	}
	if len(t.ids) == 0 {
		t.trunk.Terms.Activate(ids)
	}
	t.ids = append(t.ids, ids...)
	t.chain.Append(ids, true)
	return t.flush(ctx)
}

// fits returns an error where the text has no room for so many rows.
func (t *LatentText) fits(rows int) error {
	if n := len(t.ids) + rows; n > t.most {
		return fmt.Errorf("latent: %d rows do not fit: %w of %d tokens", n, engine.ErrContext, t.most)
	}
	return nil
}

// flush computes the tokens that are not computed, and leaves the logits behind them.
func (t *LatentText) flush(ctx context.Context) error {
	if t.computed == len(t.ids) {
		return nil
	}
	return t.trunk.Do(ctx, &t.tokens)
}

// Next draws the token behind the text, appends it, and returns it; a later call computes it. Errors: [engine.ErrContext], ctx's, the model's, those of a draw.
func (t *LatentText) Next(ctx context.Context) (sample.Token, error) {
	if len(t.ids) == 0 {
		return sample.Token{}, errors.New("latent: the text is empty; append a prompt before the first draw")
	}
	if err := t.fits(1); err != nil {
		return sample.Token{}, err
	}
	if err := t.flush(ctx); err != nil {
		return sample.Token{}, err
	}
	d, err := t.chain.Draw(0, t.logits, len(t.ids))
	if err != nil {
		return d, err
	}
	t.chain.Keep(t.chain.Next(0, d.ID))
	t.ids = append(t.ids, d.ID)
	return d, nil
}

// Ended reports whether a stage lets nothing follow the text but its end.
func (t *LatentText) Ended() bool { return t.chain.Ended(0) }

// LatentBlock is a block of latents and how it is denoised.
type LatentBlock struct {
	// Latents are the block's, one a row, all of the same width. [LatentText.Think] moves them in place.
	Latents [][]float32
	Causal  bool // a row sees the rows before it alone, and not all of the block
	// Steps is how many passes move the latents, from 0; a last pass runs what became of them, and its keys stay.
	Steps int
	// Embed writes the input of a row for a latent at a time from 0, where it is noise, to 1: of the model's width, like the embedding of a token times the model's factor for these, before
	// positions. nil: a latent is its own input.
	Embed func(dst, latent []float32, time float64)
	// Velocity writes the derivative of a latent by the time, as the state of its row gives it: the stream behind the final norm. It is needed where there are Steps.
	Velocity func(dst, latent, state []float32, time float64)
}

// MaxLatentSteps bounds the passes of a block.
const MaxLatentSteps = 1 << 16

// check returns an error where a block is none for a model of a width.
func (b *LatentBlock) check(width int) error {
	switch {
	case len(b.Latents) == 0:
		return errors.New("latent: a block has no latents; give one or more")
	case b.Steps < 0 || b.Steps > MaxLatentSteps:
		return fmt.Errorf("latent: %d steps of a block; there may be 0 to %d", b.Steps, MaxLatentSteps)
	case b.Steps > 0 && b.Velocity == nil:
		return fmt.Errorf("latent: %d steps, and no velocity that moves the latents; give one, or no steps", b.Steps)
	}
	n := len(b.Latents[0])
	for i, l := range b.Latents {
		if len(l) != n || n == 0 {
			return fmt.Errorf("latent: latent %d has %d values, and the first %d; all need as many, and one or more", i, len(l), n)
		}
	}
	if b.Embed == nil && n != width {
		return fmt.Errorf("latent: latents of %d values, and the model's width is %d; give a function that embeds them", n, width)
	}
	return nil
}

// Think runs a block behind the text, moves its latents by Euler's method in equal steps of time from 0 to 1, and appends what became of them: rows behind see the block, and the next token
// is drawn behind its last row. b.Embed and b.Velocity are called on the caller's goroutine, row after row. Errors: a block that is none; one that is longer than a step, or than a model can see at once
// ([engine.ErrPrefix]); a value that is not finite; [engine.ErrContext], ctx's, the model's. The text is as before then.
func (t *LatentText) Think(ctx context.Context, b *LatentBlock) error {
	info := t.steps.Model.Info()
	if err := b.check(info.Width); err != nil {
		return err
	}
	n := len(b.Latents)
	if err := t.fits(n); err != nil {
		return err
	}
	if err := reading.Prefix(info, n, t.steps.Chunk); err != nil && !(b.Causal && n <= t.steps.Chunk) {
		return fmt.Errorf("latent: a block: %w", err)
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	if len(t.ids) == 0 {
		t.trunk.Terms.Activate(nil)
	}
	velocity := make([]float32, len(b.Latents[0]))
	for k := range b.Steps {
		time := float64(k) / float64(b.Steps)
		if err := t.block.run(ctx, b, time, false); err != nil {
			return err
		}
		for i, l := range b.Latents {
			clear(velocity)
			b.Velocity(velocity, l, t.block.state(i), time)
			for j, v := range velocity {
				l[j] += v / float32(b.Steps)
			}
		}
	}
	if err := t.block.run(ctx, b, 1, true); err != nil {
		return err
	}
	t.latents = true
	t.ids = append(t.ids, slices.Repeat([]token.ID{token.None}, n)...)
	t.computed = len(t.ids)
	return nil
}
