package compute

import (
	"fmt"

	"grove/internal/kernel"
)

// Join returns the columns of a, and behind them those of each of the others, row by row.
func (x *Exec) Join(a Buf, others ...Buf) Buf {
	width := a.width
	for _, b := range others {
		width += b.width
	}
	dst, at := x.alloc(a.rows, width), a.width
	x.CopyHeads(dst, 0, a, 0, a.width, 1)
	for _, b := range others {
		x.CopyHeads(dst, at, b, 0, b.width, 1)
		at += b.width
	}
	return dst
}

// Part returns a copy of n columns of a, from column first on.
func (x *Exec) Part(a Buf, first, n int) Buf {
	dst := x.alloc(a.rows, n)
	return x.CopyHeads(dst, 0, a, first, n, 1)
}

// Mul multiplies a by b, in place of a.
func (x *Exec) Mul(a, b Buf) Buf { return x.gated(mulRows, a, b) }

// MulHeads multiplies each head of a row by its value of b, which has one for each, in place of a.
func (x *Exec) MulHeads(a, b Buf) Buf { return x.gated(mulHeadsRows, a, b) }

// Scale multiplies a by s, in place.
func (x *Exec) Scale(a Buf, s float32) Buf { return x.element(scaleRows, a, 1, Vector{}, s) }

// ScaleBlocks multiplies rows of blocks by block and all others by s, in place.
func (x *Exec) ScaleBlocks(a Buf, s, block float32) Buf {
	x.rowTask = rowTask{kind: scaleBlocks, x: x, a: a, eps: s, scale: block}
	x.runRows(a.rows, a.width)
	return x.changed(a)
}

// MulVector multiplies each row by w, in place.
func (x *Exec) MulVector(a Buf, w Vector) Buf { return x.element(mulVectorRows, a, 1, w, 0) }

// AddVector adds w to each row, in place.
func (x *Exec) AddVector(a Buf, w Vector) Buf { return x.element(addVectorRows, a, 1, w, 0) }

// Silu returns a / (1 + exp(-a)), in place.
func (x *Exec) Silu(a Buf) Buf { return x.element(plainSiluRows, a, 1, Vector{}, 0) }

// Sigmoid returns 1 / (1 + exp(-a)), in place. An infinity, which it would hide, fails the step.
func (x *Exec) Sigmoid(a Buf) Buf { return x.element(sigmoidRows, a, 1, Vector{}, 0) }

// Softplus returns log(1 + exp(a + bias)), in place; an empty bias is none. An infinity, which it would hide, fails the step.
func (x *Exec) Softplus(a Buf, bias Vector) Buf { return x.element(softplusRows, a, 1, bias, 0) }

// UnitHeads divides each head of a row by the larger of its length and eps, in place: x / max(sqrt(sum(x^2)), eps), the norm of
// queries and keys of a delta net in the files of llama.cpp.
func (x *Exec) UnitHeads(a Buf, heads int, eps float32) Buf {
	return x.element(unitHeads, a, heads, Vector{}, eps)
}

// element runs an operation of one buffer, in place.
func (x *Exec) element(kind rowKind, a Buf, heads int, w Vector, eps float32) Buf {
	x.rowTask = rowTask{kind: kind, x: x, dst: a, heads: heads, weight: w.F, eps: eps}
	x.runRows(a.rows, a.width*2)
	if x.rowTask.problem.Load() != 0 {
		x.fail(fmt.Errorf("compute: a gate: %w", ErrNotFinite))
	}
	return x.changed(a)
}

func (t *rowTask) element(i int) {
	row := t.dst.row(i)
	switch t.kind {
	case mulRows:
		kernel.Mul(row, t.b.row(i))
	case mulHeadsRows:
		factors := t.b.row(i)
		n := len(row) / len(factors)
		for h, f := range factors {
			kernel.Scale(row[h*n:(h+1)*n], f)
		}
	case scaleRows:
		kernel.Scale(row, t.eps)
	case mulVectorRows:
		kernel.Mul(row, t.weight)
	case addVectorRows:
		kernel.Add(row, t.weight)
	case plainSiluRows:
		kernel.Silu(row, row)
	case sigmoidRows:
		t.finite(row)
		kernel.Sigmoid(row, row)
	case tanhRows:
		t.finite(row)
		kernel.Softcap(row, 1)
	case softplusRows:
		if t.weight != nil {
			kernel.Add(row, t.weight)
		}
		t.finite(row)
		kernel.Softplus(row, row)
	case unitHeads:
		for n := len(row) / t.heads; len(row) > 0; row = row[n:] {
			kernel.UnitNorm(row[:n], row[:n], t.eps)
		}
	}
}

// finite notes a value of a row that is not finite, for an operation that would hide it.
func (t *rowTask) finite(row []float32) {
	if _, finite := kernel.MaxAbsFinite(row); !finite {
		t.problem.Store(int32(kernel.PutNotFinite))
	}
}
