package grove

import (
	"cmp"
	"errors"
	"fmt"

	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/text/prompt"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Thinks reports whether the model has markers of thinking, which a budget can bound.
func (m *Model) Thinks() bool { return m.prompts.Markers.Begin != nil }

// markers returns the markers of the model's thoughts, none where it has none, and no bound.
func (m *Model) markers() sample.Thinking {
	k := m.prompts.Markers
	return sample.Thinking{Begin: k.Begin, End: k.End, Budget: -1}
}

// control returns the spelling of a control token, "" for other tokens.
func (m *Model) control(id token.ID) string {
	if m.tokenizer.Type(id) != tokenizer.Control {
		return ""
	}
	return m.tokenizer.Text(id)
}

// Thoughts says what stands at the end of thoughts.
type Thoughts = engine.ThoughtsOptions

// bound says how the answer's thoughts are counted, bounded and extended. It returns an [*OptionError] for what cannot be kept.
func (g *Generation) bound() error {
	t, o, budget := g.model.markers(), g.req.Thoughts, g.req.Thinking
	err := o.Check(budget)
	switch {
	case budget != nil && *budget < 0:
		err = fmt.Errorf("grove: the thinking budget is %d tokens; it must be 0 or more", *budget)
	case err == nil && t.Begin == nil && (budget != nil || o != Thoughts{}):
		err = prompt.ErrNoMarkers()
	case err == nil && o.Least > 0 && g.req.Search != "":
		err = errors.New("grove: thoughts with extensions, and a search: a search ends the thoughts of its samples where they end; leave one out")
	}
	if err == nil && o.Least > 0 && g.model.model.Info().Diffusion != nil {
		err = errors.New("grove: thoughts with extensions; a diffusion model fills its canvas in any order, and its thoughts are not extended")
	}
	if err == nil && budget != nil {
		t.Budget = *budget
	}
	if err == nil && o.Message != "" {
		t.Message, err = engine.EncodeThoughts(o.Message, g.model.plainly, t.End[0])
	}
	g.thinking, g.thoughts = t, t.Count(g.prompt)
	if err == nil && o.Least > 0 {
		x := &engine.ThoughtsExtension{Least: o.Least, Most: o.Extensions, Budget: t.Budget, End: t.End[0], Ends: g.ends, Thoughts: g.thoughts}
		x.Wait, err = engine.EncodeThoughts(cmp.Or(o.Wait, engine.ThoughtsDefaultWait), g.model.plainly, x.End)
		g.extends = x
	}
	if err != nil {
		return &OptionError{Err: err}
	}
	return nil
}

// plainly returns the tokens of a text in which special tokens are plain text.
func (m *Model) plainly(text string) ([]token.ID, error) { return m.Tokenize(text, false, true) }

// countThoughts notes what is known of the thoughts so far.
func (g *Generation) countThoughts() {
	g.stats.Reasoning, g.stats.ThoughtsForced = g.thoughts.Tokens(), g.thoughts.Forced()
	if g.extends != nil {
		g.stats.Extensions = g.extends.Count
	}
}
