package grove

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"grove/internal/engine"
	"grove/internal/engine/adapters"
	"grove/internal/sample"
	"grove/search"
)

// Sequence is one text that a program takes further token by token: [engine.Sequence.Next] draws, Append adds a
// prompt, Fork begins another text that shares what is computed, Truncate cuts back, CancelSiblings ends the forks
// that are not wanted any longer. It is for one goroutine; several sequences share the model's steps.
type Sequence = engine.Sequence

// The range of [Request.Priority].
const (
	MinPriority = engine.MinPriority
	MaxPriority = engine.MaxPriority
)

// terms returns what the request's sequence asks of the scheduler.
func (r *Request) terms() engine.Terms {
	return engine.Terms{Priority: r.Priority, Salt: r.CacheSalt, Private: r.Private, Adapters: r.set}
}

// SampledToken is a token of a [Sequence].
type SampledToken = engine.SampledToken

// Stage changes logits before a token is drawn from them, by a state behind each token of the text, drafts included.
// One value belongs to one sequence.
type Stage = sample.Stage

// LegalStage is a [Stage] that says which tokens are legal: no other is drafted, and forced tokens are drafts for free.
type LegalStage = sample.Legal

// StageState is the state of one [Stage] behind one text.
type StageState = sample.StageState

// Combiner draws one token for two sequences, from the logits of both.
type Combiner = search.Combiner

// NewSequence opens a sequence behind a request's prompt, with its settings, its drafting, and stages of the caller's
// own. What a request says of the end of an answer is the caller's: MaxTokens, Stop, StopTokens. A search or a
// session is refused. The caller closes the sequence; until then it holds one of [Options.Parallel] slots, which one that
// is idle lends where others wait. Errors: those of [Model.Generate], [ErrBusy], ctx's, the model's.
func (m *Model) NewSequence(ctx context.Context, r Request, stages ...Stage) (*Sequence, error) {
	if r.Thoughts.Least > 0 {
		return nil, &OptionError{Err: errors.New("grove: a sequence with thoughts of a least number of tokens; a program replaces their ends by the sequence's own verbs")}
	}
	if r.Search != "" || r.Session != "" {
		return nil, &OptionError{Err: errors.New("grove: a sequence with a search or a session; a program searches by the sequence's own verbs, and saves by Sequence.Save")}
	}
	g, err := m.Generate(ctx, r)
	if err != nil {
		return nil, err
	}
	if g.diffusion != nil {
		return nil, &OptionError{Err: fmt.Errorf("grove: %s fills a canvas by diffusion, and a sequence is decoded token by token%s", m.Info().Arch, m.resident.Model.Info().Diffusion.Instead())}
	}
	draft, err := m.resident.Drafting(ctx, g.req.Method)
	if err != nil {
		return nil, err
	}
	g.stages = append(slices.Clip(g.stages), stages...)
	s, _, err := g.open()
	if err != nil {
		return nil, err
	}
	if err = g.speculate(s, draft); err == nil {
		err = s.Append(ctx, g.prompt)
	}
	if err == nil {
		err = g.weigh(ctx, s)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Ends reports whether a token ends a text, as the model's file says.
func (m *Model) Ends(d SampledToken) bool { return m.tokenizer.IsEOG(d.ID) }

// AdapterFile is a LoRA adapter to open with a model: a GGUF file in llama.cpp's layout, or a folder of PEFT.
type AdapterFile = adapters.File

// Adapter is an open adapter.
type Adapter = adapters.Adapter

// AdapterScale is an adapter that a request asks for, and how much of it.
type AdapterScale = adapters.Scale

// ErrAdapter reports an adapter that is not open, or that is open already.
var ErrAdapter = adapters.ErrAdapter

// LoadAdapter opens an adapter while the model is in use. Errors: an [*OptionError] for a file that cannot be read, for an adapter of
// another base, which is refused by the name of what does not fit before anything is allocated, and for a scale out of range;
// [ErrAdapter] for a name that is taken; [ErrMemory].
func (m *Model) LoadAdapter(f AdapterFile) (Adapter, error) { return m.resident.LoadAdapter(f) }

// UnloadAdapter closes an adapter by its name. Answers that use it go on with it. Errors: [ErrAdapter].
func (m *Model) UnloadAdapter(name string) error { return m.resident.UnloadAdapter(name) }

// Adapters returns the open adapters in the order of opening.
func (m *Model) Adapters() []Adapter { return m.resident.Adapters.All() }

// ScaleAdapters sets the scales that requests without adapters of their own give the open adapters: those that are not named get 0.
// Errors: [ErrAdapter], an [*OptionError]; nothing has changed then.
func (m *Model) ScaleAdapters(scales []AdapterScale) error { return m.resident.ScaleAdapters(scales) }
