package compute

import (
	"grove/internal/compute/rotary"
	"grove/internal/kernel"
)

// Rope is a rotation that package rotary has prepared.
type Rope = rotary.Rope

// ropeTable is the angles of a step's rows for one rotation.
type ropeTable struct {
	rope     *Rope
	rows     int // filled; 0 at the start of a step
	cos, sin []float32
}

func (t *ropeTable) fill(row int, pos int32) {
	n := len(t.rope.Freq)
	for i, f := range t.rope.Freq {
		sin, cos := kernel.SinCos64(float64(pos) * f)
		t.cos[row*n+i], t.sin[row*n+i] = float32(cos*t.rope.Scale), float32(sin*t.rope.Scale)
	}
}

// ropeTable returns the angles of this step's rows, computing them once a step.
func (x *Exec) ropeTable(r *Rope) *ropeTable {
	var t *ropeTable
	for i := range x.ropes {
		if x.ropes[i].rope == r {
			t = &x.ropes[i]
		}
	}
	if t == nil {
		x.ropes = append(x.ropes, ropeTable{rope: r})
		t = &x.ropes[len(x.ropes)-1]
	}
	if n := len(x.Step.Rows()); t.rows < n {
		t.cos, t.sin = grow(t.cos, n*len(r.Freq)), grow(t.sin, n*len(r.Freq))
		t.rows = n
		x.rowTask = rowTask{kind: ropeAngles, x: x, rope: t}
		x.runRows(n, 64*len(r.Freq))
	}
	return t
}

// Rope rotates each head of each row by the row's position, in place.
func (x *Exec) Rope(a Buf, heads int, r *Rope) Buf {
	t := x.ropeTable(r)
	x.rowTask = rowTask{kind: ropeRows, x: x, dst: a, heads: heads, rope: t}
	x.runRows(a.rows, a.width*2)
	return x.changed(a)
}

func (t *rowTask) rotate(i int) {
	n := len(t.rope.rope.Freq)
	at := int(t.x.active[i]) * n
	kernel.Rope(t.dst.row(i), t.heads, t.dst.width/t.heads, 2*n, t.rope.cos[at:at+n], t.rope.sin[at:at+n], t.rope.rope.NeoX)
}
