package forest

import "math/bits"

// MaxLayers is the number of layers that a [Layers] can name.
const MaxLayers = 128

// Layers is a set of layers of a model; the zero value is the empty set.
type Layers [MaxLayers / 64]uint64

// LayerRange returns the set of the layers first to end-1, each below [MaxLayers].
func LayerRange(first, end int) Layers {
	var s Layers
	for l := first; l < end; l++ {
		s = s.With(l)
	}
	return s
}

// With returns the set with layer l, which is below [MaxLayers].
func (s Layers) With(l int) Layers {
	s[l/64] |= 1 << (l % 64)
	return s
}

// Has reports whether layer l is in the set.
func (s Layers) Has(l int) bool { return s[l/64]&(1<<(l%64)) != 0 }

// Union returns the layers of either set.
func (s Layers) Union(t Layers) Layers {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// Minus returns the layers of s that are not in t.
func (s Layers) Minus(t Layers) Layers {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

// First returns the first layer of the set, or -1 where it is empty.
func (s Layers) First() int {
	for i, w := range s {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Last returns the last layer of the set, or -1 where it is empty.
func (s Layers) Last() int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] != 0 {
			return i*64 + bits.Len64(s[i]) - 1
		}
	}
	return -1
}

// Len returns the number of layers in the set.
func (s Layers) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
