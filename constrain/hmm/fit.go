package hmm

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"grove/internal/text/token"
)

// FitOptions say how a model is made.
type FitOptions struct {
	States     int    // hidden states
	Iterations int    // passes over the texts; 0: 20
	Seed       uint64 // of the probabilities at the beginning
	// Each, where it is not nil, is told behind each pass how likely the texts were before it: the mean logarithm of a
	// token's probability. Its error ends the work.
	Each func(pass int, logprob float64) error
}

// parts is how many parts the texts are cut into, which are counted at once. Sums are added in their order, so that the
// number of processors changes nothing.
const parts = 16

// unseen is the share of each state's emissions that all tokens of the vocabulary share, those that the texts lack
// among them.
const unseen = 1e-3

// Fit returns the model of states that makes the texts likely, by the Baum-Welch algorithm. The same arguments give the
// same model. vocab is the number of tokens.
func Fit(texts [][]token.ID, vocab int, o FitOptions) (*Model, error) {
	if o.States < 1 || o.States > MaxStates || vocab < 1 || vocab*o.States > maxCells {
		return nil, fmt.Errorf("hmm: %d states over %d tokens; from 1 to %d states, and at most %d emissions", o.States, vocab, MaxStates, maxCells)
	}
	f := newFit(o.States)
	total := 0
	for _, text := range texts {
		var seq []int32
		for _, id := range text {
			if id < 0 || int(id) >= vocab {
				return nil, fmt.Errorf("hmm: token %d; the vocabulary has %d", id, vocab)
			}
			seq = append(seq, f.number(id))
		}
		if total += len(seq); len(seq) > 0 {
			f.texts = append(f.texts, seq)
		}
	}
	if total == 0 {
		return nil, errors.New("hmm: the texts have no token")
	}
	f.begin(rand.New(rand.NewPCG(o.Seed, 0x686d6d)))
	if o.Iterations == 0 {
		o.Iterations = 20
	}
	for pass := range o.Iterations {
		logprob := f.pass()
		if o.Each == nil {
			continue
		}
		if err := o.Each(pass+1, logprob/float64(total)); err != nil {
			return nil, err
		}
	}
	return f.model(vocab)
}

// A fit is a model that is being made: of the tokens that the texts have, by number.
type fit struct {
	states  int
	ids     []token.ID
	numbers map[token.ID]int32
	texts   [][]int32
	p       counts
}

// counts are probabilities, or how often something was seen.
type counts struct{ start, move, emit []float64 }

func newFit(states int) *fit { return &fit{states: states, numbers: map[token.ID]int32{}} }

// number returns the number of a token.
func (f *fit) number(id token.ID) int32 {
	n, ok := f.numbers[id]
	if !ok {
		n = int32(len(f.ids))
		f.numbers[id], f.ids = n, append(f.ids, id)
	}
	return n
}

func (f *fit) counts() counts {
	n := f.states
	return counts{make([]float64, n), make([]float64, n*n), make([]float64, n*len(f.ids))}
}

// begin draws the first probabilities. Emissions lie around the frequencies of the tokens.
func (f *fit) begin(rng *rand.Rand) {
	f.p = f.counts()
	often := make([]float64, len(f.ids))
	for _, text := range f.texts {
		for _, x := range text {
			often[x]++
		}
	}
	for i := range f.p.start {
		f.p.start[i] = 1 + rng.Float64()
	}
	for i := range f.p.move {
		f.p.move[i] = 1 + rng.Float64()
	}
	for i := range f.p.emit {
		f.p.emit[i] = often[i/f.states] * rng.ExpFloat64()
	}
	f.normalize(0)
}

// normalize makes counts probabilities; each move and start has prior more.
func (f *fit) normalize(prior float64) {
	n := f.states
	scale := func(p []float64, add float64) {
		s := 0.0
		for i := range p {
			p[i] += add
			s += p[i]
		}
		for i := range p {
			if s > 0 {
				p[i] /= s
			} else {
				p[i] = 1 / float64(len(p))
			}
		}
	}
	scale(f.p.start, prior)
	for z := range n {
		scale(f.p.move[z*n:(z+1)*n], prior)
	}
	sums := make([]float64, n)
	for i, c := range f.p.emit {
		sums[i%n] += c
	}
	for i := range f.p.emit {
		if s := sums[i%n]; s > 0 {
			f.p.emit[i] /= s
		} else {
			f.p.emit[i] = 1 / float64(len(f.ids))
		}
	}
}

