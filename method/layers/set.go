package layers

import (
	"fmt"
	"strconv"
	"strings"

	"grove/forest"
)

// Parse reads a set of layers as a user writes it: numbers from 0 and ranges of them that rise, with a + between them, such as 3-5+8. A layer that is
// named twice is an error, and so is one from [forest.MaxLayers] up.
func Parse(s string) (set forest.Layers, err error) {
	for _, part := range strings.Split(s, "+") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last >= forest.MaxLayers {
			return forest.Layers{}, fmt.Errorf("layers: %q names no layers; use numbers from 0 to %d and ranges, such as 3-5+8", part, forest.MaxLayers-1)
		}
		more := forest.LayerRange(first, last+1)
		if set.Minus(more) != set {
			return forest.Layers{}, fmt.Errorf("layers: %q names a layer that is named before; name each once", part)
		}
		set = set.Union(more)
	}
	return set, nil
}

// Format returns the one spelling of a set that [Parse] reads; "" for the empty set.
func Format(set forest.Layers) string {
	var parts []string
	for l := 0; l < forest.MaxLayers; l++ {
		if !set.Has(l) {
			continue
		}
		first := l
		for l+1 < forest.MaxLayers && set.Has(l+1) {
			l++
		}
		part := strconv.Itoa(first)
		if l > first {
			part += "-" + strconv.Itoa(l)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "+")
}

// Record returns a set of a model of so many layers as it is kept between runs.
func Record(layers int, set forest.Layers) []byte {
	return fmt.Appendf(nil, "%d:%s", layers, Format(set))
}

// ParseRecord reads what [Record] returned. Errors: another number of layers, a set that makes no sense or has layers beyond the model's.
func ParseRecord(b []byte, layers int) (set forest.Layers, err error) {
	const longest = 512 // longer than any set is spelled
	of, spelled, found := strings.Cut(string(b[:min(len(b), longest)]), ":")
	if !found || of != strconv.Itoa(layers) {
		return set, fmt.Errorf("layers: the record %.20q is of another model; it must begin with %q", b, fmt.Sprintf("%d:", layers))
	}
	if spelled == "" {
		return set, nil
	}
	if set, err = Parse(spelled); err == nil && set.Minus(forest.LayerRange(0, layers)).Len() > 0 {
		set, err = forest.Layers{}, fmt.Errorf("layers: the record names layers %s of a model of %d layers", spelled, layers)
	}
	return set, err
}
