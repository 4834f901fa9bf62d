// pattern.go searches which layers of a model each token needs: the oracle of Duo-LLM (Alizadeh et al., 2024), with a model's own layers,
// which a row runs or passes over, in place of feed-forward blocks with trained small twins.

package bench

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"grove/internal/forest"
)

// PatternSet is the layers that a row runs.
type PatternSet = forest.Layers

// PatternScore says how well a row of a set of layers predicts a token of the text.
type PatternScore struct {
	Loss float64 // -ln of the probability of the token, in nats
	Same bool    // the likeliest token is that of all layers
}

// PatternPass computes a part of a text: 0 is where a fixed set is searched, 1 where sets are compared. For each place, in the same order every time, it
// calls ask for the sets to run there and tell for what they gave, in their order, and what all layers gave. The sets are valid until ask is called again.
type PatternPass func(ctx context.Context, part int, ask func(place int) []PatternSet, tell func(place int, full PatternScore, scores []PatternScore)) error

// PatternOptions is the options of [PatternStudy].
type PatternOptions struct {
	Layers   int // of the model
	Least    int // fewest layers that a set has; from 1
	Patterns int // sets of a number of layers that are searched for a token; all, where there are no more

	Told func(done, all int) // is told the passes that are done; nil: nobody is
}

// Check returns an error where an option is out of range.
func (o PatternOptions) Check() error {
	switch {
	case o.Layers < 2:
		return fmt.Errorf("the model has %d layers; a choice of layers needs 2", o.Layers)
	case o.Least < 1 || o.Least > o.Layers:
		return fmt.Errorf("the fewest layers are %d; they must be from 1 to the model's %d", o.Least, o.Layers)
	case o.Patterns < 1 || o.Patterns > PatternMaxPatterns:
		return fmt.Errorf("%d patterns; it must be from 1 to %d", o.Patterns, PatternMaxPatterns)
	}
	return nil
}

// PatternMaxPatterns bounds the sets that are searched for a token.
const PatternMaxPatterns = 1 << 16

// randoms is the number of random sets of each size: the same ones at every place.
const randoms = 16

// PatternMean has the results of a way to choose sets, as means of places.
type PatternMean struct {
	Loss float64 `json:"nats"`
	Kept float64 `json:"kept"` // share of places where the likeliest token is that of all layers
}

func (m *PatternMean) add(s PatternScore) {
	m.Loss += s.Loss
	if s.Same {
		m.Kept++
	}
}

func (m PatternMean) over(n int) PatternMean {
	return PatternMean{m.Loss / float64(n), m.Kept / float64(n)}
}

// PatternBudget is the results of the sets of one size.
type PatternBudget struct {
	Layers   int  `json:"layers"`
	Searched int  `json:"searched"` // sets, for each token
	All      bool `json:"all"`      // these are all of the size

	Random PatternMean `json:"random"`      // of random sets
	Best   PatternMean `json:"best_random"` // the best of these, in hindsight
	First  PatternMean `json:"first"`       // the first layers
	Fixed  PatternMean `json:"fixed"`       // the best set of the part where one is searched
	Set    []int       `json:"fixed_layers"`
	Oracle PatternMean `json:"oracle"` // the best set of each token, in hindsight
}

// PatternReport is the results of [PatternStudy].
type PatternReport struct {
	Layers  int             `json:"layers"`
	Places  int             `json:"places"` // at which sets are compared
	Full    float64         `json:"nats"`   // of all layers
	Budgets []PatternBudget `json:"budgets"`
	Needed  float64         `json:"needed"` // the fewest layers that keep the likeliest token, in hindsight, as the mean of places
}

// PatternStudy searches, for each number of layers from all less one down to o.Least, the best fixed set and the best set of each token, and compares them
// with random sets. Sets of a size are all of that size where they are no more than o.Patterns; else they are the best of the size above without
// one of their layers, so many of the best that there are o.Patterns sets or less (a beam). Errors: an option out of range, those of pass.
func PatternStudy(ctx context.Context, o PatternOptions, pass PatternPass) (*PatternReport, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &study{PatternOptions: o, pass: pass, fixed: []PatternSet{forest.LayerRange(0, o.Layers)}, random: rand.New(rand.NewPCG(1, 2))}
	r := &PatternReport{Layers: o.Layers}
	for size := o.Layers - 1; size >= o.Least; size-- {
		b, err := s.budget(ctx, size)
		if err != nil {
			return nil, err
		}
		r.Budgets = append(r.Budgets, b)
	}
	if len(s.beams) == 0 { // no size but that of all layers
		if err := s.compare(ctx, &PatternBudget{Layers: o.Layers}); err != nil {
			return nil, err
		}
	}
	r.Places, r.Full = len(s.beams), s.full/float64(len(s.beams))
	for _, n := range s.needed {
		r.Needed += float64(n) / float64(r.Places)
	}
	return r, nil
}

type study struct {
	PatternOptions
	pass   PatternPass
	fixed  []PatternSet   // the best sets of the first part, of the last size, the best first
	beams  [][]PatternSet // the same for each place of the second
	needed []int          // fewest layers of a set that kept the likeliest token, by place
	full   float64        // loss of all layers, the sum of places
	random *rand.Rand
	passes int
}

