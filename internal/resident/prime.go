package resident

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"grove/internal/engine"
	"grove/internal/engine/speculate"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
)

// Primed describes the file that [Model.Prime] wrote.
type Primed struct {
	Path   string  `json:"path"`   // of the file
	Tokens int     `json:"tokens"` // whose successors it has
	Layers int     `json:"layers"` // first ones of the model, on which they were computed
	Hits   float64 `json:"hits"`   // share of the tokens of a text of the model's own that are among the successors of those before
}

// primeText is the number of tokens of the text by which layers are chosen.
const primeText = 256

// Prime computes the likeliest successors of the n tokens with the lowest ids, each behind the token that begins texts, if there is one, and keeps
// them for those methods that are [method.Primer]: opened later, they begin with them, for texts of any salt, as no text taught
// them. It uses the first layer or all, whichever successors have more of a text that the model draws. Errors: an [*OptionError] for n out of
// range; those of [engine.Engine.NewSequence] and [method.Prime], and of a file that cannot be written.
func (m *Model) Prime(ctx context.Context, n int, told func(done, all int)) (p Primed, err error) {
	e, begin := m.Engine, m.Tokenizer.BOS()
	size := e.Model().Size()
	if most := min(method.MaxPrimed, size.Vocabulary); n < 1 || n > most {
		return p, &OptionError{Err: fmt.Errorf("grove: priming with %d tokens; it must be from 1 to %d", n, most)}
	}
	ids := make([]token.ID, n)
	for i := range ids {
		ids[i] = token.ID(i)
	}
	path, err := e.LearnedPath()
	if err != nil {
		return p, fmt.Errorf("grove: %w", err)
	}
	text, err := ownText(ctx, e, begin, min(primeText, e.Context()-1))
	if err != nil {
		return p, err
	}
	var best *method.Successors
	ways := slices.Compact([]int{1, size.Layers})
	for i, layers := range ways {
		known, done := method.NewSuccessors(size.Vocabulary, 0), i*n
		err := method.Prime(ctx, e.Model(), begin, ids, layers, func(rows []method.RowResult) {
			known.Learn(rows, token.None)
			done += len(rows)
			told(done, len(ways)*n)
		})
		if err != nil {
			return p, err
		}
		if hits := hits(known, text); best == nil || hits > p.Hits {
			best, p = known, Primed{path, n, layers, hits}
		}
	}
	state, err := best.MarshalBinary()
	if err != nil {
		return p, err
	}
	infos := slices.DeleteFunc(method.All(), func(i method.Info) bool { return i.Kind != method.KindLogits })
	return p, speculate.Prime(path, infos, m.Env(), state)
}

// ownText draws a text of n tokens.
func ownText(ctx context.Context, e *engine.Engine, begin token.ID, n int) (text []token.ID, err error) {
	s, err := e.NewSequence(engine.Answer{Sampling: sample.Params{Temperature: 1, Seed: 1}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Append(ctx, []token.ID{max(0, begin)}); err != nil {
		return nil, err
	}
	for range n {
		if _, err := s.Next(ctx); err != nil {
			return nil, err
		}
	}
	return slices.Clone(s.Tokens()), nil
}

// hits returns the share of a text's tokens that are among the successors of those before.
func hits(known *method.Successors, text []token.ID) float64 {
	n := 0
	for i := 1; i < len(text); i++ {
		var row method.SuccessorRow
		if known.Of(&row, token.None, text[i-1]) && slices.ContainsFunc(row[:], func(s method.Successor) bool { return s.P > 0 && s.ID == text[i] }) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(text)-1))
}
