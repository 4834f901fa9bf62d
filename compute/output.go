package compute

import (
	"fmt"

	"grove/internal/kernel"
	"grove/token"
)

// TopEntry is one of the largest logits of a row.
type TopEntry struct {
	ID    token.ID
	Logit float32
}

// Result is what one row gave back. Its slices are valid until the next step.
type Result struct {
	Logits []float32   // all, if wanted
	Top    []TopEntry  // the largest, falling, ties by id, if wanted
	LSE    float32     // log-sum-exp of all logits, if Top was wanted: log p(id) = logit - LSE
	Hidden [][]float32 // the residual stream after each wanted layer, ascending
}

// Result returns the outputs of row i of the last step.
func (x *Exec) Result(i int) *Result { return &x.results[i] }

// Output ends a step: the rows that want logits go through the final norm and the head.
func (x *Exec) Output(norm Vector, eps float32, head *Matrix) {
	if x.err != nil {
		return
	}
	rows := x.Step.Rows()
	x.outputs = x.outputs[:0]
	for i := range rows {
		if rows[i].Want.Output() {
			x.outputs = append(x.outputs, int32(i))
		}
	}
	if len(x.outputs) == 0 {
		return
	}
	x.used = 0
	a := x.alloc(len(x.outputs), x.width)
	for o, i := range x.outputs {
		copy(a.row(o), x.streamRow(i))
	}
	a = x.RMSNorm(a, norm, eps)
	x.logits = grow(x.logits, len(x.outputs)*head.out)
	logits := x.changed(Buf{f: x.logits, rows: len(x.outputs), width: head.out})
	x.multiply(Projection{Matrix: head}, a, logits)
	for o, i := range x.outputs {
		if !x.report(&x.results[i], rows[i].Want.Top, rows[i].Want.Logits, logits.row(o)) {
			x.fail(fmt.Errorf("compute: the logits at index %d: %w", rows[i].Index, ErrNotFinite))
			return
		}
	}
}

// report fills a row's result from its logits and returns false where one is not finite.
func (x *Exec) report(r *Result, top int, all bool, logits []float32) bool {
	if _, finite := kernel.MaxAbsFinite(logits); !finite {
		return false
	}
	if all {
		r.Logits = logits
	}
	if top > 0 {
		_, r.LSE, _ = kernel.LogSumExp(logits)
		r.Top = topOf(r.Top[:0], logits, min(top, len(logits)))
	}
	return true
}

// topOf appends the n largest logits, falling, ties by id.
func topOf(dst []TopEntry, logits []float32, n int) []TopEntry {
	for id, l := range logits {
		if len(dst) == n && !(l > dst[n-1].Logit) {
			continue
		}
		if len(dst) < n {
			dst = append(dst, TopEntry{})
		}
		at := len(dst) - 1
		for at > 0 && l > dst[at-1].Logit {
			dst[at] = dst[at-1]
			at--
		}
		dst[at] = TopEntry{token.ID(id), l}
	}
	return dst
}

// captureInit clears the results of the rows and gives them room for the hidden states they want.
func (x *Exec) captureInit() {
	rows := x.Step.Rows()
	n := 0
	for i := range rows {
		n += rows[i].Want.Hidden.Len()
	}
	x.hiddenOut = grow(x.hiddenOut, n*x.width)[:0]
	for i := range rows {
		r := &x.results[i]
		*r = Result{Top: r.Top[:0], Hidden: r.Hidden[:0]}
	}
}

// capture copies the stream after a layer for the rows that want it.
func (x *Exec) capture(layer int) {
	if layer < 0 {
		return
	}
	rows := x.Step.Rows()
	for i := range rows {
		if !rows[i].Want.Hidden.Has(layer) {
			continue
		}
		at := len(x.hiddenOut)
		x.hiddenOut = append(x.hiddenOut, x.streamRow(int32(i))...)
		x.results[i].Hidden = append(x.results[i].Hidden, x.hiddenOut[at:at+x.width])
	}
}
