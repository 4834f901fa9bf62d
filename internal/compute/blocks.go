package compute

import (
	"fmt"

	"grove/internal/kernel"
)

// blockPairs bounds the pairs of a row and one of its blocks that [Exec.SparseBlocks] keeps at a time, where a step has fewer rows.
const blockPairs = 4096

// SparseBlocks returns for each row the sum, in order of blocks, of gate_e * down_e silu(up_e a) over the blocks e whose gate is not 0 (N1). gates has
// one value of each row for each block; up and down are stacks of a matrix for each block. The bits are those of the sum over all blocks: a gate of 0
// adds 0. A block is read once, and where no row has a gate for it, not at all. A gate that is not finite fails the step.
func (x *Exec) SparseBlocks(gates Buf, up, down Projection, a Buf) Buf {
	dst := x.alloc(a.rows, down.Matrix.Out())
	clear(dst.f)
	if _, finite := kernel.MaxAbsFinite(gates.f[:gates.rows*gates.width]); !finite {
		x.fail(fmt.Errorf("compute: the gates of blocks: %w", ErrNotFinite))
		return x.changed(dst)
	}
	window := min(max(1, blockPairs/max(1, a.rows)), gates.width)
	for from := 0; from < gates.width; from += window {
		used := x.used
		if r := x.routeGates(gates, from, min(from+window, gates.width)); len(r.busy) > 0 {
			h := x.Silu(x.LinearExperts(up, x.Experts(a, r), r))
			x.addExperts(dst, x.LinearExperts(down, h, r), r)
		}
		x.used = used // the buffers of a window serve the next one
	}
	return x.changed(dst)
}

// routeGates makes pairs of each row and those of the blocks [from, to) whose gate is not 0, which is their weight.
func (x *Exec) routeGates(gates Buf, from, to int) *Routing {
	r := &x.routing
	most := gates.rows * (to - from)
	r.first, r.chosen, r.weights = grow(r.first, gates.rows+1), grow(r.chosen, most), grow(r.weights, most)
	n := 0
	for i := range gates.rows {
		r.first[i] = int32(n)
		for e, g := range gates.row(i)[from:to] {
			if g != 0 {
				r.chosen[n], r.weights[n] = int32(from+e), g
				n++
			}
		}
	}
	r.first[gates.rows] = int32(n)
	r.sortPairs(gates.width)
	x.touched += len(r.busy)
	return r
}
