package flags

import (
	"grove"
	"grove/internal/weights/quantize"
)

// Guides is --guide.
type Guides struct {
	Guide []string `name:"guide" sep:"none" placeholder:"MODEL" var:"GROVE_GUIDE" help:"A model that steers answers, for a search that asks for one, such as contrast; named as for --model, or a type of weights, such as q4_0, for the model's own in that type; may be given several times, and searches number them from 1."`
}

// Search is --search, with the guides that it may ask for.
type Search struct {
	Guides
	Program string `name:"search" placeholder:"NAME,OPTIONS" var:"GROVE_SEARCH" help:"Draw several answers and choose one, such as ffs,n=4, or steer one by other models, such as contrast (see grove methods). The text comes when it is chosen; lossy."`
}

// put puts the search into the options of a model that is opened for one text at a time.
func (s Search) put(o *grove.Options) (err error) {
	o.Guides = s.Guide
	o.Parallel, err = grove.SearchSlots(s.Program)
	return err
}

// findBeside returns the path of a model beside the model, or the name of a type of weights.
func findBeside(name string) (string, error) {
	if quantize.Known(name) == nil {
		return name, nil
	}
	return Find(name)
}
