package flags

import (
	"slices"
	"testing"
)

// TestStates reads lists of states of a model with six layers.
func TestStates(t *testing.T) {
	for text, want := range map[string]struct {
		layers []int
		final  bool
	}{
		"final": {nil, true}, "0": {[]int{0}, false}, "last,final,0": {[]int{0, 6}, true}, "final,final": {nil, true}, "2..4,3,-2": {[]int{2, 3, 4, 5}, false}, "-7": {[]int{0}, false},
	} {
		var s States
		err := s.UnmarshalText([]byte(text))
		layers, final, err2 := s.Of(6)
		if err != nil || err2 != nil || !slices.Equal(layers, want.layers) || final != want.final || s.String() != text {
			t.Errorf("%q: %v, %v, %v, %v; want %v", text, layers, final, err, err2, want)
		}
	}
	for text, want := range map[string]string{
		"": `"" is no number and no range such as 4..7`, "finale": `"finale" is no number and no range such as 4..7`, "final,": `"" is no number and no range such as 4..7`, "0..7": "0..7: of 7, numbers from 0",
		"7": "7; the model has states from 0 (the embeddings) to 6 (behind its layers)", "-8,final": "-8; the model has states from 0 (the embeddings) to 6 (behind its layers)",
	} {
		var s States
		err := s.UnmarshalText([]byte(text))
		if err == nil {
			_, _, err = s.Of(6)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}

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
