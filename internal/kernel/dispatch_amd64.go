//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// AVX2 is set when the AVX2 kernels run: 256-bit integers, fused multiply-add and the conversion of half
// floats. The others are set as well where these kernels take the place of some: AVX512 has 512 bits and integers of 8 and
// 16 bits, VNNI512 adds the dot product of bytes to AVX512, AMX adds products of matrices of bytes to VNNI512, and VNNI256
// adds the dot product to AVX2.
// Only [Use] sets them; dispatchers read them.
var AVX2, AVX512, VNNI512, AMX, VNNI256 bool

var (
	hasAVX2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C
	hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL

	hasVNNI512 = hasAVX512 && cpu.X86.HasAVX512VNNI
	hasAMX     = hasVNNI512 && cpu.X86.HasBMI2 && cpu.X86.HasAMXTile && cpu.X86.HasAMXInt8 && allowMatrices()
	hasVNNI256 = hasAVX2 && cpu.X86.HasAVXVNNI
)

// archImpls returns the sets of this machine, fastest first. A set is listed from its first kernel on.
func archImpls() []impl {
	var found []impl
	if hasAMX {
		found = append(found, impl{"avx512-amx", []*bool{&AVX2, &AVX512, &VNNI512, &AMX}})
	}
	if hasVNNI512 {
		found = append(found, impl{"avx512-vnni", []*bool{&AVX2, &AVX512, &VNNI512}})
	}
	if hasAVX512 {
		found = append(found, impl{"avx512", []*bool{&AVX2, &AVX512}})
	}
	if hasVNNI256 {
		found = append(found, impl{"avx-vnni", []*bool{&AVX2, &VNNI256}})
	}
	if hasAVX2 {
		found = append(found, impl{"avx2", []*bool{&AVX2}})
	}
	return found
}
