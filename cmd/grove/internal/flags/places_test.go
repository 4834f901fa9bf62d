package flags

import (
	"slices"
	"testing"
)

// TestPlaces reads lists of numbers and ranges, of six things.
func TestPlaces(t *testing.T) {
	for text, want := range map[string][]int{
		"3": {3}, "-1": {-1}, "0,4..5": {0, 4, 5}, "first..last": {0, 1, 2, 3, 4, 5}, "-2..-1,1": {4, 5, 1}, "last": {-1}, "2..2": {2}, "77": {77},
		"": nil, "a": nil, "1..": nil, "4..2": nil, "0..6": nil, "-7..0": nil, "1,,2": nil, "1.5": nil,
	} {
		var p Places
		err := p.UnmarshalText([]byte(text))
		var got []int
		if err == nil {
			got, err = p.Of(6)
		}
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}
