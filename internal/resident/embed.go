package resident

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"grove/internal/engine/reading"
	"grove/internal/model"
	"grove/internal/text/token"
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

// Pooling returns the pooling that the model uses with options, or an [*OptionError].
func (m *Model) Pooling(o EmbedOptions) (model.Pooling, error) {
	i := m.Model.Info()
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

// Embed returns the vectors of the tokens of a text: one, or with many as many as the pooling gives. Errors: an [*OptionError], those of
// [engine.Engine.States].
func (m *Model) Embed(ctx context.Context, ids []token.ID, o EmbedOptions, many bool) ([][]float32, error) {
	p, err := m.Pooling(o)
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
	r, states, err := reading.Of(read, m.Model.Info(), len(ids))
	if err != nil {
		return nil, &OptionError{Err: fmt.Errorf("grove: %w", err)}
	}
	states.Kind, states.Progress = p, o.Progress
	if err := m.Engine.States(ctx, ids, r, states.Add); err != nil {
		return nil, err
	}
	return states.Vectors(!o.Raw), nil
}

// PairForm returns the file's text for pairs of a query and a document, "" of an encoder that needs none, or an [*OptionError] where the model has
// no head to rank with.
func (m *Model) PairForm() (string, error) {
	i := m.Model.Info()
	if i.Rank == nil {
		return "", &OptionError{Err: fmt.Errorf("grove: %s has no head to rank texts with (tensors cls and cls.output)", i.Arch)}
	}
	form, _, err := m.File.String("tokenizer.chat_template.rerank")
	if err != nil || form == "" && !i.Encoder {
		return "", &OptionError{Err: cmp.Or(err, fmt.Errorf("grove: the file does not say how %s reads a query and a document (tokenizer.chat_template.rerank)", i.Arch))}
	}
	return form, nil
}

// Rank returns the score of the tokens of a pair. Errors: those of [Model.PairForm] and of [engine.Engine.States].
func (m *Model) Rank(ctx context.Context, ids []token.ID) (float32, error) {
	if _, err := m.PairForm(); err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, errors.New("grove: the query and the document are empty, and the model has no token that begins a text")
	}
	rank := m.Model.Info().Rank
	states := reading.Pooler{Kind: rank.Pooling, Tokens: len(ids)}
	if err := m.Engine.States(ctx, ids, reading.Reading{}, states.Add); err != nil {
		return 0, err
	}
	return rank.Values(states.Vectors(false)[0])[0], nil
}
