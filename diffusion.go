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
	"grove/engine"
	"grove/model"
	"grove/sample"
	"grove/text/token"
)

// Diffusion says how a model of masked diffusion fills the canvas of an answer, which has as many tokens as the answer may. The zero value is Fast-dLLM's threshold
// over one block, without a cache; of a model of blocks, SDAR's dynamic over blocks of its own length, with the keys of finished blocks.
type Diffusion struct {
	Steps  int    // passes of all blocks together, for policies that count them; 0: one for each token
	Block  int    // tokens of a block: blocks are filled one after the other; 0: the canvas is one, or the block of a model of blocks, which it does not exceed
	Policy string // what a pass fixes, with options, as in "threshold:p=0.9"; [DiffusionPolicies] lists them
	Cache  string // whose keys of earlier passes a pass sees; [DiffusionCaches] lists them. All but none are lossy
	Blocks string // "adaptive" or "adaptive:P": a block ends behind a line whose end has at least the probability P (AdaBlock, 2025), and is of Block tokens otherwise; "": no
	Early  string // "prophet": all masks become tokens once they are sure; "end": the canvas ends with the text; "": neither
	Drafts int    // states of the canvas that a pass verifies (FreeDave, 2025), of the policy static; the answer is the same; 0: one
}

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
func CheckDiffusion(d Diffusion) error {
	s := diffuse.Settings{Policy: d.Policy, Cache: d.Cache, Blocks: d.Blocks, Early: d.Early, Filter: &model.CanvasFilter{Length: diffuse.MostLength}}
	if err := diffuse.CheckNames(s); err != nil {
		return canvasError("", err)
	}
	return nil
}

// canvas prepares the canvas of an answer of a model of masked diffusion. Errors are an [*OptionError] that names what such a model cannot do.
func (g *Generation) canvas() error {
	info, r := g.model.resident.Model.Info().Diffusion, &g.req
	if info == nil {
		if r.Diffusion != nil {
			return canvasError("diffusion", fmt.Errorf("%s is no diffusion model; leave out its settings", g.model.Info().Arch))
		}
		return nil
	}
	d := Diffusion{}
	if r.Diffusion != nil {
		d = *r.Diffusion
	}
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
	s := &diffuse.Settings{
		Block: d.Block, Native: info.Block, Passes: d.Steps, Policy: d.Policy, Cache: d.Cache, Drafts: d.Drafts, Mask: info.Mask, Shift: info.Shift,
		Blocks: d.Blocks, Early: d.Early, Ends: g.ends,
		Left: r.Constraint != nil || r.Heal || g.draws().ReadText(), Likely: r.Top > 0 || r.PostSampling,
	}
	if info.Renoise != nil {
		return g.random(info.Renoise, s)
	}
	if info.Filter != nil {
		s.Filter = info.Filter
	}
	usual, room := s.Room(g.model.engine.Context(), len(g.prompt))
	if r.MaxTokens == 0 {
		r.MaxTokens = usual
	}
	if s.Length = r.MaxTokens; r.MaxTokens > room || room < 1 {
		return canvasError("length", fmt.Errorf("a canvas of %d tokens behind a prompt of %d: the context has %d", r.MaxTokens, len(g.prompt), g.model.engine.Context()))
	}
	if d.Blocks != "" {
		tokens := g.model.tokenizer
		s.Delimiters = diffuse.LineEnds(g.model.Vocabulary(), func(dst []byte, id token.ID) ([]byte, error) { return tokens.AppendPiece(dst, id, false) })
	}
	if err := s.Check(); err != nil {
		return canvasError("", err)
	}
	if !s.Exact() {
		g.stats.Grade = Lossy
	}
	g.diffusion = &fill.Answer{Masks: s}
	return nil
}

// random prepares the canvases of an answer of a model whose canvases begin as random tokens.
func (g *Generation) random(own *model.Renoise, wish *diffuse.Settings) error {
	if wish.Length = g.req.MaxTokens; g.req.IgnoreEnd {
		wish.Ends = nil
	}
	s, err := diffuse.Renoise(own, wish, g.model.engine.Context()-len(g.prompt), g.model.Vocabulary())
	if err != nil {
		return canvasError("", fmt.Errorf("%s: %w", g.model.Info().Arch, err))
	}
	g.diffusion = &fill.Answer{Random: s}
	return nil
}

// DiffusionError says which setting of a request a canvas cannot have: of [Diffusion] in lower case, length for its tokens, or of the request, as the server names it.
type DiffusionError = diffuse.SettingError

// canvasError returns an [*OptionError] of a [*DiffusionError].
func canvasError(setting string, err error) error {
	if !errors.As(err, new(*DiffusionError)) {
		err = &DiffusionError{Setting: setting, Err: err}
	}
	return &OptionError{Err: fmt.Errorf("grove: %w", err)}
}

// unfillable returns an error where the request asks for what no canvas can do, which ends with what to do instead.
func (g *Generation) unfillable(instead string) error {
	r := &g.req
	for _, not := range []struct {
		is            bool
		setting, what string
	}{
		{r.Session != "", "session", "a session"}, {r.Suffix != nil, "suffix", "a suffix"}, {r.Search != "", "search", "a search"}, {r.SkipLayers != "", "skip_layers", "skipping layers"},
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
	by := sample.Settings{Params: r.Sampling, Penalties: r.Penalties, Thinking: g.thinking, SampleIndex: r.SampleIndex, Stages: g.stages}
	return diffuse.Draws{Settings: by, Prompt: g.prompt, Vocabulary: g.model.Vocabulary(), Top: r.Top, Drawn: r.PostSampling}
}

// fill fills the canvas and gives its tokens as they are certain, from the beginning.
func (g *Generation) fill(yield func(Token, error) bool) (err error) {
	c, err := fill.Open(g.model.engine, &fill.Request{Answer: *g.diffusion, Draws: g.draws(), Terms: g.req.terms(), Progress: g.req.Progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return g.emit(func(ctx context.Context) (engine.SampledToken, error) {
		t, err := c.Next(ctx)
		g.stats.CanvasStats = c.Stats()
		if g.stats.PromptTime == 0 {
			g.stats.PromptTime, g.stats.ReusedTokens = time.Since(g.start), c.Reused()
		}
		return t, err
	}, c.Ended, yield)
}
