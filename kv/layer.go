package kv

import (
	"fmt"

	"grove/internal/kernel"
)

// Kind names what a layer keeps of a text.
type Kind int

// The kinds of layers. [New] refuses those that have no storage here, by name.
const (
	Full      Kind = iota // the keys and values of every token
	Windowed              // those of the last tokens alone
	Shared                // nothing of its own: it reads the keys and values of an earlier layer
	Recurrent             // one state, which each token replaces
	Cross                 // the keys and values of another text, read only
)

var kinds = [...]struct{ name, missing string }{
	Full:      {name: "full"},
	Windowed:  {name: "window"},
	Shared:    {"shared", "a layer cannot read another layer's pages"},
	Recurrent: {"recurrent", "a state for each live row, and snapshots of it, have no storage"},
	Cross:     {"cross", "pages of another text have no storage"},
}

// String returns the name of the kind.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("%d", int(k))
	}
	return kinds[k].name
}

// Keep says what a layer keeps; the zero value is every token.
type Keep struct {
	Kind   Kind
	Window int // of kind [Windowed]: the number of tokens that a row sees, its own among them
}

// Window returns what a layer with a sliding window of n tokens keeps.
func Window(n int) Keep { return Keep{Windowed, n} }

// Span returns the indices [low, high) that a row at an index reads at most, of those below end. In a window, a row of
// a block sees as far ahead as behind.
func (k Keep) Span(index, end int) (low, high int) {
	if k.Kind == Windowed {
		return max(0, index-k.Window+1), min(end, index+k.Window)
	}
	return 0, end
}

// check returns an error where nothing here stores what a layer keeps.
func (k Keep) check(layer int) error {
	switch {
	case k.Kind < 0 || int(k.Kind) >= len(kinds):
		return fmt.Errorf("kv: layer %d: kind %d is not known; %d to %d are", layer, k.Kind, Full, len(kinds)-1)
	case kinds[k.Kind].missing != "":
		return fmt.Errorf("kv: layer %d: kind %v is not supported: %s; full and window are", layer, k.Kind, kinds[k.Kind].missing)
	case k.Kind == Windowed && k.Window < 1:
		return fmt.Errorf("kv: layer %d: a window of %d tokens; it must be 1 or more", layer, k.Window)
	case k.Kind != Windowed && k.Window != 0:
		return fmt.Errorf("kv: layer %d: kind %v with a window of %d tokens; only kind window has one", layer, k.Kind, k.Window)
	}
	return nil
}

// Layer describes what one layer of the model stores.
type Layer struct {
	KVHeads int
	Size    int // values of a head's keys
	Value   int // values of a head's values; 0: as many
	Keeps   Keep
}

// HeadSize returns the values of one head.
func (l Layer) HeadSize() kernel.HeadSize {
	if l.Value == 0 {
		return kernel.HeadSize{Key: l.Size, Value: l.Size}
	}
	return kernel.HeadSize{Key: l.Size, Value: l.Value}
}
