// Package scan looks for texts that a model has learnt by heart: Unconditional Token Forcing (Hiding Text in Large Language Models, 2024). Each token of the
// vocabulary is forced as the first of a text, a few likeliest tokens follow, and the tokens behind which the model is surest are taken further.
package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"grove"
	"grove/internal/text/token"
)

// Options say what is scanned.
type Options struct {
	Begin      string // the text before the forced token; special tokens that it spells count as such. "": the token that begins a text
	RankBy     int    // likeliest tokens behind each forced one, by which it is ranked, from 1 to [MaxTokens]
	Candidates int    // of the highest scores, how many are taken further, from 0 to [MaxCandidates]
	MaxTokens  int    // of a candidate's text behind the forced token at most, up to [MaxTokens]; 0: as many

	// Progress, where it is not nil, is told how many texts are computed, of all: one for each token of the vocabulary, and one for each candidate. One goroutine
	// at a time calls it. It must not wait.
	Progress func(done, all int)
}

// Bounds of [Options].
const (
	MaxTokens     = 4096
	MaxCandidates = 1000
)

// Run scans a model. The texts go on from one beginning, as many at a time as the model has free slots ([grove.Options].Parallel); which these are changes no bit of
// the report. Errors: a [*grove.OptionError] for an option that is out of range or a model that does not write token by token; those of
// [grove.Model.NewSequence]; ctx's; the model's.
func Run(ctx context.Context, m *grove.Model, o Options) (r *Report, err error) {
	o.MaxTokens = cmp.Or(o.MaxTokens, MaxTokens)
	if err := o.check(m); err != nil {
		return nil, &grove.OptionError{Err: err}
	}
	s, err := open(ctx, m, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fits(o); err != nil {
		return nil, err
	}
	scores := make([]float64, s.vocabulary)
	err = s.each(ctx, len(scores), func(ctx context.Context, seq *grove.Sequence, i int) error {
		path, err := s.path(ctx, seq, token.ID(i), o.RankBy)
		scores[i] = Score(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	best := order(scores)
	r = &Report{Model: m.Info().Name, Vocabulary: len(scores), RankBy: o.RankBy, Median: scores[best[len(best)/2]]}
	r.Candidates = make([]Candidate, min(o.Candidates, len(best)))
	return r, s.each(ctx, len(r.Candidates), func(ctx context.Context, seq *grove.Sequence, i int) error {
		path, err := s.path(ctx, seq, best[i], o.MaxTokens)
		if err != nil {
			return err
		}
		r.Candidates[i] = candidate(best[i], path, scores[best[i]])
		return s.describe(&r.Candidates[i], path)
	})
}

// check returns what is wrong with the options.
func (o *Options) check(m *grove.Model) error {
	for _, b := range []struct {
		name           string
		n, least, most int
	}{{"RankBy", o.RankBy, 1, MaxTokens}, {"Candidates", o.Candidates, 0, MaxCandidates}, {"MaxTokens", o.MaxTokens, 1, MaxTokens}} {
		if b.n < b.least || b.n > b.most {
			return fmt.Errorf("scan: Options.%s is %d; it must be from %d to %d", b.name, b.n, b.least, b.most)
		}
	}
	if m.Info().EncoderDecoder {
		return fmt.Errorf("scan: %s is an encoder-decoder, whose texts depend on a source; scan a model without an encoder", m.Info().Arch)
	}
	return nil
}

// Score returns the mean probability of a text's tokens: those that were drawn, and the forced one, which counts as certain. A text that ended early has fewer.
func Score(drawn []grove.SampledToken) float64 {
	return (1 + sum(drawn)) / float64(1+len(drawn))
}

// sum returns the sum of the probabilities of tokens.
func sum(drawn []grove.SampledToken) (sum float64) {
	for _, d := range drawn {
		sum += math.Exp(float64(d.Logprob))
	}
	return sum
}

// order returns the tokens in the order of their scores, the highest first; of equal ones, the lowest id.
func order(scores []float64) []token.ID {
	ids := make([]token.ID, len(scores))
	for i := range ids {
		ids[i] = token.ID(i)
	}
	slices.SortFunc(ids, func(a, b token.ID) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	return ids
}

// scanner computes texts that begin alike.
type scanner struct {
	m          *grove.Model
	vocabulary int
	first      int               // tokens before the forced one
	seqs       []*grove.Sequence // one of each text at a time, forks of the first
	all        int               // texts
	progress   func(done, all int)
	mu         sync.Mutex // of done
	done       int
}

// open computes the beginning, and forks it as often as there are free slots.
func open(ctx context.Context, m *grove.Model, o *Options) (*scanner, error) {
	first, err := m.NewSequence(ctx, grove.Request{Prompt: o.Begin, Method: grove.MethodOff, Private: true})
	if err != nil {
		return nil, err
	}
	n := m.Vocabulary()
	s := &scanner{m: m, vocabulary: n, first: first.Len(), seqs: []*grove.Sequence{first}, all: n + min(o.Candidates, n), progress: o.Progress}
	for len(s.seqs) < min(m.Info().Parallel, n) {
		f, err := first.Fork(len(s.seqs))
		if errors.Is(err, grove.ErrBusy) {
			break // others use the model, too
		}
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.seqs = append(s.seqs, f)
	}
	return s, nil
}

// fits returns an error where the context has no room for the tokens by which all texts are ranked.
func (s *scanner) fits(o Options) error {
	if n, holds := s.first+1+o.RankBy, s.m.Info().Context; n > holds {
		return fmt.Errorf("scan: the beginning, the forced token and %d others are %d tokens: %w of %d tokens", o.RankBy, n, grove.ErrContext, holds)
	}
	return nil
}

// close closes the sequences.
func (s *scanner) close() (err error) {
	for _, seq := range slices.Backward(s.seqs) {
		err = errors.Join(err, seq.Close())
	}
	return err
}

// each calls do for the numbers below n, side by side, each call with a sequence for itself. The first error ends all calls.
func (s *scanner) each(ctx context.Context, n int, do func(ctx context.Context, seq *grove.Sequence, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	var next atomic.Int64
	for _, seq := range s.seqs {
		work.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, seq, i); err != nil {
					cancel(err)
					return
				}
				s.tell()
			}
		})
	}
	work.Wait()
	return context.Cause(ctx)
}

// tell counts a text that is computed.
func (s *scanner) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done++; s.progress != nil {
		s.progress(s.done, s.all)
	}
}

// path returns the likeliest tokens behind the beginning and a forced one, at most n: fewer where one ends the text, or the context is full.
func (s *scanner) path(ctx context.Context, seq *grove.Sequence, forced token.ID, n int) (drawn []grove.SampledToken, err error) {
	if err := seq.Truncate(s.first); err != nil {
		return nil, err
	}
	if err := seq.Follow(forced); err != nil {
		return nil, err
	}
	for len(drawn) < n && (len(drawn) == 0 || !s.m.Ends(drawn[len(drawn)-1])) {
		d, err := seq.Next(ctx)
		if errors.Is(err, grove.ErrContext) {
			return drawn, nil
		}
		if err != nil {
			return drawn, err
		}
		drawn = append(drawn, d)
	}
	return drawn, nil
}
