package grove

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/engine"
	"grove/internal/engine/reading"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/score"
)

// Logits computes exactly the tokens ids and calls write with the logits behind each, in order: one
// value for each token of the vocabulary. A row is valid during the call. An id out of range is an error
// before anything is computed; write's error ends the computation and is returned. When ctx ends, so does
// the computation, within a layer's time.
func (m *Model) Logits(ctx context.Context, ids []token.ID, write func(row []float32) error) error {
	if err := m.generates(); err != nil {
		return err
	}
	if err := m.checkIDs(ids); err != nil {
		return err
	}
	return m.busy(m.engine.Logits(ctx, ids, 0, write))
}

// checkIDs returns an error where an id is out of range.
func (m *Model) checkIDs(ids []token.ID) error {
	n := m.Vocabulary()
	for i, id := range ids {
		if id < 0 || int(id) >= n {
			return fmt.Errorf("grove: token id %d at index %d is out of range: the vocabulary has %d", id, i, n)
		}
	}
	return nil
}

// LogprobRow is the log-probabilities of what may follow a text. It is valid during the call that it is given to.
type LogprobRow struct {
	logits  []float32
	sampler *sample.Chain
}

// Of returns the natural logarithm of the model's probability of a token, which is of the vocabulary.
func (r LogprobRow) Of(id token.ID) float32 { return r.sampler.Logprob(r.logits, id) }

// Top returns the n likeliest tokens, the likeliest first.
func (r LogprobRow) Top(n int) ([]TopLogprob, error) { return r.sampler.Top(r.logits, n) }

// Logprobs is [Model.Logits] for log-probabilities, those that [Token] has.
func (m *Model) Logprobs(ctx context.Context, ids []token.ID, write func(row LogprobRow) error) error {
	s, err := sample.NewChain(sample.Settings{}, m.model.Info().Vocabulary)
	if err != nil {
		return err
	}
	return m.Logits(ctx, ids, func(row []float32) error { return write(LogprobRow{row, s}) })
}

// StatesOptions says which states of a text's tokens are read.
type StatesOptions struct {
	// Layers are numbers of layers, ascending: behind the first K layers, the residual stream as it is. 0 are the embeddings, as they enter the
	// first layer, and [Info].Layers is the stream before the final norm.
	Layers []int
	// Final reads the state behind the final norm, which the output head reads, too.
	Final bool
}

// States computes exactly the tokens ids, of a text of its own in which a token sees itself and those before it, and calls write for each, in order, with
// what was read of it: a state of [Info].Width values for each of the layers, in their order, and then the final one. They have the bits that the
// model has when it answers, with the same type of cache, whatever the threads and chunks. write must not keep or change the slices.
// Calls are independent and may be made by several goroutines. Errors: an [*OptionError] where nothing is to be read, where the model has no such layer, is an encoder or an
// encoder-decoder; no tokens; an id out of range; [ErrContext], [ErrBusy]; write's, ctx's, the model's.
func (m *Model) States(ctx context.Context, ids []token.ID, o StatesOptions, write func(states [][]float32) error) error {
	if err := m.generates(); err != nil {
		return err
	}
	r, err := m.statesOf(o)
	if err != nil {
		return &OptionError{Err: err}
	}
	if len(ids) == 0 {
		return errors.New("grove: the text is empty: it has no states")
	}
	if err := m.checkIDs(ids); err != nil {
		return err
	}
	width, parts := m.model.Info().Width, make([][]float32, 0, len(o.Layers)+1)
	return m.busy(m.engine.States(ctx, ids, r, func(row []float32) error {
		for parts = parts[:0]; len(row) > 0; row = row[width:] {
			parts = append(parts, row[:width:width])
		}
		return write(parts)
	}))
}

