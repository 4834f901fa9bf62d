package reading

import (
	"fmt"
	"strconv"
	"strings"

	"grove/internal/forest"
	"grove/internal/model"
)

// masksOf returns the mask that a text names: causal, full, "" (by the model), or a list of masks of layers and ranges of layers, such as causal:0..11,full:12..last, in
// which a place without a mask has that of the place before, and layers that are not named have the model's own. causal are the layers of a full mask in which tokens see what is
// before them.
func masksOf(text string, info *model.Info) (mask Mask, causal forest.Layers, err error) {
	if m, known := masks[text]; known {
		return m, causal, nil
	}
	n := len(info.Layers)
	if !info.Encoder && !info.Full {
		causal = forest.LayerRange(0, n)
	}
	var named forest.Layers
	for one := range strings.SplitSeq(text, ",") {
		if name, place, ok := strings.Cut(one, ":"); ok {
			mask, one = masks[name], place
		}
		if mask == ByModel {
			return mask, causal, fmt.Errorf("mask %.80q is not known; causal, full, and masks of layers such as causal:0..11,full:12..last are", text)
		}
		from, to, err := layersOf(one, n)
		if err != nil {
			return mask, causal, fmt.Errorf("mask %.80q: %w", text, err)
		}
		of := forest.LayerRange(from, to+1)
		if of.Minus(named) != of {
			return mask, causal, fmt.Errorf("mask %.80q: a layer of %s has two masks", text, one)
		}
		named = named.Union(of)
		if causal = causal.Minus(of); mask == Causal {
			causal = causal.Union(of)
		}
	}
	if causal.Len() == n {
		return Causal, forest.Layers{}, nil
	}
	return Full, causal, nil
}

// layersOf returns the first and the last layer of a place among n: a number, first, last, or two of these with .. between. Numbers below 0 count from the end.
func layersOf(place string, n int) (from, to int, err error) {
	first, last, isRange := strings.Cut(place, "..")
	if !isRange {
		last = first
	}
	var ends [2]int
	for i, end := range []string{first, last} {
		switch end {
		case "first":
		case "last":
			ends[i] = n - 1
		default:
			if ends[i], err = strconv.Atoi(end); err != nil {
				return 0, 0, fmt.Errorf("%.40q is no layer and no range such as 4..7", place)
			}
			if ends[i] < 0 {
				ends[i] += n
			}
		}
	}
	if ends[0] < 0 || ends[1] >= n || ends[1] < ends[0] {
		return 0, 0, fmt.Errorf("%.40s: there are %d layers, from 0", place, n)
	}
	return ends[0], ends[1], nil
}
