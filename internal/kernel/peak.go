package kernel

import "runtime"

// The loops of arm64 are generated from here, as go generate reads no file of another system.
//
//go:generate go -C _asm run ./peakarm -out ../z_peak_arm64.s -stubs ../z_peak_arm64.go -pkg kernel

// PeakKind names a kind of multiply-add.
type PeakKind int

// The kinds of multiply-add that products are made of.
const (
	PeakFloat  PeakKind = iota // float32
	PeakInt8                   // signed bytes into 32 bits: Q8_0
	PeakNibble                 // nibbles by signed bytes into 16 bits: the 4-bit types; as PeakInt8 where one instruction does both
)

// Peak does n rounds of nothing but multiply-adds in registers and returns how many those were: timed, it
// gives the most multiply-adds of a core, with which products are compared. n must be positive; a
// round takes some ten nanoseconds, and a call cannot be preempted.
func Peak(k PeakKind, n int) int { return peak(k, n) }

func peakGo(n int) int {
	acc := [8]float32{}
	for range n {
		for i := range acc {
			acc[i] = FMA32(acc[i], 0.5, 1)
		}
	}
	runtime.KeepAlive(acc)
	return n * len(acc)
}
