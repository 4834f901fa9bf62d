//go:build !amd64 || purego

package matmul

import (
	"grove/internal/kernel"
	"grove/weights/tensor"
)

func mulFloat(t tensor.Type, elem int, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
	mulFloatGo(t, elem, dst, stride, w, out, k, g0, g1, x)
}

func mulBlocks(l *blockLayout, dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows) {
	mulBlocksGo(l, dst, stride, w, out, k, g0, g1, x)
}
