package reading

import (
	"errors"
	"fmt"

	"grove/model"
)

// ErrPrefix reports a prompt whose tokens cannot see each other.
var ErrPrefix = errors.New("the prompt's tokens cannot see each other")

// Prefix returns an [ErrPrefix] where a text cannot begin with a prefix: n tokens that see each other, in one step of at most so many rows.
func Prefix(info *model.Info, n, rows int) error {
	if info.Source != nil {
		return fmt.Errorf("%w: %s reads its prompt by an encoder", ErrPrefix, info.Arch)
	}
	for i, l := range info.Layers {
		if len(l.States) > 0 {
			return fmt.Errorf("%w: layer %d of %s reads them one after the other", ErrPrefix, i, info.Arch)
		}
	}
	if n > rows {
		return fmt.Errorf("%w: it has %d tokens, and a step %d rows at most", ErrPrefix, n, rows)
	}
	return nil
}
