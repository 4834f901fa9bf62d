package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Scorer rates the texts of answers, and of their beginnings where a program asks for that, by a function of the library's caller.
type Scorer struct {
	// Score returns the score of a text: the higher, the better; minus infinity: the text is of no use. It should return once ctx ends. One
	// search calls it one call after the other; several searches may call it at a time.
	Score func(ctx context.Context, text string) (float64, error)
	// Timeout is how long a call may take; 0: [DefaultTimeout]. A search whose call takes longer makes no further one, and
	// chooses by the scores that it has.
	Timeout time.Duration
}

// DefaultTimeout is how long a call of a [Scorer] may take.
const DefaultTimeout = 10 * time.Second

// ErrScorer reports a scorer that did not return in time.
var ErrScorer = errors.New("search: the scorer did not return in time")

// Rater is a program that may ask a [Scorer].
type Rater interface {
	Program
	// Rates reports whether it asks one with its options.
	Rates() bool
}

// Check returns an error where a program cannot search a problem, or does not ask the scorer that it has. program is nil where there is no
// search.
func Check(program Program, p *Problem) error {
	if p.Scorer == nil {
		if program == nil {
			return nil
		}
		return program.Check(p)
	}
	if p.Scorer.Score == nil {
		return errors.New("search: the scorer has no function; set its Score")
	}
	if rater, ok := program.(Rater); !ok || !rater.Rates() {
		return errors.New("search: a scorer is set, and the request has no search that asks one; set a search such as best,by=score, or no scorer")
	}
	return program.Check(p)
}

// Scores asks the scorer of a problem, for one search. It is for one goroutine.
type Scores struct {
	scorer *Scorer
	lost   error // the scorer did not return
}

// NewScores begins to ask the scorer of a problem; without one it returns nil, which rates each text 0.
func NewScores(p *Problem) *Scores {
	if p.Scorer == nil {
		return nil
	}
	return &Scores{scorer: p.Scorer}
}

// Lost returns an [ErrScorer] where the scorer did not return in time, so that no further text is scored.
func (s *Scores) Lost() error {
	if s == nil {
		return nil
	}
	return s.lost
}

// Rate is Of for a program that goes on without a score: fault says why a text has none, which then is minus infinity. The error is ctx's own.
func (s *Scores) Rate(ctx context.Context, text string) (score float64, fault string, err error) {
	if s == nil {
		return 0, "", nil
	}
	score, err = s.Of(ctx, text)
	switch {
	case err != nil && ctx.Err() != nil:
		return score, "", err
	case err != nil:
		return math.Inf(-1), err.Error(), nil
	case math.IsInf(score, -1):
		fault = "search: the scorer gives minus infinity"
	}
	return score, fault, nil
}

// Of returns the score of a text. Errors: the scorer's, that of its panic, a score that is not a number, plus infinity, and
// [ErrScorer]; ctx's own error where that has ended.
func (s *Scores) Of(ctx context.Context, text string) (float64, error) {
	if s.lost != nil {
		return 0, s.lost
	}
	timeout := s.scorer.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type outcome struct {
		score float64
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("search: the scorer panics: %v", p)
			}
			done <- o
		}()
		o.score, o.err = s.scorer.Score(within, text)
	}()
	select {
	case o := <-done:
		if o.err == nil && (math.IsNaN(o.score) || math.IsInf(o.score, 1)) {
			o.err = fmt.Errorf("search: the scorer gives %v; a score is a number, or minus infinity", o.score)
		}
		if o.err == nil || within.Err() == nil {
			return o.score, o.err
		}
	case <-within.Done():
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.lost = fmt.Errorf("%w: a call took more than %v", ErrScorer, timeout)
	return 0, s.lost
}
