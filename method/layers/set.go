package layers

import (
	"fmt"
	"strconv"
	"strings"

	"grove/internal/forest"
)

// Set is a set of parts of layers to pass over: of attention parts and of feed-forward parts. A layer in both is passed over as a whole.
type Set [2]forest.Layers

// The parts of a layer, as places in a [Set], and the letters before them in a spelling.
const (
	Attention = iota
	FeedForward
)

const letters = "af"

// Whole returns the set of whole layers.
func Whole(l forest.Layers) Set { return Set{l, l} }

// whole returns the layers of which the set has both parts.
func (s Set) whole() forest.Layers { return s[Attention].Minus(s[Attention].Minus(s[FeedForward])) }

// Apply makes a row pass over the set.
func (s Set) Apply(r *forest.Row) {
	r.Skip = s.whole()
	r.SkipAttention, r.SkipFeedForward = s[Attention].Minus(r.Skip), s[FeedForward].Minus(r.Skip)
}

// Within returns the parts of the set that are of the layers first to end-1.
func (s Set) Within(first, end int) Set {
	for k, l := range s {
		s[k] = l.Minus(l.Minus(forest.LayerRange(first, end)))
	}
	return s
}

// Layers returns how many layers the set saves, of a model of which attention has a share of a layer ([method.Size]).
func (s Set) Layers(share float64) float64 {
	attention, feed := float64(s[Attention].Len()), float64(s[FeedForward].Len())
	return feed + share*(attention-feed)
}

// Parse reads a set as a user writes it: layers from 0 and ranges of them that rise, with a + between them, such as 3-5+8. Behind an a only the attention parts are
// meant, and behind an f the feed-forward parts. A part that is named twice is an error, and so is a layer from [forest.MaxLayers] up.
func Parse(s string) (set Set, err error) {
	for _, part := range strings.Split(s, "+") {
		kinds, layers := Set{Attention: forest.LayerRange(0, forest.MaxLayers), FeedForward: forest.LayerRange(0, forest.MaxLayers)}, part
		if len(part) > 0 && strings.Contains(letters, part[:1]) {
			kinds[1-strings.Index(letters, part[:1])], layers = forest.Layers{}, part[1:]
		}
		from, to, isRange := strings.Cut(layers, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last >= forest.MaxLayers {
			return Set{}, fmt.Errorf("layers: %q names no layers; use numbers from 0 to %d and ranges, such as 3-5+8, and an a or an f before those of which only "+
				"attention or the feed-forward part is passed over", part, forest.MaxLayers-1)
		}
		for k, more := range kinds.Within(first, last+1) {
			if set[k].Minus(more) != set[k] {
				return Set{}, fmt.Errorf("layers: %q names a layer that is named before; name each once", part)
			}
			set[k] = set[k].Union(more)
		}
	}
	return set, nil
}

// Format returns the one spelling of a set that [Parse] reads; "" for the empty set.
func Format(set Set) string {
	whole := set.whole()
	parts := spell(nil, "", whole)
	for k, l := range set {
		parts = spell(parts, letters[k:k+1], l.Minus(whole))
	}
	return strings.Join(parts, "+")
}

// spell appends ranges of layers behind a letter.
func spell(parts []string, letter string, set forest.Layers) []string {
	for l := 0; l < forest.MaxLayers; l++ {
		if !set.Has(l) {
			continue
		}
		first := l
		for l+1 < forest.MaxLayers && set.Has(l+1) {
			l++
		}
		part := letter + strconv.Itoa(first)
		if l > first {
			part += "-" + strconv.Itoa(l)
		}
		parts = append(parts, part)
	}
	return parts
}

// Record returns a set of a model of so many layers as it is kept between runs.
func Record(layers int, set Set) []byte {
	return fmt.Appendf(nil, "%d:%s", layers, Format(set))
}

// ParseRecord reads what [Record] returned. Errors: another number of layers, a set that makes no sense or has layers beyond the model's.
func ParseRecord(b []byte, layers int) (set Set, err error) {
	const longest = 1024 // longer than any set is spelled
	of, spelled, found := strings.Cut(string(b[:min(len(b), longest)]), ":")
	if !found || of != strconv.Itoa(layers) {
		return set, fmt.Errorf("layers: the record %.20q is of another model; it must begin with %q", b, fmt.Sprintf("%d:", layers))
	}
	if spelled == "" {
		return set, nil
	}
	if set, err = Parse(spelled); err == nil && set.Within(0, layers) != set {
		set, err = Set{}, fmt.Errorf("layers: the record names layers %s of a model of %d layers", spelled, layers)
	}
	return set, err
}
