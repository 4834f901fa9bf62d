//go:build (!amd64 && !arm64) || purego

package matmul

import (
	"grove/internal/kernel"
	"grove/internal/weights/tensor"
)

// tiles are the assembly of one type: there is none.
type tiles struct{}

func tilesOf(tensor.Type) tiles { return tiles{} }

func (*tiles) multiply(*Format, []float32, int, []byte, int, int, int, int, *kernel.Rows, *Scratch) bool {
	return false
}
