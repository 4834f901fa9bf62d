package layers

import (
	"fmt"
	"strconv"
	"strings"
)

// Options holds the choices of a user of a method that drafts with first layers.
type Options struct {
	Exit  int // a number of layers, from 1; 0: none is given
	Depth int // drafts of a chain at most
}

// Read reads the options exit and depth, each at most once and with a + between them, over what o has. depth is at most deepest. what says in the
// error what the option exit stands for.
func (o *Options) Read(option, what string, deepest int) error {
	given := Options{}
	for _, one := range strings.Split(option, "+") {
		name, value, _ := strings.Cut(one, "=")
		n, err := strconv.Atoi(value)
		switch {
		case err == nil && name == "exit" && n >= 1 && given.Exit == 0:
			given.Exit = n
		case err == nil && name == "depth" && n >= 1 && n <= deepest && given.Depth == 0:
			given.Depth = n
		default:
			return fmt.Errorf("option %q is not known; use exit=L, %s, from 1, and depth=N, the drafts of a chain, from 1 to %d, with a + between the two", option, what, deepest)
		}
	}
	if given.Depth == 0 {
		given.Depth = o.Depth
	}
	if given.Exit == 0 {
		given.Exit = o.Exit
	}
	*o = given
	return nil
}

// String returns the one spelling of the options.
func (o Options) String() string {
	if o.Exit == 0 {
		return fmt.Sprintf("depth=%d", o.Depth)
	}
	return fmt.Sprintf("exit=%d+depth=%d", o.Exit, o.Depth)
}

// Fits returns an error where the option exit is not below the number of layers of a model.
func (o Options) Fits(method string, layers int) error {
	if o.Exit < layers {
		return nil
	}
	return fmt.Errorf("%s: exit=%d: the model has %d layers; the exit must be 1 to %d", method, o.Exit, layers, layers-1)
}
