package grove

import (
	"cmp"
	"context"
	"slices"

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

// Ranked is a document with its score.
type Ranked struct {
	Index  int     // of the document
	Score  float32 // larger is better: a logit, or a probability where the model gives one
	Tokens int     // of the query and the document together
}

// CheckRank returns an [*OptionError] where the model has no head to rank with.
func (m *Model) CheckRank() error {
	_, err := m.resident.PairForm()
	return err
}

// Rerank scores documents by a query and returns them in the order of their scores, the highest first; of equal ones, the first document. Each
// score is that of its document alone, whatever the others are. Errors: an [*OptionError] where the model does not rank ([Model.CheckRank]); a
// query and a document longer than the context ([ErrContext]); ctx's.
func (m *Model) Rerank(ctx context.Context, query string, documents []string) ([]Ranked, error) {
	ranked := make([]Ranked, len(documents))
	for i, d := range documents {
		ids, err := m.PairIDs(ctx, query, d)
		if err == nil {
			ranked[i].Score, err = m.ScoreIDs(ctx, ids)
		}
		if err != nil {
			return nil, err
		}
		ranked[i].Index, ranked[i].Tokens = i, len(ids)
	}
	SortRanked(ranked)
	return ranked, nil
}

// SortRanked sorts documents as [Model.Rerank] does.
func SortRanked(all []Ranked) {
	slices.SortFunc(all, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Index, b.Index))
	})
}

// PairIDs returns the tokens of a query and a document as the model's file joins them. Special tokens written in both are plain text.
func (m *Model) PairIDs(ctx context.Context, query, document string) ([]token.ID, error) {
	form, err := m.resident.PairForm()
	if err != nil {
		return nil, err
	}
	return m.tokenizer.EncodePair(query, document, form, func(ids int) error { return cmp.Or(ctx.Err(), m.CheckPrompt(ids)) })
}

// ScoreIDs returns the score of the tokens of a pair; see [Model.PairIDs].
func (m *Model) ScoreIDs(ctx context.Context, ids []token.ID) (float32, error) {
	if err := m.engine.Closed(); err != nil {
		return 0, err
	}
	score, err := m.resident.Rank(ctx, ids)
	return score, m.busy(err)
}
