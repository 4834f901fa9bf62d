package sample

import (
	"fmt"
	"math"
	"slices"

	"grove/internal/kernel"
	"grove/internal/text/token"
)

// Picker is a [Legal] stage that is asked about few tokens instead of all: where nothing truncates, a draw hands it the
// tokens in the order in which the draw prefers them, and takes the first that is legal. That is the token that the
// draw takes where the stage's Apply has forbidden the others. A chain that truncates, or has several such stages, uses
// Apply.
type Picker interface {
	Legal
	// Pick returns the first token of the ranking that may follow s; false where there is none, or the stage gives up.
	Pick(s StageState, ranking *Ranking) (token.ID, bool)
}

// Weigher is a stage that knows how much of the probability behind a text its draws have left.
type Weigher interface {
	// LogWeight returns the sum of the logarithms of the weights of the draws that led to s.
	LogWeight(s StageState) float64
}

// A Ranking is the tokens of one draw, the one that the draw prefers first. It is good until the draw ends.
type Ranking struct {
	sampler *sampler
	key     kernel.Key
	index   int
	logits  []float32 // minus infinity where a token was given
	given   []given
	sorted  []uint64 // the rest, once a few were given
	most    float32  // the largest logit
	mass    float64  // of all tokens, relative to the largest; 0: not yet known
}

type given struct {
	id    token.ID
	logit float32
}

// few is how many tokens are looked for one by one before the rest is sorted.
const few = 4

// purposePick is for the numbers of [Ranking.Number].
const purposePick Purpose = 1<<31 + 1

// begin ranks the tokens of a row; it changes the logits.
func (o *Ranking) begin(s *sampler, logits []float32, index int) error {
	*o = Ranking{sampler: s, key: s.key(index, purposeDraw), index: index, logits: logits, given: o.given[:0], sorted: o.sorted[:0]}
	most, _, finite := kernel.LogSumExp(logits)
	o.most = most
	return check(logits, finite)
}

// Next returns the next token; false: there is none. Masked tokens are left out.
func (o *Ranking) Next() (token.ID, bool) {
	n := len(o.given)
	if n == few {
		o.sort()
	}
	var id int
	switch {
	case n >= few:
		if n-few == len(o.sorted) {
			return token.None, false
		}
		id = idOf(o.sorted[n-few])
	case o.sampler.params.Greedy():
		id = kernel.ArgMax(o.logits)
	default:
		id, _, _, _ = kernel.GumbelMax(o.logits, o.sampler.invT, o.key)
	}
	if id < 0 || math.IsInf(float64(o.logits[id]), -1) {
		return token.None, false
	}
	o.given = append(o.given, given{token.ID(id), o.logits[id]})
	if n < few {
		o.logits[id] = float32(math.Inf(-1))
	}
	return token.ID(id), true
}

// sort orders the tokens that were not given by the scores of the draw.
func (o *Ranking) sort() {
	for id, l := range o.logits {
		if math.IsInf(float64(l), -1) {
			continue
		}
		if !o.sampler.params.Greedy() {
			l = float32(l*o.sampler.invT) + kernel.Noise(o.key, uint32(id))
		}
		o.sorted = append(o.sorted, keyOf(l, id))
	}
	slices.Sort(o.sorted)
}

// Probability returns the probability of the token that Next returned last, before the stage; of all tokens together it
// is 1. At temperature 0 it is that of temperature 1.
func (o *Ranking) Probability() float64 {
	if len(o.given) == 0 {
		return 0
	}
	o.weigh()
	return o.weight(o.given[len(o.given)-1].logit) / o.mass
}

// Most returns the largest probability of a token.
func (o *Ranking) Most() float64 {
	o.weigh()
	return 1 / o.mass
}

func (o *Ranking) weight(l float32) float64 {
	scale := o.sampler.invT
	if o.sampler.params.Greedy() {
		scale = 1
	}
	return float64(weight(l, o.most, scale))
}

// weigh sums the weights of all tokens.
func (o *Ranking) weigh() {
	if o.mass > 0 {
		return
	}
	for _, l := range o.logits {
		o.mass += o.weight(l)
	}
	for _, g := range o.given[:min(few, len(o.given))] {
		o.mass += o.weight(g.logit)
	}
}

// Greedy reports whether the ranking is that of the logits alone.
func (o *Ranking) Greedy() bool { return o.sampler.params.Greedy() }

// Number returns a number above 0 and below 1 that nothing else in this draw uses, the same for the same n.
func (o *Ranking) Number(n int) float64 {
	return kernel.Uniform(o.sampler.key(o.index, purposePick), uint32(n))
}

// picks reports whether draws ask a [Picker].
func (c *Chain) picks() bool { return c.picker >= 0 && !c.sampler.truncates() && !c.adapts }

// pick is Draw where a [Picker] chooses.
func (c *Chain) pick(s State, logits []float32, index int) (Token, error) {
	if len(logits) != c.vocab {
		return Token{}, c.sampler.lengthError(len(logits))
	}
	copy(c.logits, logits)
	c.move(s)
	var own *step
	first := len(c.steps) - len(c.stages)
	for i := range c.steps {
		if i == first+c.picker {
			own = &c.steps[i]
			continue
		}
		c.steps[i].apply(s, c.logits)
	}
	if err := c.ranking.begin(c.sampler, c.logits, index); err != nil {
		return Token{}, c.blame(s, logits, err)
	}
	id, ok := c.stages[c.picker].(Picker).Pick(c.state(s, c.picker), &c.ranking)
	if ok {
		return Token{ID: id, Logprob: c.Logprob(logits, id)}, nil
	}
	if err := own.failure(s); err != nil {
		return Token{}, err
	}
	return Token{}, fmt.Errorf("sample: stage %s: it leaves no token that the others allow: %w", own.name, ErrAllMasked)
}

// LogWeight returns the sum of the logarithms of the weights of the draws that led to s, over all stages that are
// [Weigher]; false where none is.
func (c *Chain) LogWeight(s State) (sum float64, some bool) {
	for i, stage := range c.stages {
		if w, ok := stage.(Weigher); ok {
			sum, some = sum+w.LogWeight(c.state(s, i)), true
		}
	}
	return sum, some
}
