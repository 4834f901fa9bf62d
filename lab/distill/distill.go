// Package distill makes hidden Markov models of the texts of a language model, for constraints that look ahead.
package distill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"grove"
	"grove/constrain/hmm"
	"grove/internal/text/token"
)

// Options say of what texts a hidden Markov model is made, and how.
type Options struct {
	Prompts    []string // of the texts, in turns; none: texts begin as the model begins them
	Samples    int      // texts
	MaxTokens  int      // of each; 0: until the text or the context ends
	States     int      // hidden states
	Iterations int      // passes over the texts
	Seed       uint64
	// Progress, where it is not nil, is told how many texts are drawn, and then how many passes are done, and the mean logarithm of a
	// token's probability before that pass. It is called by one goroutine at a time.
	Progress func(texts, passes int, logprob float64)
}

// Write draws texts of the model at temperature 1, makes a hidden Markov model of them, and writes it as a GGUF file. The same
// model, arguments and version of grove give the same file. Errors: a [*grove.OptionError]; ctx's; those of w.
func Write(ctx context.Context, m *grove.Model, d Options, w io.Writer) error {
	if d.Samples < 1 || d.MaxTokens < 0 || d.States < 1 || d.States > hmm.MaxStates || d.Iterations < 1 {
		return &grove.OptionError{Err: fmt.Errorf("distill: %d texts, %d passes, %d states; at least 1 of each, and at most %d states",
			d.Samples, d.Iterations, d.States, hmm.MaxStates)}
	}
	texts, err := drawTexts(ctx, m, d)
	if err != nil {
		return err
	}
	o := hmm.FitOptions{States: d.States, Iterations: d.Iterations, Seed: d.Seed}
	o.Each = func(pass int, logprob float64) error {
		if d.Progress != nil {
			d.Progress(d.Samples, pass, logprob)
		}
		return context.Cause(ctx)
	}
	made, err := hmm.Fit(texts, m.Vocabulary(), o)
	if err != nil {
		return err
	}
	return made.Write(w, filepath.Base(m.Info().Name))
}

// drawTexts draws the texts side by side, each with a sample index of its own.
func drawTexts(ctx context.Context, m *grove.Model, d Options) ([][]token.ID, error) {
	prompts := d.Prompts
	if len(prompts) == 0 {
		prompts = []string{""}
	}
	texts, errs := make([][]token.ID, d.Samples), make([]error, d.Samples)
	free := make(chan struct{}, m.Info().Parallel)
	var work sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i := range texts {
		free <- struct{}{}
		work.Go(func() {
			defer func() { <-free }()
			if errs[i] = ctx.Err(); errs[i] != nil {
				return
			}
			r := grove.Request{Prompt: prompts[i%len(prompts)], SampleIndex: i, Seed: &d.Seed, MaxTokens: d.MaxTokens, Sampling: grove.Sampling{Temperature: 1}, Private: true}
			texts[i], errs[i] = drawText(ctx, m, r)
			mu.Lock()
			defer mu.Unlock()
			if done++; d.Progress != nil {
				d.Progress(done, 0, 0)
			}
		})
	}
	work.Wait()
	return texts, errors.Join(errs...)
}

// drawText draws one text; the token that ends it is one of its tokens.
func drawText(ctx context.Context, m *grove.Model, r grove.Request) (ids []token.ID, err error) {
	g, err := m.Generate(ctx, r)
	if err != nil {
		return nil, err
	}
	for t, err := range g.Tokens() {
		if err != nil {
			return nil, err
		}
		if t.ID != token.None {
			ids = append(ids, t.ID)
		}
	}
	if s := g.Stats(); s.StopToken != token.None {
		ids = append(ids, s.StopToken)
	}
	return ids, nil
}
