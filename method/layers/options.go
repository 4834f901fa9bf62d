package layers

import (
	"fmt"
	"math"

	"grove/method"
)

// Options returns the options exit and depth of a method that drafts with first layers; exit is by default the method's choice. what says for errors what exit stands for, and depth
// is the most drafts of a chain where none is given.
func Options(what string, depth int) []method.Option {
	return []method.Option{
		{Name: "exit", Is: "L, " + what, Least: 1, Most: math.MaxInt},
		{Name: "depth", Is: "N, the drafts of a chain", Usual: depth, Least: 1, Most: 25},
	}
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
