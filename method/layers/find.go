package layers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"grove/internal/forest"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/method"
)

// Found is a set of layers to pass over that [Find] found.
type Found struct {
	Set   Set
	Share float64 // of the drafts of a row that passes over it, behind a text, that are accepted
	Depth int     // drafts of the chain that is the fastest then
	Speed float64 // of such chains, as predicted, by that of plain decoding
}

const (
	foundTemperature = 0.8        // of the texts that a search draws
	foundLength      = 256        // tokens of a text
	foundDepth       = 8          // drafts of a chain at most
	finals           = 4 * window // places by which the sets of different sizes are compared
)

// foundShares are the shares of attention parts and of feed-forward parts for each of which a set is searched. Where layers are passed over as a whole, those of
// equal shares are.
var foundShares = [][2]float64{{0.15, 0.15}, {0.3, 0.3}, {0.45, 0.45}, {0.6, 0.6}, {0.75, 0.75}, {0.45, 0.15}, {0.6, 0.3}}

// Find searches layers or parts of layers to pass over, in so many trials, while the model draws texts that begin with a token. For each of several numbers there
// is a [Search]: in the step that runs a text's last token, further rows of it pass over the best set and over the one on trial. Of the best
// sets it returns the one with the most tokens a second by costs, a model that has 3 layers or more. told is told the progress, in
// places of texts. Errors: [method.ErrBusy]; steps of fewer than 3 rows; ctx's, the model's.
func Find(ctx context.Context, m method.Model, costs Model, begin token.ID, trials int, told func(done, all int)) (best Found, err error) {
	f := &finder{size: m.Size(), begin: begin}
	if f.size.Rows < 3 || f.size.MostLive() < 3 {
		return best, fmt.Errorf("layers: searching a set takes steps of 3 rows; this model's have %d", min(f.size.Rows, f.size.MostLive()))
	}
	for _, shares := range foundShares[:min(len(foundShares), (min(f.size.Rows, f.size.MostLive())-1)/2)] {
		s := SearchOf(f.size, shares[Attention], shares[FeedForward])
		known := slices.ContainsFunc(f.searches, func(o *Search) bool { return o.sizes == s.sizes })
		if !known && (s.parts || shares[Attention] == shares[FeedForward]) {
			f.searches = append(f.searches, s)
		}
	}
	if f.branch, err = m.Open(); err != nil {
		return best, err
	}
	defer func() { err = errors.Join(err, f.branch.Close()) }()
	hits, all := make([]int, len(f.searches)), trials*window+finals
	for n := range all {
		if err := f.place(ctx, n < trials*window, hits); err != nil {
			return best, err
		}
		told(n+1, all)
	}
	for i, s := range f.searches {
		now := Found{Set: s.Next().Best, Share: float64(hits[i]) / finals}
		now.Depth, now.Speed = Best(now.Share, now.Set.Layers(f.size.AttentionShare), foundDepth, costs.Skip)
		if now.Speed /= costs.Plain(); now.Speed > best.Speed {
			best = now
		}
	}
	return best, nil
}

// finder draws texts for a search.
type finder struct {
	size     method.Size
	branch   method.Branch
	begin    token.ID
	searches []*Search // by rising size

	texts   int // that have begun
	length  int // of the text; 0: none has begun
	last    token.ID
	sampler *sample.Chain
	best    [1]sample.Candidate
	rows    []method.Row
	trials  []Trial
}

// place goes on by a token. The searches count it in a trial; else it counts in hits where the best set of a search drafts the token.
func (f *finder) place(ctx context.Context, trial bool, hits []int) error {
	if f.length == 0 || f.length == min(foundLength, f.size.Context-1) {
		if err := f.start(); err != nil {
			return err
		}
	}
	row := method.Row{Row: forest.Row{ID: f.last, Want: forest.Want{Logits: true}}}
	f.rows, f.trials = append(f.rows[:0], row), f.trials[:0]
	for _, s := range f.searches {
		now := s.Next()
		f.trials = append(f.trials, now)
		now.Best.Apply(&row.Row)
		f.rows = append(f.rows, row)
		now.Other.Apply(&row.Row)
		f.rows = append(f.rows, row)
	}
	got, err := f.branch.Grow(ctx, f.rows)
	if err != nil {
		return err
	}
	next, err := f.draw(got[0].Logits)
	for i := 0; i < len(f.searches) && err == nil; i++ {
		var id [2]token.ID
		for k := range id {
			if id[k], err = f.draw(got[1+2*i+k].Logits); err != nil {
				return err
			}
		}
		if trial {
			f.searches[i].Count(f.trials[i], id[0] == next, id[1] == next)
		} else if id[0] == next {
			hits[i]++
		}
	}
	if err == nil {
		f.last, f.length = next, f.length+1
		err = f.branch.Commit(got[0].Node)
	}
	return err
}

// draw returns the token that is drawn from the logits behind the text.
func (f *finder) draw(logits []float32) (token.ID, error) {
	best, err := f.sampler.Candidates(f.best[:], logits, f.length)
	if err != nil {
		return token.None, err
	}
	return best[0].ID, nil
}

// start begins another text.
func (f *finder) start() (err error) {
	f.last, f.length = max(0, f.begin), 1
	p := sample.Params{Temperature: foundTemperature, Seed: 1}
	if f.sampler, err = sample.NewChain(sample.Settings{Params: p, SampleIndex: f.texts}, f.size.Vocabulary); err != nil {
		return err
	}
	f.texts++
	return f.branch.Truncate(0)
}
