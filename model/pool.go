package model

import "math"

// Pool makes the embedding of a text of the states of its tokens, which it is given in order. It is for one goroutine.
type Pool struct {
	Kind     Pooling
	Tokens   int                 // of the text
	Dense    []Dense             // layers behind the pooling
	Progress func(done, all int) // is told how many tokens have come; nil: nobody is

	seen int
	rows [][]float32
	sum  []float64
}

// Add takes the state of the next token. It returns no error.
func (p *Pool) Add(row []float32) error {
	if p.seen++; p.Progress != nil {
		p.Progress(p.seen, p.Tokens)
	}
	switch {
	case p.Kind == PoolMean:
		if p.sum == nil {
			p.sum = make([]float64, len(row))
		}
		for i, v := range row {
			p.sum[i] += float64(v)
		}
	case p.Kind == PoolNone, p.Kind == PoolFirst && p.seen == 1, p.Kind == PoolLast && p.seen == p.Tokens:
		p.rows = append(p.rows, append([]float32(nil), row...))
	}
	return nil
}

// Vectors returns the embedding: one vector, or with [PoolNone] one of each token. With unit, vectors that are not zero have length 1.
func (p *Pool) Vectors(unit bool) [][]float32 {
	if p.Kind == PoolMean {
		mean := make([]float32, len(p.sum))
		for i, v := range p.sum {
			mean[i] = float32(v / float64(p.Tokens))
		}
		p.rows = [][]float32{mean}
	}
	for i, row := range p.rows {
		for k := range p.Dense {
			row = p.Dense[k].Forward(row)
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
