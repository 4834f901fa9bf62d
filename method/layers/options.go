package layers

import (
	"fmt"
	"math"

	"grove/method"
	"grove/method/grow"
)

// Options returns the options exit and depth of a method that drafts with first layers; exit is by default the method's choice. what says for errors what exit stands for, and depth
// is the most drafts of a chain where none is given.
func Options(what string, depth int) []method.Option {
	return []method.Option{
		{Name: "exit", Is: "L, " + what, Least: 1, Most: math.MaxInt},
		{Name: "depth", Is: "N, the drafts of a chain", Usual: depth, Least: 1, Most: 25},
	}
}

// Chain is the options of a method that exits twice: the layers early, and the drafting behind the first draft that is not likely enough (Kangaroo, Liu et al. 2024, whose
// values are the usual ones).
var Chain = []method.Option{
	{Name: "least", Is: "P, the probability of a draft behind which drafting goes on", Usual: 60, Least: 0, Most: 100, Hundredths: true},
	{Name: "depth", Is: "N, the drafts of a chain", Usual: 6, Least: 1, Most: 25},
}

// Shape returns the shape of chains by the numbers of [Chain].
func Shape(n []int) grow.Shape {
	return grow.Shape{Ranks: []int{1}, Beam: 1, Depth: n[1], Spine: true, Least: float32(n[0]) / 100}
}

// Fits returns an error where the option exit of a method is not below the number of layers of a model.
func Fits(name string, exit, layers int) error {
	if exit < layers {
		return nil
	}
	return fmt.Errorf("%s: exit=%d: the model has %d layers; the exit must be 1 to %d", name, exit, layers, layers-1)
}

// Meets returns the check of a method's needs that the target has so many layers.
func Meets(layers int) func(method.Env) error {
	return func(e method.Env) error {
		if e.Target != nil && e.Target.Size().Layers >= layers {
			return nil
		}
		return method.ErrNeeds
	}
}