// statesOf returns how the states of options are read.
func (m *Model) statesOf(o StatesOptions) (r reading.Reading, err error) {
	info := m.model.Info()
	r = reading.Reading{Layers: []int{}, Mask: reading.Causal, State: o.Final}
	switch {
	case info.Source != nil:
		return r, fmt.Errorf("grove: %s is an encoder-decoder: a text alone has no states, its decoder's depend on a source", info.Arch)
	case len(o.Layers) == 0 && !o.Final:
		return r, errors.New("grove: no states are asked for; name layers, or the final state")
	}
	for i, k := range o.Layers {
		switch {
		case k < 0 || k > len(info.Layers):
			return r, fmt.Errorf("grove: layer %d: the model has states from 0 (the embeddings) to %d (behind its layers)", k, len(info.Layers))
		case i > 0 && k <= o.Layers[i-1]:
			return r, fmt.Errorf("grove: layers %v: they must ascend", o.Layers)
		case k == 0:
			r.Embeds = true
		default:
			r.Layers = append(r.Layers, k-1)
		}
	}
	return r, nil
}

// Continuation is a text that was scored behind a prompt.
type Continuation = score.Continuation

// ScoreOptions says how continuations are scored. The zero value is the usual case.
type ScoreOptions struct {
	// Unconditional is a second prompt, which holds no question, such as "Answer:": each continuation is scored behind it too, for the
	// normalisation by mutual information. Behind an empty one it is scored without the white space at its beginning. nil: none.
	Unconditional *string

	CacheSalt string              // as [Request.CacheSalt]
	Private   bool                // as [Request.Private]
	Priority  int                 // as [Request.Priority]
	Adapters  []AdapterScale      // as [Request.Adapters]
	Progress  func(done, all int) // as [Request.Progress]
}

// Scores are continuations that were scored behind a prompt.
type Scores = score.Scores

// Scoring is continuations that are to be scored, as tokens. It is for one goroutine.
type Scoring = score.Scoring

// Score returns the log-probability of each continuation behind a prompt, token by token. The prompt is computed once; the continuations are
// branches of one tree, whose rows share steps. A continuation's scores have the bits of that continuation alone, and of the
// log-probabilities that plain decoding reports. [score.Split] says where a continuation's tokens begin. Errors: those of [Model.Scoring] and
// [Scoring.Compute].
func (m *Model) Score(ctx context.Context, prompt string, continuations []string, o ScoreOptions) (*Scores, error) {
	s, err := m.Scoring(ctx, prompt, continuations, o)
	if err != nil {
		return nil, err
	}
	scores, err := s.Compute(ctx)
	return scores, m.busy(err)
}

// Scoring prepares what [Model.Score] computes. Errors: [Model.CheckScores]; an [*OptionError] for another setting; a [*score.Error] for a
// continuation without a token, or one that is too long with the prompt, which is an [ErrContext] too; ctx's.
func (m *Model) Scoring(ctx context.Context, prompt string, continuations []string, o ScoreOptions) (*Scoring, error) {
	if err := m.CheckScores(); err != nil {
		return nil, err
	}
	set, err := m.resident.AdapterSet(o.Adapters)
	if err != nil {
		return nil, err
	}
	terms := (&Request{Priority: o.Priority, CacheSalt: o.CacheSalt, Private: o.Private, set: set}).terms()
	if err := terms.Check(); err != nil {
		return nil, &OptionError{Err: err}
	}
	k := score.Scorer{Engine: m.engine, Tokenizer: m.tokenizer, Encode: func(ctx context.Context, text string) (ids []token.ID, err error) {
		err = m.parts(ctx, text, tokenizer.Options{}, func(part []token.ID) error {
			ids = append(ids, part...)
			return m.CheckPrompt(len(ids))
		})
		return ids, err
	}}
	return k.Prepare(ctx, prompt, continuations, o.Unconditional, engine.ScoreRequest{Terms: terms, Progress: o.Progress})
}

// CheckScores returns an [*OptionError] where the model has no log-probabilities of what follows a text, and [ErrClosed] where it is closed.
func (m *Model) CheckScores() error {
	if err := m.generates(); err != nil {
		return err
	}
	if err := m.engine.CheckScores(); err != nil {
		return &OptionError{Err: err}
	}
	return nil
}
