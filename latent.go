package grove

import (
	"context"
	"errors"
	"fmt"

	"grove/diffuse/fill"
)

// LatentText is a text behind which blocks of latent thoughts are denoised, and that is decoded token by token: [fill.LatentText]. It is for one goroutine.
type LatentText = fill.LatentText

// LatentBlock is a block of latents, and how it is denoised.
type LatentBlock = fill.LatentBlock

// NewLatentText opens a text behind a request's prompt, which [LatentText.Think] goes on with blocks of latents (LaDiR, 2025) and [LatentText.Next] with tokens. Sampling, Seed, SampleIndex,
// Penalties, Constraint, Adapters, Priority and CacheSalt are the request's; what it says of the end of an answer is the caller's. Without blocks the tokens are those of [Model.Generate]. The caller
// closes the text; until then it holds one of [Options.Parallel] slots and its pages. Errors: an [*OptionError] for a setting that such a text does not have; those of [Model.Generate],
// [ErrBusy], ctx's, the model's.
func (m *Model) NewLatentText(ctx context.Context, r Request) (*LatentText, error) {
	for _, not := range []struct {
		is   bool
		what string
	}{
		{r.Search != "", "a search"}, {r.Session != "", "a session"}, {r.Suffix != nil, "a suffix"}, {r.Heal, "a healed prompt"}, {r.Prefix, "a prompt whose tokens see each other"}, {r.SkipLayers != "", "skipping layers"},
		{r.Top > 0 || r.PostSampling, "likely tokens"}, {r.Diffusion != nil, "a canvas"}, {r.Method != "" && r.Method != MethodAuto && r.Method != MethodOff, "a method that drafts"},
		{r.Accept != "" && r.Accept != AcceptExact, "a rule that accepts drafts"},
	} {
		if not.is {
			return nil, &OptionError{Err: fmt.Errorf("grove: %s is not supported for a text with latents; leave it out", not.what)}
		}
	}
	g, err := m.Generate(ctx, r)
	if err != nil {
		return nil, err
	}
	t, err := fill.OpenLatent(m.engine, g.draws().Settings, g.req.terms())
	if err != nil {
		return nil, m.busy(err)
	}
	if err := t.Append(ctx, g.prompt); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}
