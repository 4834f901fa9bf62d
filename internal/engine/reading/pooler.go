package reading

import (
	"fmt"
	"math"
	"slices"

	"grove/internal/model"
)

// Pooler makes the embedding of a text of what was read of its tokens, which it is given in order. It is for one goroutine.
type Pooler struct {
	Kind       model.Pooling
	Tokens     int                 // of the text
	Chosen     []int               // the tokens that count, ascending; nil: all
	Layers     int                 // vectors of each token, side by side, of which it has the mean; 0: one
	Exit       *model.Exit         // makes a state of what was read of a token; nil: it is one
	Dense      []model.Dense       // layers behind the pooling
	Dimensions int                 // values of a vector that are kept, the first ones (Matryoshka, Kusupati et al. 2022); 0: all
	Progress   func(done, all int) // is told how many tokens have come; nil: nobody is

	seen, taken int
	rows        [][]float32
	sum         []float64
}

// count returns the number of tokens that count.
func (p *Pooler) count() int {
	if p.Chosen != nil {
		return len(p.Chosen)
	}
	return p.Tokens
}

// Add takes what was read of the next token. It returns no error.
func (p *Pooler) Add(row []float32) error {
	if p.seen++; p.Progress != nil {
		p.Progress(p.seen, p.Tokens)
	}
	if p.Chosen != nil && (p.taken == len(p.Chosen) || p.Chosen[p.taken] != p.seen-1) {
		return nil
	}
	p.taken++
	if p.Layers > 1 {
		row = p.mean(row)
	}
	if p.Exit != nil {
		row = p.Exit.Forward(row)
	}
	switch {
	case p.Kind == model.PoolMean:
		if p.sum == nil {
			p.sum = make([]float64, len(row))
		}
		for i, v := range row {
			p.sum[i] += float64(v)
		}
	case p.Kind == model.PoolNone, p.Kind == model.PoolFirst && p.taken == 1, p.Kind == model.PoolLast && p.taken == p.count():
		p.rows = append(p.rows, append([]float32(nil), row...))
	}
	return nil
}

// mean returns the mean of a token's vectors, summed in their order.
func (p *Pooler) mean(row []float32) []float32 {
	width := len(row) / p.Layers
	out := make([]float32, width)
	for i := range out {
		sum := 0.0
		for at := i; at < len(row); at += width {
			sum += float64(row[at])
		}
		out[i] = float32(sum / float64(p.Layers))
	}
	return out
}

// Vectors returns the embedding: one vector, or with [model.PoolNone] one of each token. With unit, vectors that are not zero have length 1.
func (p *Pooler) Vectors(unit bool) [][]float32 {
	if p.Kind == model.PoolMean {
		mean := make([]float32, len(p.sum))
		for i, v := range p.sum {
			mean[i] = float32(v / float64(p.count()))
		}
		p.rows = [][]float32{mean}
	}
	for i, row := range p.rows {
		for k := range p.Dense {
			row = p.Dense[k].Forward(row)
		}
		if p.Dimensions > 0 {
			row = row[:p.Dimensions]
		}
		p.rows[i] = row
		if unit {
			scale(row)
		}
	}
	return p.rows
}

// scale scales a vector to length 1, unless it is zero.
func scale(row []float32) {
	var squares float64
	for _, v := range row {
		squares += float64(float64(v) * float64(v))
	}
	if squares == 0 {
		return
	}
	length := math.Sqrt(squares)
	for i, v := range row {
		row[i] = float32(float64(v) / length)
	}
}

// places returns the numbers of n things that numbers name, ascending and without repetition; -1 is the last one, -2 the one before. An error names the thing. No
// numbers are an error.
func places(thing string, named []int, n int) ([]int, error) {
	all := make([]int, len(named))
	for i, p := range named {
		if all[i] = p; p < 0 {
			all[i] = n + p
		}
		if all[i] < 0 || all[i] >= n {
			return nil, fmt.Errorf("%s %d: there are %d, from 0", thing, p, n)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no %s is chosen", thing)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
