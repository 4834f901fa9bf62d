//go:build (amd64 || arm64) && !purego

package kernel

import "math/bits"

// The files x_ARCH.go beside this one choose the tiles: queryRows, attendTile.

const scoreRow = PageSlots * 4 // bytes of a row of scores or weights

// first returns the address of what is read next, or of what is at hand where that is nothing.
func first(next, other []byte) *byte {
	if len(next) > 0 {
		return &next[0]
	}
	return &other[0]
}

// tiles multiplies n rows of a by b in tiles, as attendF32AVX2 and attendF32NEON say. What comes next is prefetched once, an
// equal share with each tile.
func tiles(width int, dst []float32, dstStride int, a []float32, aStride, n int, b []byte, bStep, bGroup int, next []byte, steps, groups int) {
	pace := max(0, bits.Len(uint(n))-bits.Len(uint(queryRows(n))))
	share := steps * groups * 16 * width >> pace
	for n > 0 {
		rows := queryRows(n)
		attendTile(width, rows, &dst[0], dstStride, &a[0], aStride, &b[0], bStep, bGroup, first(next, b), pace, steps, groups)
		if n -= rows; n > 0 {
			dst, a, next = dst[rows*dstStride/4:], a[rows*aStride/4:], next[min(share, len(next)):]
		}
	}
}

// wholeGroups returns the smallest range of whole groups around the slots [lo, hi).
func wholeGroups(lo, hi int) (int, int) {
	return lo &^ (keyLanes - 1), (hi + keyLanes - 1) &^ (keyLanes - 1)
}

// copyScores copies the scores of the slots [lo, hi) of n queries.
func copyScores(dst, src []float32, n, lo, hi int) {
	for j := range n {
		copy(dst[j*PageSlots+lo:j*PageSlots+hi], src[j*PageSlots+lo:])
	}
}

// softmaxAhead is how many cache lines are prefetched beside the softmax, for a few queries.
const softmaxAhead = 32
