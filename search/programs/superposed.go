// superposed.go is Superposed Decoding (Superposed Decoding: Multiple Generations from a Single Autoregressive Inference Pass,
// 2024): several drafts of an answer share one row a token, whose input is the mixture of the embeddings of their last tokens, so that
// k suggestions cost the passes of one. The frequencies of n-grams in a datastore tell which tokens go on which draft. All
// drafts are among the attempts, ranked by perplexity; the answer is the first. Nothing is random. It is lossy.

package programs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"grove/internal/engine"
	"grove/internal/forest"
	"grove/internal/options"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/search"
)

func init() {
	search.Register(search.Info{
		Name: "superposed", Paper: "Superposed Decoding, 2024", Open: openSuperposed,
		Options: "k=3,alpha=0.54 (0 without a datastore),temperature=0.06 (0.12 from k=6 on),top=3k",
	})
}

// The paper's settings: for up to fewDrafts drafts those of 3, else those of 10.
const (
	fewDrafts       = 5
	fewTemperature  = 0.06
	manyTemperature = 0.12
	defaultAlpha    = 0.54
	penalty         = 200 // of a draft none of whose next tokens has an n-gram
)

type superposed struct {
	k           int
	alpha       float64 // share of n-grams in a score; below 0: the default
	temperature float64
	top         int // tokens of a row that are considered
}

// openSuperposed reads the options.
func openSuperposed(o *options.Options) search.Program {
	s := superposed{temperature: fewTemperature, alpha: -1}
	if s.k = o.Int("k", 3, 1, 64); s.k > fewDrafts {
		s.temperature = manyTemperature
	}
	if o.Has("alpha") {
		s.alpha = o.Float("alpha", 0, 0, 0.99)
	}
	s.temperature = o.Float("temperature", s.temperature, 0.01, 10)
	s.top = o.Int("top", 3*s.k, 2*s.k, 4096)
	return s
}

// Samples implements [search.Program]: all drafts have one slot.
func (superposed) Samples() int { return 1 }

// Check implements [search.Program].
func (s superposed) Check(p *search.Problem) error {
	if s.alpha > 0 && p.Datastore == nil {
		return fmt.Errorf("search: superposed: alpha is %v, and there is no datastore whose n-grams it weighs; give one (--datastore), or alpha=0", s.alpha)
	}
	return nil
}

// draft is one of the texts that share their rows.
type draft struct {
	drawn []engine.SampledToken
	state sample.State // of the stages
	score float64      // sum of the scores of its tokens
	ends  func(engine.SampledToken) bool
	ended bool
}

// perplexity ranks drafts; it is finite.
func (d *draft) perplexity() float64 {
	return min(math.MaxFloat64, math.Exp(-d.score/float64(max(1, len(d.drawn)))))
}

// superposedRun is a search on its way.
type superposedRun struct {
	superposed
	p        *search.Problem
	shared   *engine.Superposition
	grams    *grams // nil: there are none
	alive    []draft
	finished []draft // ended by themselves
}

