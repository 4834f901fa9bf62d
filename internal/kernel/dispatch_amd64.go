//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// useAVX2 is set when the AVX2 kernels run: 256-bit integers, fused multiply-add and the
// conversion of half floats.
var useAVX2 bool

var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C

func archImpls() []impl {
	if !hasAVX2 {
		return nil
	}
	return []impl{{"avx2", &useAVX2}}
}
