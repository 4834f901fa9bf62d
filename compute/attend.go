package compute

import (
	"fmt"

	"grove/forest"
	"grove/internal/kernel"
)

// Attention describes the attention of one layer.
type Attention struct {
	Layer   int
	Heads   int
	Scale   float32 // on the products of queries and keys
	Softcap float32 // 0: none
	Sinks   Vector  // a logit for each head, which takes a share of the softmax and has no value; empty: none

	// Biases of the scaled products; none go with a soft cap. Distances are of indices: rotation and Shift have no part in them.
	Slopes   Vector    // ALiBi (Press et al. 2022): of each head, what a distance of 1 takes off; empty: none
	Relative *Relative // T5's; nil: none
}

// Attend writes the rows' keys and values (N4), attends from each row to all that it sees in the layer, and
// returns the weighted values, [rows, Heads x values of a head] (N2). Keys beyond the cache type's range fail
// the step with [ErrCacheRange], others that are not finite with [ErrNotFinite].
func (x *Exec) Attend(c Attention, q, k, v Buf) Buf {
	x.store(c.Layer, k, v)
	return x.AttendShared(c, q)
}

// AttendShared is [Exec.Attend] without keys and values of its own: the rows see those of the earlier layer that the layer
// shares ([kv.Share]), among them their own. A row that skipped the earlier layer, as its ancestors may have, sees none there; where it
// sees nothing at all its values are 0.
func (x *Exec) AttendShared(c Attention, q Buf) Buf {
	dst := x.alloc(q.rows, c.Heads*x.Cache.Config().Layers[c.Layer].HeadSize().Value)
	if c.Softcap > 0 {
		if _, finite := kernel.MaxAbsFinite(q.f); !finite {
			x.fail(fmt.Errorf("compute: layer %d: %w", c.Layer, ErrNotFinite)) // the cap would hide it
		}
	}
	if err := c.checkBias(); err != nil {
		x.fail(err)
	}
	if x.err != nil {
		return dst
	}
	x.visible(x.Cache.Source(c.Layer))
	x.attendTask.run(c, q, dst)
	return dst
}

// store rounds and writes the keys and values of the active rows.
func (x *Exec) store(layer int, k, v Buf) {
	t := &x.rowTask
	*t = rowTask{kind: storeRows, x: x, a: k, b: v, layer: layer, heads: x.Cache.Config().Layers[layer].KVHeads}
	x.runRows(k.rows, k.width*8)
	switch kernel.PutResult(t.problem.Load()) {
	case kernel.PutRange:
		x.fail(fmt.Errorf("compute: layer %d: %w", layer, ErrCacheRange))
	case kernel.PutNotFinite:
		x.fail(fmt.Errorf("compute: layer %d: %w", layer, ErrNotFinite))
	}
}

func (t *rowTask) store(i int) {
	slot := t.x.Step.Rows()[t.x.active[i]].Slot
	k, v := t.a.row(i), t.b.row(i)
	nk, nv := len(k)/t.heads, len(v)/t.heads
	for h := range t.heads {
		if r := t.x.Cache.Put(t.layer, slot, h, k[h*nk:(h+1)*nk], v[h*nv:(h+1)*nv]); r != kernel.PutOK {
			t.problem.Store(int32(r))
		}
	}
}

// visible lists the runs of scratch that each row of the step sees in a layer, once for all layers of a plain
// step.
func (x *Exec) visible(layer int) {
	if x.visibleLayer == layer || x.visibleLayer >= 0 && x.Step.Plain() {
		return
	}
	x.visibleLayer = layer
	x.runs, x.runEnd = x.runs[:0], x.runEnd[:0]
	for i := range x.Step.Rows() {
		x.runs = x.Step.Visible(x.runs, i, layer)
		x.runEnd = append(x.runEnd, int32(len(x.runs)))
	}
}

// runsOf returns the runs of scratch that row i of the step sees.
func (x *Exec) runsOf(i int32) []forest.Run {
	start := int32(0)
	if i > 0 {
		start = x.runEnd[i-1]
	}
	return x.runs[start:x.runEnd[i]]
}
