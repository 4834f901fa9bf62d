//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// AVX2 is set when the AVX2 kernels run: 256-bit integers, fused multiply-add and the conversion of half
// floats. AVX512 is set as well where 512-bit kernels take their place: with integers of 8 and 16 bits.
// Only [Use] sets them; dispatchers read them.
var AVX2, AVX512 bool

var (
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C
	hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
)

func archImpls() []impl {
	var found []impl
	if hasAVX512 {
		found = append(found, impl{"avx512", []*bool{&AVX2, &AVX512}})
	}
	if hasAVX2 {
		found = append(found, impl{"avx2", []*bool{&AVX2}})
	}
	return found
}
