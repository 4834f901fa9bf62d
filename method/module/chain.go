package module

import (
	"grove/method"
	"grove/method/grow"
)

// Chain is the options of a method that exits twice: the layers early, and the drafting behind the first draft that is not likely enough (Kangaroo, Liu et al. 2024, whose
// values are the usual ones).
var Chain = []method.Option{
	{Name: "least", Is: "P, the probability of a draft behind which drafting goes on", Usual: 60, Least: 0, Most: 100, Hundredths: true},
	{Name: "depth", Is: "N, the drafts of a chain", Usual: 6, Least: 1, Most: 25},
}

// ChainShape returns the shape of chains by the numbers of [Chain].
func ChainShape(n []int) grow.Shape {
	return grow.Shape{Ranks: []int{1}, Beam: 1, Depth: n[1], Spine: true, Least: float32(n[0]) / 100}
}
