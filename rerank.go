package grove

import (
	"cmp"
	"context"
	"slices"

	"grove/internal/text/token"
)

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
