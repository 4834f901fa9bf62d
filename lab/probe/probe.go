package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// Bounds of a probe. A fit takes time with the cube of the texts.
const (
	maxTexts = 4096
	maxDims  = 1 << 16
)

// codebook has a key for each role and for each concept: vectors of 1 and -1, which are almost orthogonal to each other.
type codebook struct {
	dims     int
	concepts map[string][]string // of each role, in order
}

// newCodebook returns the codebook of all roles and concepts of labels.
func newCodebook(dims int, labels []map[string]string) *codebook {
	b := &codebook{dims: dims, concepts: map[string][]string{}}
	for _, l := range labels {
		for role, concept := range l {
			if at, found := slices.BinarySearch(b.concepts[role], concept); !found {
				b.concepts[role] = slices.Insert(b.concepts[role], at, concept)
			}
		}
	}
	return b
}

// roles returns the roles, in order.
func (b *codebook) roles() []string { return slices.Sorted(maps.Keys(b.concepts)) }

// atom returns the key of a name. It depends on the name and the number of dimensions alone.
func (b *codebook) atom(kind, name string) []float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", kind, name)
	r := rand.New(rand.NewPCG(h.Sum64(), uint64(b.dims)))
	key := make([]float64, b.dims)
	for i := range key {
		key[i] = float64(r.IntN(2)*2 - 1)
	}
	return key
}

// encode returns the key of labels: the sum of the roles' keys, each bound to that of its concept by the product of their numbers.
func (b *codebook) encode(labels map[string]string) []float64 {
	sum := make([]float64, b.dims)
	for role, concept := range labels {
		r, c := b.atom("role", role), b.atom("concept", concept)
		for i := range sum {
			sum[i] += r[i] * c[i]
		}
	}
	return sum
}

// named is the concept that a key has in a role, how near it is, and how near the next one is.
type named struct {
	concept      string
	cosine, next float64
}

// unbind returns the concept that is nearest to a key behind its role's key is taken off: binding is its own inverse.
func (b *codebook) unbind(key []float64, role string) named {
	r := b.atom("role", role)
	free := make([]float64, b.dims)
	for i := range free {
		free[i] = key[i] * r[i]
	}
	best := named{cosine: math.Inf(-1), next: math.Inf(-1)}
	for _, concept := range b.concepts[role] {
		switch c := cosine(free, b.atom("concept", concept)); {
		case c > best.cosine:
			best = named{concept, c, best.cosine}
		case c > best.next:
			best.next = c
		}
	}
	return best
}

// cosine returns the cosine of two vectors, 0 where one is zero.
func cosine(a, b []float64) float64 {
	if n := math.Sqrt(dot(a, a) * dot(b, b)); n > 0 {
		return dot(a, b) / n
	}
	return 0
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// probe maps states to keys by a linear map.
type probe struct {
	book    *codebook
	mean    []float64   // of the states it was trained with
	scale   []float64   // 1 by their standard deviations
	weights [][]float64 // by dimension of a key, of the states
	bias    []float64
}

type fitOptions struct {
	dims  int
	ridge float64
}

// fit trains a probe by ridge regression of the labels' keys on the states, in its dual form: a system with an equation for each text.
func fit(states [][]float64, labels []map[string]string, o fitOptions) (*probe, error) {
	switch {
	case o.dims < 1 || o.dims > maxDims:
		return nil, fmt.Errorf("-dims is %d; it must be from 1 to %d", o.dims, maxDims)
	case !(o.ridge > 0):
		return nil, fmt.Errorf("-ridge is %v; it must be above 0", o.ridge)
	case len(states) < 2 || len(states) > maxTexts:
		return nil, fmt.Errorf("%d texts to train with; there must be from 2 to %d", len(states), maxTexts)
	}
	p := &probe{book: newCodebook(o.dims, labels)}
	p.standardize(states)
	rows, keys := make([][]float64, len(states)), make([][]float64, len(states))
	p.bias = make([]float64, o.dims)
	for i, x := range states {
		rows[i], keys[i] = p.standard(x), p.book.encode(labels[i])
		for d, v := range keys[i] {
			p.bias[d] += v / float64(len(states))
		}
	}
	gram := make([][]float64, len(rows))
	for i := range rows {
		gram[i] = make([]float64, len(rows))
		for j := range i + 1 {
			gram[i][j] = dot(rows[i], rows[j])
		}
		gram[i][i] += o.ridge * float64(len(rows[i]))
	}
	if err := factor(gram); err != nil {
		return nil, err
	}
	p.weights = make([][]float64, o.dims)
	dual := make([]float64, len(rows))
	for d := range p.weights {
		for i := range dual {
			dual[i] = keys[i][d] - p.bias[d]
		}
		solve(gram, dual)
		p.weights[d] = make([]float64, len(p.mean))
		for i, a := range dual {
			for j, x := range rows[i] {
				p.weights[d][j] += a * x
			}
		}
	}
	return p, nil
}

// key returns the key of a state.
func (p *probe) key(state []float64) []float64 {
	x, key := p.standard(state), slices.Clone(p.bias)
	for d, w := range p.weights {
		key[d] += dot(w, x)
	}
	return key
}

// standardize learns the mean and the standard deviation of each number of states.
func (p *probe) standardize(states [][]float64) {
	p.mean, p.scale = make([]float64, len(states[0])), make([]float64, len(states[0]))
	for _, x := range states {
		for j, v := range x {
			p.mean[j] += v / float64(len(states))
		}
	}
	for _, x := range states {
		for j, v := range x {
			p.scale[j] += (v - p.mean[j]) * (v - p.mean[j]) / float64(len(states))
		}
	}
	for j, v := range p.scale {
		p.scale[j] = 1 / math.Sqrt(v+1e-12)
	}
}

// standard returns a state with a mean of 0 and a deviation of 1.
func (p *probe) standard(state []float64) []float64 {
	x := make([]float64, len(state))
	for j, v := range state {
		x[j] = (v - p.mean[j]) * p.scale[j]
	}
	return x
}

// factor makes a symmetric positive matrix, of which the lower half is given, its Cholesky factor.
func factor(a [][]float64) error {
	for j := range a {
		for i := j; i < len(a); i++ {
			s := a[i][j] - dot(a[i][:j], a[j][:j])
			switch {
			case i > j:
				a[i][j] = s / a[j][j]
			case !(s > 0):
				return fmt.Errorf("the states of text %d are those of others, or no numbers; use a larger -ridge", j)
			default:
				a[j][j] = math.Sqrt(s)
			}
		}
	}
	return nil
}

// solve solves for b, in place, by a Cholesky factor.
func solve(l [][]float64, b []float64) {
	for i := range b {
		b[i] = (b[i] - dot(l[i][:i], b[:i])) / l[i][i]
	}
	for i := len(b) - 1; i >= 0; i-- {
		b[i] /= l[i][i]
		for k := range i {
			b[k] -= l[i][k] * b[i]
		}
	}
}