// pass counts what the texts show under the present probabilities, makes probabilities of it, and returns the logarithm
// of the texts' probability before.
func (f *fit) pass() float64 {
	all := make([]counts, parts)
	logs := make([]float64, parts)
	var work sync.WaitGroup
	for part := range parts {
		work.Go(func() {
			c := f.counts()
			r := newReading(f)
			for i := part; i < len(f.texts); i += parts {
				logs[part] += r.read(f.texts[i], &c)
			}
			all[part] = c
		})
	}
	work.Wait()
	f.p = all[0]
	for _, c := range all[1:] {
		add(f.p.start, c.start)
		add(f.p.move, c.move)
		add(f.p.emit, c.emit)
	}
	f.normalize(1e-3)
	sum := 0.0
	for _, l := range logs {
		sum += l
	}
	return sum
}

func add(dst, src []float64) {
	for i, v := range src {
		dst[i] += v
	}
}

// A reading has the space to read a text.
type reading struct {
	f           *fit
	ahead, back []float64 // by place and state
	scales      []float64
	next        []float64
}

func newReading(f *fit) *reading { return &reading{f: f, next: make([]float64, f.states)} }

// read adds what a text shows to counts, by the forward-backward algorithm with scaled messages, and returns the
// logarithm of its probability.
func (r *reading) read(text []int32, c *counts) (logprob float64) {
	n, p := r.f.states, &r.f.p
	r.ahead, r.back = grow(r.ahead, n*len(text)), grow(r.back, n*len(text))
	r.scales = grow(r.scales, len(text))
	emit := func(t int) []float64 { return p.emit[n*int(text[t]) : n*int(text[t])+n] }
	for t := range text {
		now := r.ahead[n*t : n*t+n]
		if t == 0 {
			copy(now, p.start)
		} else {
			clear(now)
			for z, a := range r.ahead[n*t-n : n*t] {
				for y, m := range p.move[n*z : n*z+n] {
					now[y] += a * m
				}
			}
		}
		s := 0.0
		for z, e := range emit(t) {
			now[z] *= e
			s += now[z]
		}
		s = max(s, math.SmallestNonzeroFloat64*1e16)
		for z := range now {
			now[z] /= s
		}
		r.scales[t] = s
		logprob += math.Log(s)
	}
	last := r.back[n*(len(text)-1):]
	for z := range last {
		last[z] = 1
	}
	for t := len(text) - 2; t >= 0; t-- {
		for z, e := range emit(t + 1) {
			r.next[z] = e * r.back[n*(t+1)+z] / r.scales[t+1]
		}
		for z := range n {
			s, a := 0.0, r.ahead[n*t+z]
			move, seen := p.move[n*z:n*z+n], c.move[n*z:n*z+n]
			for y, v := range r.next {
				s += move[y] * v
				seen[y] += a * move[y] * v
			}
			r.back[n*t+z] = s
		}
	}
	for t, x := range text {
		for z := range n {
			v := r.ahead[n*t+z] * r.back[n*t+z]
			c.emit[n*int(x)+z] += v
			if t == 0 {
				c.start[z] += v
			}
		}
	}
	return logprob
}

func grow(s []float64, n int) []float64 { return slices.Grow(s[:0], n)[:n] }

// model returns the probabilities for the whole vocabulary.
func (f *fit) model(vocab int) (*Model, error) {
	n := f.states
	round := func(p []float64) []float32 {
		r := make([]float32, len(p))
		for i, v := range p {
			r[i] = float32(v)
		}
		return r
	}
	emit := make([]float32, vocab*n)
	for i := range emit {
		emit[i] = float32(unseen / float64(vocab))
	}
	for x, id := range f.ids {
		for z := range n {
			emit[int(id)*n+z] += float32((1 - unseen) * f.p.emit[x*n+z])
		}
	}
	return New(round(f.p.start), round(f.p.move), emit)
}
