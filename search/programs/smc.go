// smc.go is sequential Monte Carlo (Sampling for Quality: Training-Free Reward-Guided LLM Decoding via Sequential Monte Carlo, 2026): samples draw
// side by side and are weighed by a reward after each block of tokens; those with little weight are replaced by copies of the
// others. With many samples the answer is distributed as p(x) Psi(x), where p is the distribution of the draw and Psi the reward;
// the normaliser's estimate is unbiased with any number. It is lossy.

package programs

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"grove/internal/options"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "smc", Paper: "Sampling for Quality, 2026", Options: "n=8,block=16,power=1,threshold=0.5,moves=0,rollouts=0,horizon=32,pick=draw",
		Open: func(o *options.Options) search.Program {
			return smc{
				n: o.Int("n", 8, 2, 64), block: o.Int("block", 16, 1, 1<<20), power: o.Float("power", 1, .01, 100), threshold: o.Float("threshold", .5, 0, 1),
				moves: o.Int("moves", 0, 0, 16), rollouts: o.Int("rollouts", 0, 0, 16), horizon: o.Int("horizon", 32, 1, 1<<20), best: o.Word("pick", "draw", "best") == "best",
			}
		},
	})
}

type smc struct {
	n, block          int
	power             float64 // the reward's own part: the probability of each token to this power, less 1
	threshold         float64 // samples are resampled where they are worth less than this part of n; 1: always
	moves             int     // that each sample makes behind a resampling
	rollouts, horizon int     // that look ahead, and their tokens
	best              bool    // the answer is the sample with the highest reward
}

// Samples implements [search.Program].
func (s smc) Samples() int { return s.n }

// Rates implements [search.Rater].
func (s smc) Rates() bool { return true }

// Check implements [search.Program].
func (s smc) Check(p *search.Problem) error {
	if err := p.Fit("smc", s.n); err != nil {
		return err
	}
	if p.Scorer == nil && s.power == 1 {
		return errors.New("search: smc: nothing weighs the answers; set power to another number than 1, or the scorer of a program in Go")
	}
	return p.Differs("smc")
}

// A smcRun is a search on its way. Particle i is sample i.
type smcRun struct {
	smc
	p       *search.Problem
	b       *search.Samples
	rng     *rand.Rand
	scores  *search.Scores // nil: the power alone weighs
	all     []particle
	weights *search.Weights
	counts  map[string]float64
}

// A particle is what is known of a sample. Numbers are logarithms.
type particle struct {
	value float64 // the reward of the text so far
	ahead float64 // the reward that is expected behind it
	from  int     // tokens before the last block
	fault string  // why it has no weight
}

// Run implements [search.Program].
func (s smc) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	b, err := search.ForkAll(ctx, p, s.n)
	if err != nil {
		return nil, err
	}
	b.Weigh = s.power != 1
	r := &smcRun{
		smc: s, p: p, b: b, rng: p.Rand(), scores: search.NewScores(p), all: make([]particle, s.n), weights: search.NewWeights(s.n), counts: map[string]float64{},
	}
	if err = r.run(ctx); errors.Is(err, search.ErrScorer) {
		for i := range r.all {
			r.all[i].fault = cmp.Or(r.all[i].fault, err.Error()) // what there is, is kept
		}
		err = nil
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// run draws until all samples have ended.
func (r *smcRun) run(ctx context.Context) error {
	for more := true; more; {
		for i := range r.all {
			r.all[i].from = len(r.b.All[i].Drawn)
		}
		err := r.b.DrawUpTo(r.block)
		if err == nil {
			err = r.weigh(ctx)
		}
		if err != nil {
			return err
		}
		worth := search.Effective(r.weights.Shares())
		if least, ok := r.counts["least_effective"]; !ok || worth < least {
			r.counts["least_effective"] = worth
		}
		if more = r.b.GoOn(); more && (r.threshold == 1 || worth < r.threshold*float64(r.n)) {
			if err := r.resample(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// weigh multiplies the weights by the rewards of the last block. Where the scorer does not return in time, all stay as they are.
func (r *smcRun) weigh(ctx context.Context) error {
	next, some := slices.Clone(r.all), make([]bool, r.n)
	for i := range next {
		some[i] = len(r.b.All[i].Drawn) > next[i].from && !math.IsInf(r.weights.Logs[i], -1) // else it has ended before, or is dead
	}
	if err := r.value(ctx, next, some); err != nil {
		return err
	}
	for i := range next {
		if some[i] {
			r.weights.Logs[i] += next[i].reward() - r.all[i].reward()
		}
	}
	if copy(r.all, next); !r.weights.Alive() {
		return errors.New("search: smc: no sample has any weight: " + r.all[0].fault)
	}
	return nil
}

// reward returns that of a particle, with what is expected.
func (q *particle) reward() float64 { return q.value + q.ahead }

// value sets the rewards of those samples of which some is true, and what is expected behind them. A scorer that fails gives no weight.
func (r *smcRun) value(ctx context.Context, all []particle, some []bool) (err error) {
	for i := range all {
		if some[i] && err == nil {
			all[i].ahead = 0
			all[i].value, all[i].fault, err = r.rate(ctx, i)
		}
	}
	if err == nil && r.rollouts > 0 {
		err = r.lookAhead(ctx, all, some)
	}
	return err
}

// rate returns the reward of a sample's text, and why it has none.
func (r *smcRun) rate(ctx context.Context, i int) (value float64, fault string, err error) {
	if r.power != 1 {
		for _, p := range r.b.All[i].Probs {
			value += (r.power - 1) * math.Log(p)
		}
	}
	score, fault, err := r.scores.Rate(ctx, r.p.Text(r.b.All[i].IDs()))
	return value + score, fault, cmp.Or(err, r.scores.Lost())
}

// result chooses the answer.
func (r *smcRun) result() *search.Result {
	w := r.weights.Shares()
	at := search.Choose(w, r.rng.Float64())
	for i := range w {
		if r.best && w[i] > 0 && r.all[i].value > r.all[at].value {
			at = i
		}
	}
	r.counts["effective"], r.counts["log_normaliser"] = search.Effective(w), r.weights.LogNormaliser()
	out := &search.Result{Tokens: r.b.All[at].Drawn, Index: r.b.All[at].Index, Figures: r.counts}
	for i := range r.b.All {
		a := r.b.All[i].Attempt()
		if a.Weight, a.Fault = w[i], r.all[i].fault; !math.IsInf(r.all[i].value, -1) {
			a.Score = r.all[i].value
		}
		out.Attempts = append(out.Attempts, a)
	}
	return out
}
