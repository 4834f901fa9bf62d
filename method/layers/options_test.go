package layers

import (
	"errors"
	"testing"

	"grove/internal/suite/growtest"
	"grove/method"
)

// TestMeets: a model has enough layers or too few, or there is none.
func TestMeets(t *testing.T) {
	of := func(layers int) method.Env {
		return method.Env{Target: &growtest.Model{Dims: method.Size{Layers: layers}}}
	}
	for name, c := range map[string]struct {
		env  method.Env
		fits bool
	}{"no model": {method.Env{}, false}, "too few": {of(2), false}, "enough": {of(3), true}} {
		if err := Meets(3)(c.env); (err == nil) != c.fits || err != nil && !errors.Is(err, method.ErrNeeds) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
