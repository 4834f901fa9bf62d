package grove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"grove/engine/reading"
	"grove/text/token"
)

// Ranked is a document with its score.
type Ranked struct {
	Index  int     // of the document
	Score  float32 // larger is better: a logit, or a probability where the model gives one
	Tokens int     // of the query and the document together
}

// CheckRank returns an [*OptionError] where the model has no head to rank with.
func (m *Model) CheckRank() error {
	_, err := m.pairForm()
	return err
}

// pairForm returns the file's text for pairs, "" of an encoder that needs none, or an [*OptionError].
func (m *Model) pairForm() (string, error) {
	i := m.model.Info()
	if i.Rank == nil {
		return "", &OptionError{Err: fmt.Errorf("grove: %s has no head to rank texts with (tensors cls and cls.output)", i.Arch)}
	}
	form, _, err := m.resident.File.String("tokenizer.chat_template.rerank")
	if err != nil || form == "" && !i.Encoder {
		return "", &OptionError{Err: cmp.Or(err, fmt.Errorf("grove: the file does not say how %s reads a query and a document (tokenizer.chat_template.rerank)", i.Arch))}
	}
	return form, nil
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
	form, err := m.pairForm()
	if err != nil {
		return nil, err
	}
	return m.tokenizer.EncodePair(query, document, form, func(ids int) error { return cmp.Or(ctx.Err(), m.CheckPrompt(ids)) })
}

// ScoreIDs returns the score of the tokens of a pair; see [Model.PairIDs].
func (m *Model) ScoreIDs(ctx context.Context, ids []token.ID) (float32, error) {
	if err := errors.Join(m.engine.Closed(), m.CheckRank()); err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, errors.New("grove: the query and the document are empty, and the model has no token that begins a text")
	}
	rank := m.model.Info().Rank
	states := reading.Pooler{Kind: rank.Pooling, Tokens: len(ids)}
	if err := m.engine.States(ctx, ids, reading.Reading{}, states.Add); err != nil {
		return 0, m.busy(err)
	}
	return rank.Values(states.Vectors(false)[0])[0], nil
}
