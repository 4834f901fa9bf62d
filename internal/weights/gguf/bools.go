package gguf

import "slices"

// Bools returns an array of bools, or of numbers that are 0 or 1; false: it is another value.
func (v Value) Bools() ([]bool, bool) {
	switch x := v.Any().(type) {
	case []bool:
		return slices.Clone(x), true
	case []int32:
		return zeroOrOne(x)
	case []uint32:
		return zeroOrOne(x)
	}
	return nil, false
}

func zeroOrOne[T int32 | uint32](x []T) ([]bool, bool) {
	out := make([]bool, len(x))
	for i, v := range x {
		if v > 1 || v < 0 {
			return nil, false
		}
		out[i] = v == 1
	}
	return out, true
}
