package growtest

import (
	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

// Mask is the mask of [Canvas], the last of 100 tokens.
const Mask = 99

// Canvas is a model of masks whose rows say how far they are behind the last token that is no mask: they draft its successors. block is that of a model of blocks; 0: it is none.
func Canvas(shift bool, block, context, rows int) *Model {
	m := &Model{Dims: method.Size{Vocabulary: Mask + 1, Layers: 2, Width: 4, Context: context, Rows: rows, Canvas: &method.Canvas{Mask: Mask, Shift: shift, Block: block}}}
	m.Next = func(path []token.ID, _ forest.Row) []float32 {
		last := len(path) - 1
		for path[last] == Mask {
			last--
		}
		far := len(path) - 1 - last
		if shift {
			far++
		}
		logits := make([]float32, Mask+1)
		for id := range logits {
			logits[id] = -float32(max(id-int(path[last])-far, int(path[last])+far-id))
		}
		return logits
	}
	return m
}
