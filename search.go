package grove

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"grove/constrain"
	"grove/internal/engine"
	"grove/internal/text/token"
	"grove/method"
	"grove/search"
)

// Attempt is an answer that a search tried.
type Attempt = search.Attempt

// Scorer rates the texts of a search by a function of the caller; see [Request.Scorer].
type Scorer = search.Scorer

// SearchInfo describes a program for [Request.Search].
type SearchInfo struct {
	Name    string `json:"name"`
	Paper   string `json:"paper"`
	Options string `json:"options"` // name=default
}

// Searches returns the programs that there are.
func Searches() []SearchInfo {
	var all []SearchInfo
	for _, i := range search.All() {
		all = append(all, SearchInfo{i.Name, i.Paper, i.Options})
	}
	return all
}

// SearchSlots returns how many texts a search computes of an answer at a time, 1 for "", or an [*OptionError] where a text is none
// that [Request.Search] takes; see [Options.Parallel].
func SearchSlots(text string) (int, error) {
	if text == "" {
		return 1, nil
	}
	p, err := search.Open(text)
	if err != nil {
		return 0, &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	return search.Slots(p), nil
}

// openSearch opens the program that the request asks for, or returns an [*OptionError].
func (g *Generation) openSearch() (err error) {
	if g.req.Search != "" && g.req.Session != "" {
		return &OptionError{Err: errors.New("grove: a search keeps no session; leave out the search or the session")}
	}
	if g.req.Search != "" {
		g.program, err = search.Open(g.req.Search)
	}
	if err == nil {
		err = search.Check(g.program, g.problem(nil))
	}
	if err != nil {
		return &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	if g.program == nil {
		return nil
	}
	if err := g.combine(); err != nil {
		return err
	}
	if n := g.program.Samples(); g.req.SampleIndex > math.MaxInt/n-1 {
		return &OptionError{Err: fmt.Errorf("grove: sample index %d of a search with %d samples; it must be at most %d", g.req.SampleIndex, n, math.MaxInt/n-1)}
	} else {
		g.req.SampleIndex *= n // so that no two samples of several answers are the same
	}
	g.stats.Grade = Lossy
	return nil
}

// SearchProgress is how far a search is.
type SearchProgress = search.Progress

// WatchSearch lets told be told how far the search of the request is, by one goroutine at a time, before [Generation.Tokens] yields the first token. It must not wait for long, as
// the search waits for it. It changes nothing.
func (g *Generation) WatchSearch(told func(SearchProgress)) { g.watch = search.NewWatch(told) }

// steered is what a search by several models needs.
type steered struct {
	legal    *constrain.Constraint // that made the stages; nil: none
	combiner *search.Combiner      // nil: the search combines no logits
}

// combine prepares a program that draws by other logits than the model's: nothing drafts, and the last stage is the combiner's.
func (g *Generation) combine() error {
	if c, ok := g.program.(search.Combining); !ok || !c.Combines() {
		return nil
	}
	if g.healing != nil {
		return &OptionError{Err: errors.New("grove: Request.HealExact: the search draws by other logits than those by which the prompt's end is weighed; leave one out")}
	}
	if infos, auto, _ := method.Parse(g.req.Method); len(infos) > 0 && !auto {
		return &OptionError{Err: fmt.Errorf("grove: method %s: the search draws by other logits than those by which drafts are verified; leave the method to auto or off", g.req.Method)}
	}
	g.req.Method, g.combiner = MethodOff, &search.Combiner{}
	g.stages = append(slices.Clip(g.stages), g.combiner.Stage())
	return nil
}

// guided completes a problem with the guides.
func (g *Generation) guided(p *search.Problem) *search.Problem {
	for _, d := range g.model.resident.Guides {
		p.Guides = append(p.Guides, search.Guide{Name: d.Name(), Engine: d.Engine, Tokenizer: d.Tokenizer, Same: d.Same, Words: d.Words})
	}
	p.Prompt, p.Combiner, p.Terms = g.prompt, g.combiner, g.req.terms()
	p.Terms.Adapters = nil // they are the model's
	p.Answer = func() engine.Answer {
		a := g.answer()
		if a.Stages = nil; g.legal != nil {
			a.Stages = g.legal.Stages(g.head)
		}
		return a
	}
	return p
}

// problem is what the program searches.
func (g *Generation) problem(first *engine.Sequence) *search.Problem {
	slots, _ := g.model.engine.Slots()
	return g.guided(&search.Problem{
		First: first, Index: g.req.SampleIndex, MaxTokens: g.req.MaxTokens, Slots: slots, Greedy: g.req.Sampling.Greedy(),
		Ender: g.ender, Weighed: g.req.Constraint != nil && g.req.Constraint.Weights, Datastore: g.model.resident.Datastore,
		Ends: g.ends, Text: g.textOf, Piece: g.model.tokenizer.AppendPiece, Scorer: g.req.Scorer, Seed: g.stats.Seed, Words: g.model.resident.Words,
		Encode: func(text string) ([]token.ID, error) { return g.model.Tokenize(text, false, true) }, Layers: g.model.engine.Model().Size().Layers, Watch: g.watch,
	})
}

// ends reports whether a token ends the answer.
func (g *Generation) ends(id token.ID) bool {
	return g.model.tokenizer.IsEOG(id) || slices.Contains(g.req.StopTokens, id)
}

// ender returns a function that is told an answer's tokens and reports whether it ends with one.
func (g *Generation) ender() func(engine.SampledToken) bool {
	text, err := g.newText()
	n := 0
	return func(d engine.SampledToken) bool {
		n++
		if err != nil || g.ends(d.ID) {
			return true
		}
		text.Deaf = n <= g.req.Penalties.MinTokens
		_, stopped, err := text.Next(d.ID)
		return err != nil || stopped != ""
	}
}

// search lets the program choose an answer, and returns a function that gives its tokens.
func (g *Generation) search(s *engine.Sequence) (next func(context.Context) (engine.SampledToken, error), err error) {
	r, err := g.program.Run(g.ctx, g.problem(s))
	if err != nil {
		return nil, err
	}
	for i := range r.Attempts {
		r.Attempts[i].Text = g.textOf(r.Attempts[i].IDs)
	}
	g.stats.Attempts, g.stats.Figures = r.Attempts, r.Figures
	rest := r.Tokens
	return func(context.Context) (d engine.SampledToken, err error) {
		if len(rest) == 0 {
			return d, engine.ErrContext
		}
		d, rest = rest[0], rest[1:]
		return d, nil
	}, nil
}

// textOf returns the text of an attempt's tokens.
func (g *Generation) textOf(ids []token.ID) string {
	text, err := g.newText()
	var b strings.Builder
	for stop := ""; err == nil && stop == "" && len(ids) > 0 && !g.ends(ids[0]); ids = ids[1:] {
		var piece string
		piece, stop, err = text.Next(ids[0])
		b.WriteString(piece)
	}
	if err == nil {
		b.WriteString(text.Flush())
	}
	return b.String()
}
