package module

import (
	"fmt"
	"slices"

	"grove/internal/forest"
	"grove/internal/model"
)

func init() { model.RegisterModule("transfer", openTransfer) }

// openTransfer opens the matrices of Hidden Transfer (Wu et al. 2024, section 3): row k behind a token begins at a layer of the target, as a product of
// the token's own stream there. The layers do not descend, so that each row finds the keys of those before it.
//
// Keys of a file, behind its architecture: block_count, rows; layers, at which each begins. Tensors: blk.K.transfer [width, width].
func openTransfer(l *model.Loader) model.Model {
	m, n, width := openStanding(l, "transfer")
	layers, _ := l.Ints("layers")
	most := len(l.Target().Layers) - 1
	if l.OK() && (len(layers) != n || !slices.IsSorted(layers) || layers[0] < 0 || layers[n-1] > most) {
		l.Fail("transfer.layers is %v; of %d rows it has a layer each from 0 to %d, none below the one before", layers, n, most)
	}
	for k := 0; k < n && l.OK(); k++ {
		matrix := l.Matrix(fmt.Sprintf("blk.%d.transfer.weight", k), width, width)
		m.info.Module.Rows = append(m.info.Module.Rows, forest.Row{Through: matrix, Skip: forest.LayerRange(0, layers[k])})
	}
	return m
}
