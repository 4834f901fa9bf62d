package grove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"grove/diffuse"
	"grove/diffuse/fill"
	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/text/token"
)

// Diffusion says how a diffusion model fills the canvas of an answer.
type Diffusion = fill.Wish

// PolicyInfo describes a policy of [Diffusion].
type PolicyInfo = diffuse.Info

// DiffusionPolicies returns the policies that there are.
func DiffusionPolicies() []PolicyInfo { return diffuse.Policies() }

// CanvasStats says how a canvas was filled.
type CanvasStats = diffuse.Stats

// CacheInfo describes a cache of [Diffusion].
type CacheInfo = diffuse.CacheInfo

// DiffusionCaches returns the caches that there are.
func DiffusionCaches() []CacheInfo { return diffuse.Caches }

// CheckDiffusion returns an [*OptionError] where settings are none for any canvas: a policy, a cache or another name that there is not.
func CheckDiffusion(d Diffusion) error { return canvasError("", d.Check()) }

// canvas prepares the canvas of an answer of a model of masked diffusion. Errors are an [*OptionError] that names what such a model cannot do.
func (g *Generation) canvas() error {
	info, r := g.model.resident.Model.Info().Diffusion, &g.req
	if info == nil {
		if r.Diffusion != nil {
			return canvasError("diffusion", fmt.Errorf("%s is no diffusion model; leave out its settings", g.model.Info().Arch))
		}
		return nil
	}
	d := *cmp.Or(r.Diffusion, &Diffusion{})
	if info.Block > 0 && cmp.Or(d.Block, info.Block) == 1 { // such a text is decoded token by token
		if d.Block = 0; d != (Diffusion{}) {
			return canvasError("block", errors.New("blocks of one token are decoded one after the other; leave out the other settings of diffusion"))
		}
		r.Penalties.Bias = append(slices.Clip(r.Penalties.Bias), sample.Bias{ID: info.Mask, Add: float32(math.Inf(-1))})
		return nil
	}
	if err := g.unfillable(info.Instead()); err != nil {
		return err
	}
	a, err := d.Prepare(fill.Conditions{
		Model: info, Vocabulary: g.model.Vocabulary(), Context: g.model.engine.Context(), Prompt: len(g.prompt), Length: r.MaxTokens,
		Left: r.Constraint != nil || r.Heal || g.draws().ReadText(), Likely: r.Top > 0 || r.PostSampling, Session: r.Session != "",
		Ends: g.ends, IgnoreEnd: r.IgnoreEnd, Piece: func(dst []byte, id token.ID) ([]byte, error) { return g.model.tokenizer.AppendPiece(dst, id, false) },
	})
	if err != nil {
		return canvasError("", err)
	}
	if g.diffusion = a; a.Random == nil {
		r.MaxTokens = a.Length()
	}
	if !a.Exact() {
		g.stats.Grade = Lossy
	}
	return nil
}

// CanvasRun is a part of a canvas.
type CanvasRun = diffuse.Run

// WatchCanvas lets f be told of the canvas behind the tokens that [Generation.Tokens] yielded, before each pass of a diffusion model, on the goroutine of Tokens. Of canvases of random tokens these are
// the likeliest so far.
func (g *Generation) WatchCanvas(f func([]CanvasRun)) {
	if g.diffusion != nil {
		g.diffusion.Watch(f)
	}
}

// DiffusionError says which setting of a request a canvas cannot have: of [Diffusion] in lower case, length for its tokens, or of the request, as the server names it.
type DiffusionError = diffuse.SettingError

// canvasError returns an [*OptionError] of a [*DiffusionError]; nil for nil.
func canvasError(setting string, err error) error {
	if err = diffuse.Blame(setting, err); err != nil {
		err = &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	return err
}

// unfillable returns an error where the request asks for what no canvas can do, which ends with what to do instead.
func (g *Generation) unfillable(instead string) error {
	r := &g.req
	for _, not := range []struct {
		is            bool
		setting, what string
	}{
		{r.Suffix != nil, "suffix", "a suffix"}, {r.Search != "", "search", "a search"}, {r.SkipLayers != "", "skip_layers", "skipping layers"},
		{r.Method != "" && r.Method != MethodAuto && r.Method != MethodOff, "method", "a method that drafts"}, {r.Accept != "" && r.Accept != AcceptExact, "accept", "a rule that accepts drafts"},
		{r.set != nil, "lora", "adapters"}, {r.Constraint != nil && r.Constraint.Lookahead != nil, "lookahead", "a constraint that looks ahead"},
	} {
		if not.is {
			return canvasError(not.setting, fmt.Errorf("%s fills a canvas by diffusion, for which %s is not supported%s", g.model.Info().Arch, not.what, instead))
		}
	}
	return nil
}

// draws returns how the tokens of the canvas are drawn.
func (g *Generation) draws() diffuse.Draws {
	r := &g.req
	return diffuse.Draws{
		Settings: sample.Settings{Params: r.Sampling, Penalties: r.Penalties, Thinking: g.thinking, SampleIndex: r.SampleIndex, Stages: g.stages},
		Prompt:   g.prompt, Vocabulary: g.model.Vocabulary(), Top: r.Top, Drawn: r.PostSampling,
	}
}

// fill fills the canvas and gives its tokens as they are certain, from the beginning.
func (g *Generation) fill(yield func(Token, error) bool) (err error) {
	if err := g.checkSession(); err != nil {
		return err
	}
	c, err := fill.Open(g.model.engine, &fill.Request{Answer: *g.diffusion, Draws: g.draws(), Terms: g.req.terms(), Session: g.req.Session, Progress: g.req.Progress})
	if err != nil {
		return err
	}
	defer func() {
		g.stats.CanvasStats = c.Stats()
		blamed := g.blame(c, err)
		saved := g.save(c, err)
		err = errors.Join(blamed, saved, c.Close())
	}()
	return g.emit(func(ctx context.Context) (engine.SampledToken, error) {
		t, err := c.Next(ctx)
		if g.stats.PromptTime == 0 {
			g.stats.PromptTime, g.stats.ReusedTokens = time.Since(g.start), c.Reused()
		}
		return t, err
	}, c.Ended, yield)
}

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
