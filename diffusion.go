package grove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"grove/diffuse"
	"grove/engine"
	"grove/internal/kernel"
	"grove/model"
	"grove/sample"
	"grove/text/token"
)

// Diffusion says how a model of masked diffusion fills the canvas of an answer, which has as many tokens as the answer may. The zero value is Fast-dLLM's threshold
// over one block, without a cache.
type Diffusion struct {
	Steps  int    // passes of all blocks together, for policies that count them; 0: one for each token
	Block  int    // tokens of a block: blocks are filled one after the other; 0: the canvas is one
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
	s := diffuse.Settings{Length: diffuse.MostLength, Policy: d.Policy, Cache: d.Cache, Blocks: d.Blocks, Delimiters: []token.ID{0}, Early: d.Early, Filter: &model.CanvasFilter{Length: diffuse.MostLength}}
	if err := s.Check(); err != nil {
		return &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	return nil
}

// usualCanvas is the tokens of a canvas where the request names none.
const usualCanvas = 128

// canvas prepares the canvas of an answer of a model of masked diffusion. Errors are an [*OptionError] that names what such a model cannot do.
func (g *Generation) canvas() error {
	info, r := g.model.resident.Model.Info().Diffusion, &g.req
	if info == nil {
		if r.Diffusion != nil {
			return &OptionError{Err: fmt.Errorf("grove: %s is no model of masked diffusion; leave out its settings", g.model.Info().Arch)}
		}
		return nil
	}
	p := &r.Penalties
	for _, not := range []struct {
		is   bool
		what string
	}{
		{r.Constraint != nil, "a constraint"}, {r.Session != "", "a session"}, {r.Suffix != nil, "a suffix"}, {r.Heal, "healing the prompt's end"},
		{r.Search != "", "a search"}, {r.SkipLayers != "", "skipping layers"}, {r.Method != "" && r.Method != MethodAuto && r.Method != MethodOff, "a method that drafts"}, {r.Accept != "" && r.Accept != AcceptExact, "a rule that accepts drafts"},
		{r.Thinking != nil, "a bound of thoughts"}, {r.Top > 0 || r.PostSampling, "the likeliest tokens beside each"}, {len(r.Adapters) > 0, "adapters"},
		{r.Sampling.Mirostat.Version > 0, "mirostat"}, {p.MinTokens > 0, "a least number of tokens"},
		{p.Repeat != 0 && p.Repeat != 1 || p.Presence != 0 || p.Frequency != 0 || p.DRY.Multiplier != 0, "a penalty of repetitions"},
	} {
		if not.is {
			return &OptionError{Err: fmt.Errorf("grove: %s fills a canvas by masked diffusion, for which %s is not supported", g.model.Info().Arch, not.what)}
		}
	}
	d := Diffusion{}
	if r.Diffusion != nil {
		d = *r.Diffusion
	}
	room := g.model.engine.Context() - len(g.prompt)
	if r.MaxTokens == 0 {
		r.MaxTokens = min(usualCanvas, room)
	}
	if r.MaxTokens > room || room < 1 {
		return &OptionError{Err: fmt.Errorf("grove: a canvas of %d tokens behind a prompt of %d: the context has %d", r.MaxTokens, len(g.prompt), g.model.engine.Context())}
	}
	g.diffusion = &diffuse.Settings{
		Length: r.MaxTokens, Block: d.Block, Passes: d.Steps, Policy: d.Policy, Cache: d.Cache, Drafts: d.Drafts, Mask: info.Mask, Shift: info.Shift,
		Blocks: d.Blocks, Early: d.Early, Ends: g.ends,
	}
	if info.Filter != nil {
		g.diffusion.Filter = info.Filter
	}
	if d.Blocks != "" {
		g.diffusion.Delimiters = g.model.lineEnds()
	}
	if err := g.diffusion.Check(); err != nil {
		return &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	if d.Cache != "" && d.Cache != "none" {
		g.stats.Grade = Lossy
	}
	return nil
}

// lineEnds returns the tokens that are the ends of lines, with blanks behind them.
func (m *Model) lineEnds() (ids []token.ID) {
	var piece []byte
	for id := range m.Vocabulary() {
		var err error
		if piece, err = m.tokenizer.AppendPiece(piece[:0], token.ID(id), false); err == nil && bytes.HasPrefix(piece, []byte("\n")) && len(bytes.TrimSpace(piece)) == 0 {
			ids = append(ids, token.ID(id))
		}
	}
	return ids
}

// fill fills the canvas and gives its tokens as they are certain, from the beginning.
func (g *Generation) fill(yield func(Token, error) bool) (err error) {
	chain, err := sample.NewChain(sample.Settings{Params: g.req.Sampling, Penalties: g.req.Penalties, SampleIndex: g.req.SampleIndex}, g.model.Vocabulary())
	if err != nil {
		return err
	}
	chain.Begin(g.prompt)
	board, err := g.model.engine.OpenBoard(len(g.prompt) + g.diffusion.Length)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, board.Close()) }()
	d, err := diffuse.New(g.prompt, *g.diffusion, board, diffuse.NewSampler(chain, len(g.prompt), g.model.Vocabulary()))
	if err != nil {
		return err
	}
	given := 0
	return g.emit(func(ctx context.Context) (t engine.SampledToken, err error) {
		for len(d.Finished()) == given {
			if d.Done() {
				return t, engine.ErrContext
			}
			if err := d.Step(ctx); err != nil {
				return t, err
			}
			g.stats.CanvasStats = d.Stats()
			if g.stats.PromptTime == 0 {
				g.stats.PromptTime = time.Since(g.start)
			}
		}
		at := d.Finished()[given]
		given++
		return engine.SampledToken{Token: sample.Token{ID: at.ID, Logprob: float32(kernel.Log64(max(at.P, math.SmallestNonzeroFloat64)))}}, nil
	}, yield)
}
