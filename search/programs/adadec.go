// adadec.go is adaptive decoding with uncertainty guidance (Towards Better Code Generation: Adaptive Decoding with Uncertainty Guidance, 2025): greedy
// decoding that pauses where the entropy of the next token reaches a threshold, continues each of the likeliest tokens greedily for a
// few more, and takes the token whose continuation is likeliest in the mean. The threshold is the model's own; [Learn] finds it. Nothing
// is random. It is lossy. With a threshold that no entropy reaches it is greedy decoding.

package programs

import (
	"context"
	"errors"
	"strings"
	"sync"

	"grove/internal/options"
	"grove/internal/sample"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "adadec", Paper: "Adaptive Decoding with Uncertainty Guidance, 2025", Options: "threshold=1,n=3,length=5,leave=never",
		Open: func(o *options.Options) search.Program {
			return adadec{o.Float("threshold", 1, 0, 1000), o.Int("n", 3, 2, 64), o.Int("length", 5, 0, 1024), o.Word("leave", "never", "body") == "body"}
		},
	})
}

type adadec struct {
	threshold float64 // entropy in nats from which on it pauses
	n         int     // tokens that are tried
	length    int     // tokens behind each
	body      bool    // a continuation ends where its text leaves the body of a function
}

// Samples implements [search.Program].
func (a adadec) Samples() int { return a.n }

// Check implements [search.Program].
func (a adadec) Check(p *search.Problem) error { return p.Fit("adadec", a.n) }

// Run implements [search.Program]. Sample 0 is the answer.
func (a adadec) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.ForkAll(ctx, p, a.n)
	if err != nil {
		return nil, err
	}
	r := &adadecRun{adadec: a, p: p, b: b, figures: map[string]float64{"pauses": 0, "other_tokens": 0, "rolled_tokens": 0}}
	return b.First(r.figures, func() error { return r.advance(ctx) })
}

// A adadecRun is a search on its way.
type adadecRun struct {
	adadec
	p       *search.Problem
	b       *search.Samples
	figures map[string]float64
}

// A trial is a token, and the tokens that follow it greedily.
type trial struct {
	sum  float64 // of the logarithms of their probabilities
	n    int
	sure int // of the following tokens, the first so many that no pause comes before
}

// advance gives the answer a token, and those behind it that were computed already.
func (r *adadecRun) advance(ctx context.Context) error {
	main := &r.b.All[0]
	from := len(main.Drawn)
	list, entropy, err := r.likeliest(ctx, 0)
	if err != nil {
		return err
	}
	if entropy < r.threshold || r.length == 0 {
		return r.b.Follow(ctx, 0, list[0].ID)
	}
	for i := 1; i < len(list); i++ {
		if err := r.b.Copy(i, 0); err != nil {
			return err
		}
	}
	trials, errs := make([]trial, len(list)), make([]error, len(list))
	var work sync.WaitGroup
	for i, t := range list {
		work.Go(func() { trials[i], errs[i] = r.roll(ctx, i, t) })
	}
	if work.Wait(); errors.Join(errs...) != nil {
		return errors.Join(errs...)
	}
	best := 0
	for i, t := range trials {
		r.figures["rolled_tokens"] += float64(t.n - 1)
		if t.sum/float64(t.n) > trials[best].sum/float64(trials[best].n) {
			best = i
		}
	}
	r.figures["pauses"]++
	if best > 0 {
		r.figures["other_tokens"]++
		if err := r.b.Copy(0, best); err != nil {
			return err
		}
	}
	return r.b.Rewind(0, main.Drawn[:min(len(main.Drawn), from+1+trials[best].sure)])
}

// roll gives a sample a token and what follows it greedily.
func (r *adadecRun) roll(ctx context.Context, i int, first sample.Token) (trial, error) {
	s := &r.b.All[i]
	from := len(s.Drawn)
	t := trial{sum: float64(first.Logprob), n: 1}
	if err := r.b.Follow(ctx, i, first.ID); err != nil {
		return t, err
	}
	for t.n <= r.length && s.GoesOn() && !(r.body && leaves(r.p.Text(s.IDs()[from:]))) {
		list, entropy, err := r.likeliest(ctx, i)
		if err != nil {
			return t, err
		}
		if err := r.b.Follow(ctx, i, list[0].ID); err != nil {
			return t, err
		}
		if t.sure == t.n-1 && entropy < r.threshold {
			t.sure++
		}
		t.sum, t.n = t.sum+float64(list[0].Logprob), t.n+1
	}
	return t, nil
}

// likeliest returns the tokens that are tried behind a sample, the likeliest first, and the entropy there. Both are behind penalties
// and constraints, so that there is no pause where one token is legal.
func (r *adadecRun) likeliest(ctx context.Context, i int) (list []sample.Token, entropy float64, err error) {
	s := r.b.All[i].Seq
	logits, err := s.Processed(ctx)
	if err != nil {
		return nil, 0, err
	}
	entropy = search.Entropy(logits)
	list, err = s.Likeliest(ctx, r.n)
	return list, entropy, err
}

// leaves reports whether a text leaves the body of a function: a line behind the first begins with no blank, or four lines are empty.
func leaves(text string) bool {
	_, rest, found := strings.Cut(text, "\n")
	for line := range strings.Lines(rest) {
		if c := line[0]; found && c != ' ' && c != '\t' && c != '\n' {
			return true
		}
	}
	return strings.HasSuffix(text, "\n\n\n\n")
}
