package resident

import (
	"errors"
	"fmt"

	"grove/method"
	"grove/method/layers"
)

// Places reads which layers the tokens of an answer skip, beside a list of methods and a search; "": none. Errors: an [*OptionError].
func (m *Model) Places(skip, methods, search string) (p layers.Places, err error) {
	if p, err = layers.ParsePlaces(skip); err == nil {
		_, err = m.Engine.CheckPlaces(p)
	}
	if err != nil {
		return p, &OptionError{Err: fmt.Errorf("grove: Request.SkipLayers: %w", err)}
	}
	if infos, auto, _ := method.Parse(methods); p.On() && (len(infos) > 0 && !auto || search != "") {
		return p, &OptionError{Err: errors.New("grove: Request.SkipLayers beside a method or a search: drafts are verified by all layers; leave the method to auto or off")}
	}
	return p, nil
}
