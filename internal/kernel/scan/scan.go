// Package scan is recurrences: what a layer computes from a state that every row of a text advances in turn, and not from
// the keys of earlier rows. A state is cut into parts that are advanced apart from each other (heads, or groups of
// channels), so threads take parts and no sum crosses threads (N3).
package scan

//go:generate go -C ../_asm run ./scanarm -out ../scan/z_scan_arm64.s -stubs ../scan/z_scan_arm64.go -pkg scan

// Op is a recurrence. Its methods may run on several threads at a time, on different states or parts: it keeps nothing
// between calls.
type Op interface {
	Parts() int  // of a state
	Size() int   // values of a part's state; all zero before the first row
	Record() int // values of an input row
	Out() int    // values of an output row

	// Advance advances the state of a part, of Size values, by n rows in order: it reads the state before the first row
	// at from and writes the one behind the last, all of its values, at to, which may be from itself. Row i has the input in[i*inStride:], of
	// Record values, of which the part reads its own. Its output is written at the part's own places of out[i*outStride:],
	// of Out values; nil: none is wanted. The bits of the state and of the outputs do not depend on how rows are cut
	// into calls, on whether to is from, nor on whether outputs are wanted. n is 1 or more. Otherwise the slices do not overlap.
	Advance(part int, to, from, in []float32, inStride, n int, out []float32, outStride int)
}