// Run implements [search.Program]. It goes on until k drafts have ended by themselves, or all have as many tokens as they may have.
func (s superposed) Run(ctx context.Context, p *search.Problem) (*search.Result, error) {
	if s.alpha < 0 {
		s.alpha = defaultAlpha
	}
	r := &superposedRun{superposed: s, p: p, alive: []draft{{ends: p.Ender()}}}
	if p.Datastore != nil && s.alpha > 0 {
		r.grams = newGrams(p.Datastore, p.First.Tokens())
	}
	if p.First.Len() == p.First.Engine().Context() {
		return r.result(), nil
	}
	shared, logits, err := p.First.Superpose(ctx, p.MaxTokens)
	if err != nil {
		return nil, err
	}
	r.shared = shared
	for n := 0; ; n++ {
		if err = r.step(logits, n); err != nil || r.done(n+1) {
			break
		}
		if logits, err = shared.Run(ctx, mixture(r.alive)); err != nil {
			break
		}
	}
	if err = errors.Join(err, shared.End()); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// done reports whether the drafts, of n tokens, are the result: the text has a row less than they have tokens.
func (r *superposedRun) done(n int) bool {
	return len(r.finished) >= r.k || len(r.alive) == 0 || n == r.p.MaxTokens || r.p.First.Len()+1 == r.p.First.Engine().Context()
}

// mixture returns the input of the next row: the last tokens of drafts, weighted by the softmax of the scores.
func mixture(drafts []draft) (mix []forest.Weighted) {
	most, sum := math.Inf(-1), 0.0
	for i := range drafts {
		most = max(most, drafts[i].score)
	}
	for i := range drafts {
		sum += math.Exp(drafts[i].score - most)
	}
	for i := range drafts {
		d := &drafts[i]
		id, weight := d.drawn[len(d.drawn)-1].ID, float32(math.Exp(d.score-most)/sum)
		at := slices.IndexFunc(mix, func(w forest.Weighted) bool { return w.ID == id })
		switch {
		case at >= 0:
			mix[at].Weight += weight
		case weight > 0:
			mix = append(mix, forest.Weighted{ID: id, Weight: weight})
		}
	}
	return mix
}

// superposedChoice is a token of a row, and the logarithm of its probability among those that are considered.
type superposedChoice struct {
	id      token.ID
	logprob float64
}

// likeliest returns the n tokens with the largest logits, the largest first and equal ones by id, and their probabilities at a temperature.
// Masked tokens are none.
func likeliest(logits []float32, n int, temperature float64) []superposedChoice {
	list := make([]superposedChoice, 0, n+1)
	for id, l := range logits {
		x := float64(l) / temperature
		if !(x > math.Inf(-1)) || len(list) == n && x <= list[n-1].logprob {
			continue
		}
		at := len(list)
		for at > 0 && list[at-1].logprob < x {
			at--
		}
		list = slices.Insert(list, at, superposedChoice{token.ID(id), x})[:min(n, len(list)+1)]
	}
	sum := 0.0
	for _, c := range list {
		sum += math.Exp(c.logprob - list[0].logprob)
	}
	for i, most := len(list)-1, math.Log(sum); i >= 0; i-- {
		list[i].logprob -= list[0].logprob + most
	}
	return list
}

// candidate is a draft with a token behind it.
type candidate struct {
	draft int
	id    token.ID
	score float64
}

// superposedBest returns the n candidates with the largest scores, equal ones in order. Those without a probability are none.
func superposedBest(drafts []draft, scores [][]superposedChoice, n int) []candidate {
	var all []candidate
	for i := range drafts {
		for _, c := range scores[i] {
			if score := drafts[i].score + c.logprob; score > math.Inf(-1) {
				all = append(all, candidate{i, c.id, score})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	return all[:min(n, len(all))]
}

// step gives the drafts, of n tokens, their next token by the logits that they share.
func (r *superposedRun) step(logits []float32, n int) error {
	scores := make([][]superposedChoice, len(r.alive))
	for i := range r.alive {
		at := slices.IndexFunc(r.alive[:i], func(d draft) bool { return d.state == r.alive[i].state })
		if at < 0 {
			scores[i] = likeliest(r.shared.Process(r.alive[i].state, logits), r.top, r.temperature)
		} else {
			scores[i] = slices.Clone(scores[at])
		}
	}
	if r.grams != nil {
		if err := r.grams.weigh(scores, r.alive, r.alpha); err != nil {
			return err
		}
	}
	chosen := superposedBest(r.alive, scores, 2*r.k)
	if len(chosen) == 0 {
		return fmt.Errorf("search: superposed: no draft can go on: %w", sample.ErrAllMasked)
	}
	return r.follow(chosen, logits, n)
}

// follow makes the drafts of the best candidates: the first k that do not end. Of those that end, the ones among the first k are
// finished.
func (r *superposedRun) follow(chosen []candidate, logits []float32, n int) error {
	before := r.alive
	r.alive = nil
	taken := make([]bool, len(before)) // whose function of the end a draft goes on with
	for rank, c := range chosen {
		from := &before[c.draft]
		drawn, err := r.shared.Describe(from.state, logits, n, c.id)
		if err != nil {
			return err
		}
		d := draft{drawn: append(slices.Clip(from.drawn), drawn), score: c.score, ends: from.ends}
		if taken[c.draft] {
			d.ends = r.p.Ender()
			for _, id := range from.drawn {
				d.ends(id)
			}
		}
		taken[c.draft] = true
		switch d.ended = d.ends(drawn); {
		case !d.ended && len(r.alive) < r.k:
			d.state = r.shared.Next(from.state, c.id)
			r.alive = append(r.alive, d)
		case d.ended && rank < r.k:
			r.finished = append(r.finished, d)
		}
	}
	r.p.Watch.Tell(func(p *search.Progress) { p.Samples, p.Tokens = len(r.alive), p.Tokens+len(r.alive) })
	slices.SortStableFunc(r.finished, func(a, b draft) int { return cmp.Compare(b.score, a.score) })
	r.finished = r.finished[:min(r.k, len(r.finished))]
	return nil
}

// result ranks the drafts that have ended, and the others where these are fewer than k.
func (r *superposedRun) result() *search.Result {
	all := r.finished
	if len(all) < r.k {
		all = append(all, r.alive...)
	}
	slices.SortStableFunc(all, func(a, b draft) int { return cmp.Compare(a.perplexity(), b.perplexity()) })
	all = all[:min(r.k, len(all))]
	result := &search.Result{Tokens: all[0].drawn, Index: r.p.Index}
	for i := range all {
		d := &all[i]
		a := search.Attempt{Index: r.p.Index, Tokens: len(d.drawn), Ended: d.ended, Perplexity: d.perplexity()}
		for _, t := range d.drawn {
			a.IDs = append(a.IDs, t.ID)
			a.Logprob += float64(t.Logprob)
		}
		result.Attempts = append(result.Attempts, a)
	}
	return result
}
