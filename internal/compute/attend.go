package compute

import (
	"context"
	"errors"
	"fmt"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel"
)

// Attention describes the attention of one layer.
type Attention struct {
	Layer   int
	Heads   int
	Scale   float32 // on the products of queries and keys
	Softcap float32 // 0: none
	Wide    bool    // in a layer with a window, rows of a block see all of it, and of what is before it what its first row sees
	Sinks   Vector  // a logit for each head, which takes a share of the softmax and has no value; empty: none

	// Biases of the scaled products; none go with a soft cap. Distances are of indices: rotation and Shift have no part in them.
	Slopes   Vector           // ALiBi (Press et al. 2022): of each head, what a distance of 1 takes off; empty: none
	Relative *weight.Relative // T5's; nil: none
}

// Attend writes the rows' keys and values (N4), attends from each row to all that it sees in the layer, and
// returns the weighted values, [rows, Heads x values of a head] (N2). Keys beyond the cache type's range fail
// the step with [ErrCacheRange], others that are not finite with [ErrNotFinite].
func (x *Exec) Attend(c Attention, q, k, v Buf) Buf {
	x.Store(c.Layer, k, v)
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
	x.visible(x.Cache.KeysLayer(c.Layer))
	x.attendTask.run(c, q, dst)
	return dst
}

// AttendSource attends from each row to all of its sequence's source in a layer with cross attention and returns the
// weighted values, [rows, Heads x values of a head] (N2). Rows without a source fail the step, and so does a bias by distance.
func (x *Exec) AttendSource(c Attention, q Buf) Buf {
	dst := x.alloc(q.rows, c.Heads*x.Cache.Config().Layers[c.Layer].Cross.HeadSize().Value)
	if c.biased() {
		x.fail(errors.New("compute: cross attention with biases by distance; the places of two texts have none"))
	}
	if _, finite := kernel.MaxAbsFinite(q.f); c.Softcap > 0 && !finite {
		x.fail(fmt.Errorf("compute: layer %d: %w", c.Layer, ErrNotFinite)) // the cap would hide it
	}
	rows := x.Step.Rows()
	for _, i := range x.active {
		if x.Cache.SourceLen(rows[i].Seq) == 0 {
			x.fail(fmt.Errorf("compute: the row at index %d reads a source and its sequence has none", rows[i].Index))
		}
	}
	if x.err == nil {
		x.attendTask.cross = true
		x.attendTask.run(c, q, dst)
		x.attendTask.cross = false
	}
	return dst
}

// ReadSource writes the keys and values of a sequence's source, as [kv.Cache.SetSource] asks: states, width values of
// each token, are those that the encoder gives. It calls read for every layer, which computes the keys and values of some tokens
// from their states and calls [Exec.PutSource]. No step may be under way. It returns the first error, and ctx's.
func (x *Exec) ReadSource(ctx context.Context, s forest.Seq, states []float32, width int, read func(x *Exec, layer int, states Buf)) error {
	x.ctx, x.err, x.source, x.sourceAt = ctx, nil, s, 0
	x.quantizedID = 0
	for most := len(x.results); len(states) > 0; {
		rows := min(most, len(states)/width)
		b := x.changed(Buf{f: states[:rows*width], rows: rows, width: width})
		for l := range x.Cache.Config().Layers {
			if x.err == nil && ctx.Err() != nil {
				x.fail(ctx.Err())
			}
			if x.err != nil {
				return x.err
			}
			x.used = 0
			read(x, l, b)
		}
		x.sourceAt += rows
		states = states[rows*width:]
	}
	return x.err
}

// PutSource rounds and writes the keys and values of the tokens of a source that [Exec.ReadSource] is at.
func (x *Exec) PutSource(layer int, k, v Buf) {
	x.storeAs(storeSource, layer, x.Cache.Config().Layers[layer].Cross.KVHeads, k, v)
}

// Store rounds and writes the rows' keys and values (N4), of rows that do not attend themselves.
func (x *Exec) Store(layer int, k, v Buf) {
	x.storeAs(storeRows, layer, x.Cache.Config().Layers[layer].KVHeads, k, v)
}

func (x *Exec) storeAs(kind rowKind, layer, heads int, k, v Buf) {
	t := &x.rowTask
	*t = rowTask{kind: kind, x: x, a: k, b: v, layer: layer, heads: heads}
	x.runRows(k.rows, k.width*8)
	switch kernel.PutResult(t.problem.Load()) {
	case kernel.PutRange:
		x.fail(fmt.Errorf("compute: layer %d: %w", layer, ErrCacheRange))
	case kernel.PutNotFinite:
		x.fail(fmt.Errorf("compute: layer %d: %w", layer, ErrNotFinite))
	}
}

func (t *rowTask) store(i int) {
	k, v := t.a.row(i), t.b.row(i)
	nk, nv := len(k)/t.heads, len(v)/t.heads
	for h := range t.heads {
		if r := t.put(i, h, k[h*nk:(h+1)*nk], v[h*nv:(h+1)*nv]); r != kernel.PutOK {
			t.problem.Store(int32(r))
		}
	}
}

func (t *rowTask) put(i, head int, k, v []float32) kernel.PutResult {
	x := t.x
	if t.kind == storeSource {
		return x.Cache.PutSource(x.source, t.layer, x.sourceAt+i, head, k, v)
	}
	return x.Cache.Put(t.layer, x.Step.Rows()[x.active[i]].Slot, head, k, v)
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
