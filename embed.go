package grove

import (
	"context"

	"grove/internal/resident"
	"grove/internal/text/token"
)

// EmbedOptions says how the states of a text's tokens become its embedding. The zero value is the usual case.
type EmbedOptions = resident.EmbedOptions

// Embed returns the embedding of a text: one vector, as wide as the model. The tokens that begin and end a
// text are added as the model's file asks. A token of an encoder sees the whole text, a token of any other model
// the text before it. Errors: an [*OptionError] where the pooling gives no single vector; a text without tokens, or longer than the context ([ErrContext]); ctx's.
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
	p, err := m.resident.Pooling(o)
	return p.String(), err
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
	vectors, err := m.resident.Embed(ctx, ids, o, many)
	return vectors, m.busy(err)
}
