package kv

import (
	"fmt"

	"grove/internal/kernel"
)

// Kind names what a layer keeps of a text.
type Kind int

// The kinds of layers.
const (
	Full     Kind = iota // the keys and values of every token
	Windowed             // those of the last tokens alone
	Shared               // nothing of its own: it reads the keys and values of an earlier layer
	Chunked              // those of the stretch of tokens that the last one lies in
)

var kinds = [...]string{Full: "full", Windowed: "window", Shared: "shared", Chunked: "chunk"}

// String returns the name of the kind.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("%d", int(k))
	}
	return kinds[k]
}

// Keep says which tokens a layer stores; the zero value is every token.
type Keep struct {
	Kind   Kind
	Window int // of kind [Windowed]: the number of tokens that a row sees, its own among them; of kind [Chunked]: of a chunk
	From   int // of kind [Shared]: the layer whose keys and values it reads
}

// Window returns the Keep of a layer with a sliding window of n tokens.
func Window(n int) Keep { return Keep{Kind: Windowed, Window: n} }

// Chunk returns what a layer keeps whose rows see the tokens of their own chunk alone; chunks of n tokens follow each
// other from index 0 on (Llama 4, Meta AI 2025).
func Chunk(n int) Keep { return Keep{Kind: Chunked, Window: n} }

// Share returns what a layer keeps that reads the keys and values of an earlier layer, and sees what that layer sees.
func Share(from int) Keep { return Keep{Kind: Shared, From: from} }

// Span returns the indices [low, high) that a row at an index reads at most, of those below end. In a window, a row of
// a block sees as far ahead as behind; in a chunk, to the chunk's end. A shared layer has the span of the layer that it
// reads: see [Cache.KeysLayer].
func (k Keep) Span(index, end int) (low, high int) {
	switch k.Kind {
	case Windowed:
		return max(0, index-k.Window+1), min(end, index+k.Window)
	case Chunked:
		low = index - index%k.Window
		return low, min(end, low+k.Window)
	}
	return 0, end
}

// Evicts reports whether later rows do not see all earlier tokens, so that pages are given back.
func (k Keep) Evicts() bool { return k.Kind == Windowed || k.Kind == Chunked }

// check returns an error where nothing here stores what layer number layer keeps.
func (k Keep) check(layer int, layers []Layer) error {
	switch {
	case k.Kind < 0 || int(k.Kind) >= len(kinds):
		return fmt.Errorf("kv: layer %d: kind %d is not known; %d to %d are", layer, k.Kind, Full, len(kinds)-1)
	case k.Evicts() && k.Window < 1:
		return fmt.Errorf("kv: layer %d: a %v of %d tokens; it must be 1 or more", layer, k.Kind, k.Window)
	case !k.Evicts() && k.Window != 0:
		return fmt.Errorf("kv: layer %d: kind %v with a window of %d tokens; only kinds window and chunk have one", layer, k.Kind, k.Window)
	case k.Kind != Shared && k.From != 0:
		return fmt.Errorf("kv: layer %d: kind %v with the keys of layer %d; only kind shared reads another layer", layer, k.Kind, k.From)
	case k.Kind == Shared:
		return checkShared(layer, layers)
	}
	return nil
}

// checkShared returns an error where a layer cannot read the keys of the layer that it names.
func checkShared(layer int, layers []Layer) error {
	from := layers[layer].Keeps.From
	if from < 0 || from >= layer {
		return fmt.Errorf("kv: layer %d: kind shared with the keys of layer %d; it must be an earlier layer", layer, from)
	}
	of, to := &layers[from], &layers[layer]
	if of.Keeps.Kind == Shared {
		return fmt.Errorf("kv: layer %d: kind shared with the keys of layer %d, which has none of its own; it must be a layer with storage", layer, from)
	}
	if of.KVHeads != to.KVHeads || of.HeadSize() != to.HeadSize() {
		return fmt.Errorf("kv: layer %d: %d heads of %v, and layer %d, whose keys it shares, has %d heads of %v; the two must be equal",
			layer, to.KVHeads, to.HeadSize(), from, of.KVHeads, of.HeadSize())
	}
	return nil
}

// Layer describes what one layer of the model stores: keys and values, states, both or neither.
type Layer struct {
	KVHeads   int // 0: it has no attention
	KeySize   int // values of a head's keys
	ValueSize int // values of a head's values; 0: as many
	Keeps     Keep
	Gaps      bool    // tokens may have no keys in it ([forest.Row.Substitute]), so that it has a list of tokens of its own
	Cross     Heads   // what the layer reads of the sequence's source besides; see [Cache.SetSource]
	States    []State // its recurrences
}

// check returns an error where nothing here stores what layer number n keeps.
func (l Layer) check(n int, layers []Layer) error {
	k := l.Keeps
	switch {
	case l.Gaps && (n == 0 || k.Kind != Full || l.KVHeads == 0 || len(l.States) > 0 || l.Cross != Heads{}):
		return fmt.Errorf("kv: layer %d: its tokens may lack keys; that is possible of layers from 1 on that keep every token's keys, and nothing else", n)
	case k.Kind == Shared && k.From >= 0 && k.From < n && layers[k.From].Gaps:
		return fmt.Errorf("kv: layer %d: it reads the keys of layer %d, whose tokens may lack keys", n, k.From)
	}
	return k.check(n, layers)
}

// HeadSize returns the values of one head.
func (l Layer) HeadSize() kernel.HeadSize {
	if l.ValueSize == 0 {
		return kernel.HeadSize{Key: l.KeySize, Value: l.KeySize}
	}
	return kernel.HeadSize{Key: l.KeySize, Value: l.ValueSize}
}

// Tail returns the first of the last layers that keep nothing of a text: they read the keys of earlier ones, or no rows but their own.
func Tail(layers []Layer) int {
	n := len(layers)
	for n > 0 && (layers[n-1].KVHeads == 0 || layers[n-1].Keeps.Kind == Shared) && len(layers[n-1].States) == 0 {
		n--
	}
	return n
}
