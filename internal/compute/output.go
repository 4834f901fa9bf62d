package compute

import (
	"errors"
	"fmt"

	"grove/internal/forest"
	"grove/internal/kernel"
)

// Result returns the outputs of row i of the last step. Rows have the numbers that the order of
// [forest.Step.Add] gives: the first row added is row 0. It is valid until the next [Exec.Run].
func (x *Exec) Result(i int) *Result { return &x.results[i] }

// OutputBytes returns the room of logits and final states that steps so far have made.
func (x *Exec) OutputBytes() int { return 4 * (cap(x.logits) + cap(x.states)) }

// DropOutputs gives the room of logits and final states back. It must not be called while results are read.
func (x *Exec) DropOutputs() { x.logits, x.states = nil, nil }

// Output ends a step: the rows that want something of it go through a norm and the head.
func (x *Exec) Output(norm Vector, eps float32, head *Matrix) {
	if a, ok := x.Outputs(); ok {
		x.Logits(x.RMSNorm(a, norm, eps), Projection{Matrix: head}, 0)
	}
}

// Outputs returns the residual stream of the rows that want logits or their state, and false where no row
// does or the step has failed. The model applies its final norm and calls [Exec.Logits], or [Exec.States]
// where it has no head.
func (x *Exec) Outputs() (Buf, bool) {
	rows := x.Step.Rows()
	x.outputs = x.outputs[:0]
	for i := range rows {
		if rows[i].Want.Head() {
			x.outputs = append(x.outputs, int32(i))
		}
	}
	x.heads = len(x.outputs)
	for i := range rows {
		if rows[i].Want.Output() && !rows[i].Want.Head() {
			x.outputs = append(x.outputs, int32(i))
		}
	}
	if x.err != nil || len(x.outputs) == 0 {
		return Buf{}, false
	}
	x.substitutes.Leave(x.Cache.Forest.Layers()-1, rows, x.stream, x.scratch)
	x.used = 0
	x.adapt.Group(rows, x.outputs)
	x.active = append(x.active[:0], x.outputs...)
	a := x.alloc(len(x.outputs), x.width)
	for o, i := range x.outputs {
		copy(a.row(o), x.streamRow(i))
	}
	return a, true
}

// States ends a step of a model without a head: a is the states of the rows of [Exec.Outputs]. A row that wants
// logits fails the step.
func (x *Exec) States(a Buf) {
	if x.heads > 0 {
		x.fail(errors.New("compute: a row wants logits and the model has no head; it gives states"))
		return
	}
	x.reportStates(a)
}

// reportStates gives rows their states.
func (x *Exec) reportStates(a Buf) {
	rows := x.Step.Rows()
	x.states = grow(x.states, a.rows*a.width)
	for o, i := range x.outputs {
		if !rows[i].Want.State {
			continue
		}
		if _, finite := kernel.MaxAbsFinite(a.row(o)); !finite {
			x.fail(fmt.Errorf("compute: the state at index %d: %w", rows[i].Index, ErrNotFinite))
			return
		}
		state := x.states[o*a.width : (o+1)*a.width]
		copy(state, a.row(o))
		x.results[i].State = state
	}
}

// Logits ends a step: a is the states of the rows of [Exec.Outputs], which it multiplies by the head for those
// that want logits. Where softcap is above 0 a logit l becomes softcap * tanh(l / softcap). A logit or state that
// is not finite fails the step with [ErrNotFinite].
func (x *Exec) Logits(a Buf, head Projection, softcap float32) { x.ScaledLogits(a, head, 1, softcap) }

// ScaledLogits is [Exec.Logits] whose products with the head are multiplied by scale, before the soft cap.
func (x *Exec) ScaledLogits(a Buf, head Projection, scale, softcap float32) {
	x.reportStates(a)
	if x.heads == 0 || x.err != nil {
		return
	}
	if a.rows > x.heads {
		a = x.changed(Buf{f: a.f[:x.heads*a.width], rows: x.heads, width: a.width})
	}
	x.logits = grow(x.logits, a.rows*head.Matrix.Out())
	logits := x.changed(Buf{f: x.logits, rows: a.rows, width: head.Matrix.Out()})
	rows := x.Step.Rows()
	x.linearTask.begin(x, a)
	x.linearTask.add(head, logits, x.subset.Union(rows, x.outputs[:x.heads], head.Matrix.Groups()))
	x.linearTask.run()
	for o, i := range x.outputs[:x.heads] {
		LeaveOut(logits.row(o), rows[i].Want.Subset, 0)
		if scale != 1 {
			kernel.Scale(logits.row(o), scale)
		}
		if !x.report(&x.results[i], rows[i].Want, logits.row(o), softcap) {
			x.fail(fmt.Errorf("compute: the logits at index %d: %w", rows[i].Index, ErrNotFinite))
			return
		}
	}
}

// report fills a row's result from its logits and returns false where one is not finite.
func (x *Exec) report(r *Result, want forest.Want, logits []float32, softcap float32) bool {
	if _, finite := kernel.MaxAbsFinite(logits); !finite {
		return false // before a soft cap would hide it
	}
	if softcap > 0 {
		kernel.Softcap(logits, softcap)
	}
	LeaveOut(logits, want.Subset, Masked)
	if want.Logits {
		r.Logits = logits
	}
	if want.Top > 0 {
		_, r.LSE, _ = kernel.LogSumExp(logits)
		r.Top = Top(r.Top[:0], logits, min(want.Top, len(logits)))
	}
	return true
}

// captureInit clears the results of the rows and makes room for the hidden states that they want.
func (x *Exec) captureInit() {
	rows := x.Step.Rows()
	n := 0
	for i := range rows {
		n += rows[i].Want.Streams()
	}
	x.hiddenOut = grow(x.hiddenOut, n*x.width)[:0]
	for i := range rows {
		r := &x.results[i]
		*r = Result{Top: r.Top[:0], Hidden: r.Hidden[:0]}
	}
}

// capture copies the stream after a layer, or with -1 the embeddings, for the rows that want it.
func (x *Exec) capture(layer int) {
	rows := x.Step.Rows()
	x.substitutes.Leave(layer, rows, x.stream, x.scratch)
	for i := range rows {
		if !rows[i].Want.Stream(layer) {
			continue
		}
		at := len(x.hiddenOut)
		x.hiddenOut = append(x.hiddenOut, x.streamRow(int32(i))...)
		x.results[i].Hidden = append(x.results[i].Hidden, x.hiddenOut[at:at+x.width])
	}
}
