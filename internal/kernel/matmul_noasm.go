//go:build !amd64 || purego

package kernel

import "grove/tensor"

func mulFloat(t tensor.Type, elem int, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *Rows) {
	mulFloatGo(t, elem, dst, stride, w, out, k, g0, g1, x)
}

func mulBlocks(l *blockLayout, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *Rows) {
	mulBlocksGo(l, dst, stride, w, out, k, g0, g1, x)
}

func quantize(q []int8, d []float32, sum []int32, f []float32, nb int) {
	quantizeGo(q, d, sum, f, nb)
}

func stream(b []byte) uint64 { return streamGo(b) }
