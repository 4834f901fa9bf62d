package grove

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"grove/constrain"
	"grove/constrain/earley"
	"grove/internal/sample"
	"grove/internal/text/tokenizer"
	"grove/search/bytewise"
)

// Constraint says which texts are legal answers; see [Request.Constraint]. The same one may serve any number of requests.
type Constraint = constrain.Spec

// Lookahead lets a [Constraint] look ahead: a hidden Markov model of a language model's texts, and the tokens that an answer may have.
type Lookahead = constrain.Lookahead

// OpenLookahead reads the hidden Markov model of a file, as "lab hmm" writes it, for answers of at most tokens tokens.
func OpenLookahead(path string, tokens int) (*Lookahead, error) {
	return constrain.OpenLookahead(path, tokens)
}

// SpecError reports a [Constraint] that makes no sense, is beyond a limit, or cannot be had with a model's vocabulary.
type SpecError = constrain.SpecError

// Grammars returns the names of the grammars inside this module, for [Constraint].
func Grammars() []string { return constrain.Grammars() }

// TextError says where a text leaves the language of a [Constraint], and what was possible there.
type TextError = constrain.TextError

// compiler returns the model's cache of compiled constraints.
func (m *Model) compiler() (*constrain.Cache, error) {
	m.constraints.once.Do(func() {
		v, err := constrain.NewVocabulary(m.tokenizer, m.Vocabulary(), m.markers())
		m.constraints.err = err
		if err == nil {
			m.constraints.cache = constrain.NewCache(v, constrain.Limits{Parser: earley.Limits{Bytes: 20 << 20, MaskBytes: 8 << 20}})
		}
	})
	return m.constraints.cache, m.constraints.err
}

// compile returns a constraint for the model's vocabulary, or an [*OptionError].
func (m *Model) compile(c Constraint) (*constrain.Constraint, error) {
	cache, err := m.compiler()
	if err != nil {
		return nil, err
	}
	made, err := cache.Compile(c)
	if err != nil {
		return nil, &OptionError{Err: fmt.Errorf("grove: Request.Constraint: %w", err)}
	}
	return made, nil
}

// CheckConstraint returns an [*OptionError] of a [*SpecError] where a constraint makes no sense, or cannot be had with this model: with the reason, and
// the place in the schema or grammar. A request with a constraint that was checked does not compile it again, if it comes soon.
func (m *Model) CheckConstraint(c Constraint) error {
	_, err := m.compile(c)
	return err
}

// CheckText returns nil where a text is legal under a constraint for models with a tokenizer, and a [*TextError] where it is not. Triggers and
// thoughts do not count: the text is one that would stand behind them. Other errors are a [*SpecError], and those of limits of the grammar.
func CheckText(t *tokenizer.Tokenizer, c Constraint, text string) error {
	v, err := constrain.NewVocabulary(t, t.Size(), sample.Thinking{})
	if err != nil {
		return err
	}
	c.AnyNumbers = c.Schema != nil // texts of others are equal by value
	made, err := constrain.Compile(c, v, constrain.Limits{})
	if err != nil {
		return err
	}
	return made.Check([]byte(text))
}

// constrain makes the stages of the request's constraint, and takes back the end of a prompt that is to be healed.
func (g *Generation) constrain() error {
	r := &g.req
	heal := r.Heal && !r.HealExact // which takes its place
	if r.HealExact {
		if err := g.healExactly(); err != nil {
			return err
		}
	}
	if r.Constraint == nil && !heal {
		return nil
	}
	cache, err := g.model.compiler()
	if err != nil {
		return err
	}
	if heal {
		if r.PromptIDs != nil || r.Suffix != nil || g.model.model.Info().Source != nil {
			return &OptionError{Err: errors.New("grove: Request.Heal: the prompt is tokens or a source, or has a suffix; only the end of a text is healed")}
		}
		if r.Constraint != nil && r.Constraint.Lookahead != nil {
			return &OptionError{Err: errors.New("grove: Request.Heal: the constraint looks ahead, and its hidden Markov model knows no text that begins inside a prompt")}
		}
		var left int
		left, g.head = cache.Vocabulary().Heal(g.prompt)
		g.prompt = g.prompt[:left]
	}
	made := constrain.Free(cache.Vocabulary())
	if r.Constraint != nil {
		if made, err = g.model.compile(*r.Constraint); err != nil {
			return err
		}
	} else if len(g.head) == 0 {
		return nil
	}
	g.legal, g.stages = made, append(made.Stages(g.head), g.stages...)
	return nil
}

// constraints is a model's compiler, made when it is first wanted.
type constraints struct {
	once  sync.Once
	cache *constrain.Cache
	err   error
}

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

// MaskMeter measures constraints with one vocabulary, without a model; see [constrain.Meter].
type MaskMeter = constrain.Meter

// MaskFigures are the times of a constraint, and its verdicts over texts.
type MaskFigures = constrain.Figures

// NewMaskMeter returns a meter for models with a tokenizer.
func NewMaskMeter(t *tokenizer.Tokenizer) (*MaskMeter, error) {
	m, err := constrain.NewMeter(t)
	if err != nil {
		return nil, fmt.Errorf("grove: %w", err)
	}
	return m, nil
}
