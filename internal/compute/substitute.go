// substitute.go makes the streams of rows behind layers that they substitute: what the layer gave for the row's anchor, and a low-rank product of the row's own stream (LoRA-Drop, 2026).
//
// The order of arithmetic: u = Ax and v = Bu by N1, in the types of A and B, which are floats, of the stream x with which the row enters the layer, not rounded; then
// y = FMA32(scale, v, anchor). The anchor's stream is that behind the layer: of a row of the same step, or kept of an earlier one.

package compute

import (
	"fmt"
	"slices"

	"grove/internal/compute/weight"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
)

// SubstituteLayer is the adapter of a layer that can be substituted.
type SubstituteLayer struct {
	A     *weight.Matrix // [rank, width]; nil: the layer cannot be substituted
	B     *weight.Matrix // [width, rank]
	Scale float32
}

// SubstituteLayers is the adapters of a model's layers, by their numbers. It is read-only.
type SubstituteLayers []SubstituteLayer

// Set returns the layers that can be substituted.
func (l SubstituteLayers) Set() (set forest.Layers) {
	for i := range l {
		if l[i].A != nil {
			set = set.With(i)
		}
	}
	return set
}

// SubstituteTask makes streams. The zero value substitutes nothing. It is for one step at a time; its buffers are kept, those of anchors for each sequence.
type SubstituteTask struct {
	layers  SubstituteLayers
	width   int
	on      bool    // a row of the step substitutes layers or is an anchor
	done    int     // layers behind which the streams are made
	sources []int32 // by row: the row of the step that is its anchor; kept: an earlier step had it
	kept    []kept  // by sequence
	to      []int32 // rows that substitute layers
	in, low kernel.Rows
	up      []float32
}

// kept is the streams of a sequence's anchor behind the layers that can be substituted, one after the other.
type kept struct {
	node          forest.Node
	streams, next []float32
	row           int32 // of the step, the last anchor, whose streams become next; none: there is none
}

const (
	substituteNone = -1 // no row of a step
	earlier        = -2 // the anchor is a row of an earlier step
)

// NewSubstitute returns a task for a model of a width.
func NewSubstitute(layers SubstituteLayers, width int) SubstituteTask {
	return SubstituteTask{layers: layers, width: width}
}

// Begin begins a step. It returns an error where the anchor of a row is neither in the step nor kept.
func (t *SubstituteTask) Begin(rows []forest.Placed) error {
	t.on, t.done, t.to = false, 0, t.to[:0]
	if t.layers == nil {
		return nil
	}
	for i := range t.kept {
		t.kept[i].row = substituteNone
	}
	t.sources = slices.Grow(t.sources[:0], len(rows))[:len(rows)]
	for i := range rows {
		r := &rows[i]
		if r.Anchor {
			t.on, t.of(r.Seq).row = true, int32(i)
		}
		if !r.Substitute {
			continue
		}
		t.on, t.to = true, append(t.to, int32(i))
		t.sources[i] = earlier
		for k := i - 1; k >= 0 && t.sources[i] == earlier; k-- {
			if rows[k].Node == r.Behind {
				t.sources[i] = int32(k)
			}
		}
		if t.sources[i] == earlier && t.of(r.Seq).node != r.Behind {
			t.on = false
			return fmt.Errorf("compute: the row at index %d substitutes layers, and what they gave for its anchor is gone; let the anchor's row run again", r.Index)
		}
	}
	return nil
}

// of returns what is kept of a sequence.
func (t *SubstituteTask) of(s forest.Seq) *kept {
	for int(s) >= len(t.kept) {
		t.kept = append(t.kept, kept{row: substituteNone})
	}
	return &t.kept[s]
}

// Leave makes the streams behind all layers up to one, which no row will change any more.
func (t *SubstituteTask) Leave(layer int, rows []forest.Placed, stream []float32, scratch []matmul.Scratch) {
	if !t.on {
		return
	}
	for ; t.done <= layer; t.done++ {
		if t.layers[t.done].A != nil {
			t.leave(t.done, rows, stream, scratch)
		}
	}
}

func (t *SubstituteTask) leave(layer int, rows []forest.Placed, stream []float32, scratch []matmul.Scratch) {
	at, n := 0, 0 // of the layer in what is kept, and the values of all
	for i := range t.layers {
		if t.layers[i].A != nil {
			if i < layer {
				at += t.width
			}
			n += t.width
		}
	}
	for i := range rows {
		if k := t.of(rows[i].Seq); rows[i].Anchor && k.row == int32(i) {
			k.next = slices.Grow(k.next[:0], n)[:n]
			copy(k.next[at:], t.row(stream, int32(i)))
		}
	}
	if len(t.to) == 0 {
		return
	}
	t.multiply(&t.layers[layer], stream, scratch)
	for k, i := range t.to {
		dst := t.row(stream, i)
		if s := t.sources[i]; s != earlier {
			copy(dst, t.row(stream, s))
		} else {
			copy(dst, t.of(rows[i].Seq).streams[at:])
		}
		kernel.AddScaled(dst, t.layers[layer].Scale, t.up[k*t.width:][:t.width])
	}
}

func (t *SubstituteTask) row(stream []float32, i int32) []float32 {
	return stream[int(i)*t.width:][:t.width]
}

// multiply computes B(Ax) of the streams of the rows that substitute a layer.
func (t *SubstituteTask) multiply(l *SubstituteLayer, stream []float32, scratch []matmul.Scratch) {
	rank, n := l.A.Out(), len(t.to)
	t.in.N, t.in.K, t.in.F = n, t.width, t.in.F[:0]
	for _, i := range t.to {
		t.in.F = append(t.in.F, t.row(stream, i)...)
	}
	t.low.N, t.low.K, t.low.F = n, rank, slices.Grow(t.low.F[:0], n*rank)[:n*rank]
	t.up = slices.Grow(t.up[:0], n*t.width)[:n*t.width]
	l.A.Multiply(t.low.F, rank, 0, 0, l.A.Groups(), &t.in, &scratch[0])
	l.B.Multiply(t.up, t.width, 0, 0, l.B.Groups(), &t.low, &scratch[0])
}

// End ends a step. Where it is done, the streams of its anchors are kept in place of earlier ones; otherwise all is as before.
func (t *SubstituteTask) End(done bool, rows []forest.Placed) {
	if !t.on {
		return
	}
	for i := range rows {
		if k := t.of(rows[i].Seq); k.row == int32(i) && done {
			k.node, k.streams, k.next = rows[i].Node, k.next, k.streams
		}
	}
	t.on = false
}
