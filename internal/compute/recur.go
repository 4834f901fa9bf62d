package compute

import (
	"fmt"

	"grove/internal/kernel/scan"
)

// Recur runs recurrence number state of a layer over the rows of the step, each behind the state of its parent, and returns its
// outputs, [rows, op.Out()]. in is the rows' inputs, [rows, op.Record()]. The states of earlier steps are those that the cache
// has; those behind the rows are taken over when the step succeeds (N8).
func (x *Exec) Recur(layer, state int, op scan.Op, in Buf) Buf {
	dst := x.alloc(in.rows, op.Out())
	if x.err != nil {
		return dst
	}
	if s := x.Cache.Config().Layers[layer].States[state]; s.Parts != op.Parts() || s.Size != op.Size() || s.Record != op.Record() || in.width != s.Record {
		x.fail(fmt.Errorf("compute: recurrence %d of layer %d has %d parts of %d values and inputs of %d, and the cache's have %d, %d and %d",
			state, layer, op.Parts(), op.Size(), in.width, s.Parts, s.Size, s.Record))
		return dst
	}
	x.rowTask = rowTask{kind: recordRows, x: x, a: in, layer: layer, n: state}
	x.runRows(in.rows, in.width)
	if whole := x.whole && x.Step.Plain(); !whole || !x.walked {
		x.walk.Plan.Make(x.Cache, x.Step, x.active, layer)
		x.walked = whole
	}
	if items := x.walk.Begin(x.Cache, layer, state, op, in.f, dst.f); items > 1 {
		x.pool.Run(items, &x.walk)
	} else {
		x.walk.Do(0, 0)
	}
	return dst
}

// keepRecord copies the input of active row i to its record, if it has one.
func (t *rowTask) keepRecord(i int) {
	k := t.x.Cache
	if record, kept := k.RecordOf(t.x.Step.Rows()[t.x.active[i]].Slot); kept {
		values, _ := k.Records(record, t.layer, t.n)
		copy(values, t.a.row(i))
	}
}
