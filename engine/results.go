package engine

import "grove/compute"

// results is space for what rows gave, which is the executor's only until the next step. Its room is kept.
type results struct {
	top    []compute.TopEntry
	floats []float32
	hidden [][]float32
}

func (r *results) reset() { r.top, r.floats, r.hidden = r.top[:0], r.floats[:0], r.hidden[:0] }

// keep returns a copy of what a row gave. Where the space is moved, the copies made before stay where they were.
func (r *results) keep(from *compute.Result) compute.Result {
	own := compute.Result{Logits: r.copy(from.Logits), State: r.copy(from.State), LSE: from.LSE}
	n := len(r.top)
	r.top = append(r.top, from.Top...)
	own.Top = r.top[n:len(r.top):len(r.top)]
	n = len(r.hidden)
	for _, h := range from.Hidden {
		r.hidden = append(r.hidden, r.copy(h))
	}
	own.Hidden = r.hidden[n:len(r.hidden):len(r.hidden)]
	return own
}

func (r *results) copy(v []float32) []float32 {
	if v == nil {
		return nil
	}
	n := len(r.floats)
	r.floats = append(r.floats, v...)
	return r.floats[n:len(r.floats):len(r.floats)]
}
