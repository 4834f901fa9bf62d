//go:build arm64 && !purego

package kernel

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// NEON is set when the kernels of 128 bits run, which need the dot products of bytes (FEAT_DotProd). I8MM is set as well where
// kernels with products of 8-bit matrices (FEAT_I8MM) take their place.
// Only [Use] sets them; dispatchers read them.
var NEON, I8MM bool

var (
	// All Macs of this architecture have dot products; the oldest systems do not say so.
	hasNEON = cpu.ARM64.HasASIMD && (cpu.ARM64.HasASIMDDP || runtime.GOOS == "darwin")
	// On Windows package cpu does not detect these, so none are used there.
	hasI8MM = hasNEON && cpu.ARM64.HasI8MM
)

func archImpls() []impl {
	var found []impl
	if hasI8MM {
		found = append(found, impl{"neon-i8mm", []*bool{&NEON, &I8MM}})
	}
	if hasNEON {
		found = append(found, impl{"neon-dotprod", []*bool{&NEON}})
	}
	return found
}
