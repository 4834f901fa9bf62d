// cntp.go is Cautious Next Token Prediction (2025): where the model is unsure of the next token, it tries several continuations, each up to a
// mark of punctuation, and goes on with the one that is likeliest in the mean. Where it is sure, it draws one token as plain
// decoding does. It is lossy.

package programs

import (
	"context"
	"math"
	"strings"

	"grove/internal/options"
	"grove/internal/text/token"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "cntp", Paper: "Cautious Next Token Prediction, 2025", Options: "n=10,low=0.01,high=1.5,trials=program,clause=token",
		Open: func(o *options.Options) search.Program {
			c := cntp{
				most: o.Int("n", 10, 2, 64), low: o.Float("low", .01, 0, 1000), high: o.Float("high", 1.5, 0, 1000),
				formula: o.Word("trials", "program", "paper"), wide: o.Word("clause", "token", "text") == "text",
			}
			if c.high <= c.low {
				o.Fail("high is not above low; it must be")
			}
			return c
		},
	})
}

type cntp struct {
	most      int     // trials at a time
	low, high float64 // entropies in nats: of a single trial, and of the most
	formula   string
	wide      bool // a token whose text ends with punctuation ends a trial, too
}

// Samples implements [search.Program].
func (c cntp) Samples() int { return c.most }

// Check implements [search.Program].
func (c cntp) Check(p *search.Problem) error {
	if err := p.Fit("cntp", c.most); err != nil {
		return err
	}
	return p.Differs("cntp")
}

// Run implements [search.Program]. Sample 0 is the answer; the others are its trials, besides the one that it makes itself.
func (c cntp) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.ForkAll(ctx, p, c.most)
	if err != nil {
		return nil, err
	}
	b.Weigh = true
	wait(b, 1)
	r := &cntpRun{cntp: c, p: p, b: b, figures: map[string]float64{"branchings": 0, "trials": 0, "trial_tokens": 0}}
	return b.First(r.figures, func() error { return r.advance(ctx) })
}

// A cntpRun is a search on its way.
type cntpRun struct {
	cntp
	p       *search.Problem
	b       *search.Samples
	row     []float64 // the probabilities of all tokens
	figures map[string]float64
}

// wait lets all samples from the first of so many on wait, and those before draw.
func wait(b *search.Samples, running int) {
	for i := range b.All {
		b.All[i].Waits = i >= running
	}
}

// advance gives the answer a token, or the best of several trials.
func (r *cntpRun) advance(ctx context.Context) (err error) {
	b := r.b
	if r.row, err = b.All[0].Seq.Probs(ctx, r.row); err != nil {
		return err
	}
	n := r.trials(entropy(r.row))
	if n == 1 {
		_, err := b.Draw()
		return err
	}
	from := len(b.All[0].Drawn)
	for i := 1; i < n; i++ {
		if err := b.Copy(i, 0); err != nil {
			return err
		}
	}
	wait(b, n)
	for drew := true; drew; {
		if drew, err = b.Draw(); err != nil {
			return err
		}
		for i := range n {
			s := &b.All[i]
			s.Waits = s.Waits || len(s.Drawn) > from && r.ends(r.p, s.Drawn[len(s.Drawn)-1].ID)
		}
	}
	best := 0
	for i := range n {
		r.figures["trial_tokens"] += float64(len(b.All[i].Drawn) - from)
		if perplexity(b.All[i].Probs[from:]) < perplexity(b.All[best].Probs[from:]) {
			best = i
		}
	}
	r.figures["branchings"]++
	r.figures["trials"] += float64(n)
	if best > 0 {
		err = b.Copy(0, best)
	}
	wait(b, 1)
	return err
}

// trials returns how many trials an entropy asks for.
func (c cntp) trials(entropy float64) int {
	part := (entropy - c.low) / (c.high - c.low)
	if c.formula == "paper" {
		return max(1, min(c.most, int(math.Floor(float64(c.most)*min(part, 1)))))
	}
	return int(1 + float64(c.most-1)*min(max(part, 0), 1))
}

// ends reports whether a token ends a clause, and so a trial: it is a mark of punctuation, or its text ends with one.
func (c cntp) ends(p *search.Problem, id token.ID) bool {
	text, err := p.Piece(nil, id, false)
	if n := len(text); err != nil || n == 0 || !c.wide && n > 1 {
		return false
	}
	if text = []byte(strings.TrimRight(string(text), " \t")); len(text) == 0 {
		return false
	}
	return strings.IndexByte(".,\n?!:;)]}", text[len(text)-1]) >= 0
}

// entropy returns that of a distribution, in nats.
func entropy(row []float64) (sum float64) {
	for _, p := range row {
		if p > 0 {
			sum -= p * math.Log(p)
		}
	}
	return sum
}

// perplexity returns that of tokens that were drawn by these probabilities; of none it is infinite.
func perplexity(probs []float64) float64 {
	sum := 0.0
	for _, p := range probs {
		sum += math.Log(p)
	}
	if len(probs) == 0 {
		return math.Inf(1)
	}
	return math.Exp(-sum / float64(len(probs)))
}
