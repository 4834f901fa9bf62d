package grove

import (
	"context"
	"errors"
	"fmt"

	"grove/engine/reading"
	"grove/model"
	"grove/text/token"
)

// EmbedOptions says how the states of a text's tokens become its embedding. The zero value is the usual case.
type EmbedOptions struct {
	// Pooling is mean (of all tokens), cls (the first token), last (the last token), or none (a vector for each token).
	// "" is the pooling that the model's file names. Where it names none, an encoder has mean and any other model last,
	// the only token that sees the whole text. UniXcoder is read as an encoder.
	Pooling string
	Raw     bool // keep the length that the model gives; otherwise vectors have length 1

	// Dimensions is the number of values that a vector has, the first ones of the model's: for models that were trained for it (Matryoshka,
	// Kusupati et al. 2022). They are scaled to length 1 behind the cut. 0: all.
	Dimensions int

	// Layers are the layers whose streams are read, as they are, instead of the state behind the final norm; -1 is the last one. Of several, a token has
	// the mean. Projections behind the pooling are left out.
	Layers []int
	// Exit, above 0, reads the state that the model has without the layers behind the first Exit ones, behind the final norm, or the norm and the head of that
	// exit where the file has them. The text must fit into one step.
	Exit int
	// Tokens are the tokens that count for the pooling; -1 is the last one. nil: all.
	Tokens []int
	// Mask is causal (a token sees those before it), full (all tokens see each other, as in LLM2Vec, BehnamGhader et al. 2024), or masks of layers and of ranges of layers, from
	// 0: "causal:0..11,full:12..last"; layers that are not named have the model's own. "" is the model's own: full for an encoder, and
	// causal for any other model. With full, the text must fit into one step; a recurrent model has no such mask. Layers that share keys have one mask.
	Mask string

	// Progress, where it is not nil, is told how many tokens are computed, of all, by a goroutine that computes. It must not wait.
	Progress func(done, all int)
}

// Embed returns the embedding of a text: one vector, as wide as the model. The tokens that begin and end a
// text are added as the model's file asks. A token of an encoder sees the whole text, a token of any other model
// the text before it. Errors: an [*OptionError] where the pooling gives no single vector; a text without tokens, or
// longer than the context ([ErrContext]); ctx's.
func (m *Model) Embed(ctx context.Context, text string, o EmbedOptions) ([]float32, error) {
	rows, err := m.embed(ctx, text, o, false)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// EmbedTokens returns a vector for each token of a text with the pooling none, and one vector with any other.
func (m *Model) EmbedTokens(ctx context.Context, text string, o EmbedOptions) ([][]float32, error) {
	return m.embed(ctx, text, o, true)
}

// Pooling returns the name of the pooling that the model uses with options, or an [*OptionError].
func (m *Model) Pooling(o EmbedOptions) (string, error) {
	p, err := m.pooling(o)
	return p.String(), err
}

func (m *Model) pooling(o EmbedOptions) (model.Pooling, error) {
	i := m.model.Info()
	p := i.Pooling
	if o.Pooling != "" {
		var err error
		if p, err = model.ParsePooling(o.Pooling); err != nil {
			return p, &OptionError{Err: err}
		}
	}
	switch {
	case p == model.PoolRank:
		return p, &OptionError{Err: errors.New("grove: the model ranks texts by a query; a pooling of mean, cls or last gives embeddings")}
	case p != model.PoolUnset:
		return p, nil
	case i.Encoder || i.Full:
		return model.PoolMean, nil
	}
	return model.PoolLast, nil
}

func (m *Model) embed(ctx context.Context, text string, o EmbedOptions, many bool) ([][]float32, error) {
	var ids []token.ID
	if err := m.TokenizeEmbedded(ctx, text, func(part []token.ID) error { ids = append(ids, part...); return nil }); err != nil {
		return nil, err
	}
	return m.EmbedIDs(ctx, ids, o, many)
}

// EmbedIDs is [Model.Embed] or, with many, [Model.EmbedTokens] for the tokens of a text. It adds no tokens.
func (m *Model) EmbedIDs(ctx context.Context, ids []token.ID, o EmbedOptions, many bool) ([][]float32, error) {
	if err := m.engine.Closed(); err != nil {
		return nil, err
	}
	p, err := m.pooling(o)
	if err != nil {
		return nil, err
	}
	if p == model.PoolNone && !many {
		return nil, &OptionError{Err: errors.New("grove: the pooling is none, which gives a vector for each token; use EmbedTokens, or another pooling")}
	}
	if len(ids) == 0 {
		return nil, errors.New("grove: the text is empty, and the model has no token that begins one")
	}
	read := reading.Options{Layers: o.Layers, Tokens: o.Tokens, Exit: o.Exit, Dimensions: o.Dimensions, Mask: o.Mask}
	r, states, err := reading.Of(read, m.model.Info(), len(ids))
	if err != nil {
		return nil, &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	states.Kind, states.Progress = p, o.Progress
	if err := m.engine.States(ctx, ids, r, states.Add); err != nil {
		return nil, m.busy(err)
	}
	return states.Vectors(!o.Raw), nil
}