// budget searches and compares sets of a size.
func (s *study) budget(ctx context.Context, size int) (b PatternBudget, err error) {
	sets := s.next(s.fixed, size)
	sums := make([]float64, len(sets))
	err = s.run(ctx, 0, func(int) []PatternSet { return sets }, func(_ int, _ PatternScore, scores []PatternScore) {
		for i, c := range scores {
			sums[i] += c.Loss
		}
	})
	if err != nil {
		return b, err
	}
	s.fixed = best(sets, func(i int) float64 { return sums[i] }, s.width(size))
	b = PatternBudget{Layers: size, Searched: len(sets), All: subsets(s.Layers, size) <= s.Patterns, Set: members(s.fixed[0])}
	return b, s.compare(ctx, &b)
}

// compare compares sets of a size, at the places of the second part. The first sets of a place are those that all places have.
func (s *study) compare(ctx context.Context, b *PatternBudget) error {
	common := []PatternSet{s.fixed[0], forest.LayerRange(0, b.Layers)}
	for range randoms {
		common = append(common, s.draw(b.Layers))
	}
	means := make([]PatternMean, len(common))
	var sets []PatternSet
	first := len(s.beams) == 0
	ask := func(place int) []PatternSet {
		if first {
			s.beams, s.needed = append(s.beams, []PatternSet{forest.LayerRange(0, s.Layers)}), append(s.needed, s.Layers)
		}
		sets = append(append(sets[:0], common...), s.next(s.beams[place], b.Layers)...)
		return sets
	}
	err := s.run(ctx, 1, ask, func(place int, full PatternScore, scores []PatternScore) {
		if first {
			s.full += full.Loss
		}
		for i := range means {
			means[i].add(scores[i])
		}
		if slices.ContainsFunc(scores, func(c PatternScore) bool { return c.Same }) {
			s.needed[place] = b.Layers
		}
		b.Oracle.add(slices.MinFunc(scores, func(x, y PatternScore) int { return order(x.Loss, y.Loss) }))
		searched := scores[len(common):]
		s.beams[place] = best(sets[len(common):], func(i int) float64 { return searched[i].Loss }, s.width(b.Layers))
	})
	if err != nil {
		return err
	}
	n := len(s.beams)
	for i := range means {
		means[i] = means[i].over(n)
	}
	b.Fixed, b.First, b.Oracle = means[0], means[1], b.Oracle.over(n)
	b.Best = slices.MinFunc(means[2:], func(x, y PatternMean) int { return order(x.Loss, y.Loss) })
	for _, m := range means[2:] {
		b.Random.Loss += m.Loss / randoms
		b.Random.Kept += m.Kept / randoms
	}
	return nil
}

func (s *study) run(ctx context.Context, part int, ask func(int) []PatternSet, tell func(int, PatternScore, []PatternScore)) error {
	err := s.pass(ctx, part, ask, tell)
	if s.passes++; err == nil && s.Told != nil {
		s.Told(s.passes, 2*max(1, s.Layers-s.Least))
	}
	return err
}

// next returns the sets of a size to search, where beam is the best ones of the size above.
func (s *study) next(beam []PatternSet, size int) (sets []PatternSet) {
	if size == s.Layers || subsets(s.Layers, size) <= s.Patterns {
		return append(sets, choose(nil, PatternSet{}, 0, s.Layers, size)...)
	}
	known := map[PatternSet]bool{}
	for _, b := range beam {
		for l := range s.Layers {
			if c := b.Minus(forest.LayerRange(l, l+1)); b.Has(l) && !known[c] {
				known[c] = true
				sets = append(sets, c)
			}
		}
	}
	return sets
}

// width returns how many sets of a size are kept for the search of the next smaller one.
func (s *study) width(size int) int { return max(1, s.Patterns/size) }

// draw returns a random set of a size.
func (s *study) draw(size int) (set PatternSet) {
	for _, l := range s.random.Perm(s.Layers)[:size] {
		set = set.With(l)
	}
	return set
}

// best returns the n sets of the least loss, the best first; of equals the earlier one.
func best(sets []PatternSet, loss func(i int) float64, n int) []PatternSet {
	at := make([]int, len(sets))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return order(loss(a), loss(b)) })
	kept := make([]PatternSet, min(n, len(at)))
	for i := range kept {
		kept[i] = sets[at[i]]
	}
	return kept
}

func order(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// choose appends all unions of set with so many of the layers from to end-1.
func choose(dst []PatternSet, set PatternSet, from, end, size int) []PatternSet {
	if size == 0 {
		return append(dst, set)
	}
	for l := from; l <= end-size; l++ {
		dst = choose(dst, set.With(l), l+1, end, size-1)
	}
	return dst
}

// subsets returns the number of sets of so many of n layers; above [PatternMaxPatterns], a number above it.
func subsets(n, size int) int {
	count := uint64(1)
	for i := range min(size, n-size) {
		high, low := bits.Mul64(count, uint64(n-i))
		if count = low / uint64(i+1); high > 0 || count > PatternMaxPatterns {
			return PatternMaxPatterns + 1
		}
	}
	return int(count)
}

// members lists the layers of a set.
func members(s PatternSet) (all []int) {
	for l := 0; l <= s.Last(); l++ {
		if s.Has(l) {
			all = append(all, l)
		}
	}
	return all
}
