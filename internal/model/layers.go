package model

import (
	"slices"

	"grove/internal/kv"
	"grove/internal/weights/gguf"
)

// maxLayers is the largest number of layers of a model.
const maxLayers = 128

// LayerCounts returns the hyperparameter arch.name of each of block_count layers, from low to high. The file gives one
// number for all layers, or an array of one for each. A missing one is an error.
func (l *Loader) LayerCounts(name string, low, high int) []int {
	counts, ok := l.layerCounts(name, low, high)
	if !ok {
		l.fail("%s is missing", l.key(name))
	}
	return counts
}

// LayerCountsOr returns what [Loader.LayerCounts] does, or other for every layer where the hyperparameter is missing.
func (l *Loader) LayerCountsOr(name string, other, low, high int) []int {
	counts, ok := l.layerCounts(name, low, high)
	if !ok {
		return slices.Repeat([]int{other}, len(counts))
	}
	return counts
}

// layerCounts returns a value for each layer, whether or not the file has the key.
func (l *Loader) layerCounts(name string, low, high int) ([]int, bool) {
	layers := l.Count("block_count", 1, maxLayers)
	v, found := l.file.Lookup(l.key(name))
	if !found || v.Kind() != gguf.Array {
		n, ok := l.count(name, low, high)
		return slices.Repeat([]int{n}, layers), ok
	}
	none := slices.Repeat([]int{low}, layers)
	if v.Len() != layers {
		l.fail("%s has %d values; there are %d layers", l.key(name), v.Len(), layers)
		return none, true
	}
	counts, _, err := l.file.Ints(l.key(name))
	if err != nil {
		l.wrap(err)
		return none, true
	}
	for i, n := range counts {
		if n < low || n > high {
			l.fail("value %d of %s is %d; it must be %d to %d", i, l.key(name), n, low, high)
			return none, true
		}
	}
	return counts, true
}

// QuantilesIf returns the hyperparameter arch.name, an array of a value for each layer: quantiles of the normal distribution, of which those of
// shares up to a half, minus infinity among them, are 0. It is nil where the hyperparameter is missing.
func (l *Loader) QuantilesIf(name string) []float32 {
	values, ok, err := l.file.Floats(l.key(name))
	switch {
	case err != nil:
		l.wrap(err)
		return nil
	case !ok:
		return nil
	case len(values) != len(l.info.Layers):
		l.fail("%s has %d values; there are %d layers", l.key(name), len(values), len(l.info.Layers))
		return nil
	}
	out := make([]float32, len(values))
	for i, v := range values {
		if v != v || v > maxQuantile {
			l.fail("value %d of %s is %v; it must be at most %v", i, l.key(name), v, maxQuantile)
		}
		out[i] = max(v, 0)
	}
	return out
}

// maxQuantile is the number of standard deviations beyond which a float32 has no normal values.
const maxQuantile = 14

// LayerHyperparameters is [Loader.Hyperparameters] for models whose layers differ: the number of heads, of heads of keys,
// and of inner values of the feed-forward block may be given for each layer. layers has the hyperparameters of each; s has
// the largest. A layer without heads of keys has no attention (Heads and KVHeads are 0, and nothing is kept); one whose FFN is 0 has no
// feed-forward block. What a layer without attention has instead is for the architecture to say.
func (l *Loader) LayerHyperparameters() (s Hyperparameters, layers []Hyperparameters) {
	heads := l.LayerCountsOr("attention.head_count", 0, 0, maxHeads)
	kvHeads := slices.Clone(heads)
	if _, ok := l.file.Lookup(l.key("attention.head_count_kv")); ok {
		kvHeads = l.LayerCounts("attention.head_count_kv", 0, maxHeads)
	}
	ffn := l.LayerCountsOr("feed_forward_length", 0, 0, maxFFN)
	for i := range heads {
		if heads[i] == 0 || kvHeads[i] == 0 {
			heads[i], kvHeads[i] = 0, 0
		}
		l.checkHeads(heads[i], kvHeads[i])
	}
	s = Hyperparameters{Heads: slices.Max(heads), KVHeads: slices.Max(kvHeads), FFN: slices.Max(ffn)}
	l.shared(&s)
	for i := range s.Layers {
		one := s
		one.Heads, one.KVHeads, one.FFN = heads[i], kvHeads[i], ffn[i]
		layers = append(layers, one)
		if l.info.Layers[i].KVHeads = one.KVHeads; one.KVHeads == 0 {
			l.info.Layers[i] = kv.Layer{}
		}
	}
	return s, layers
}

// LayerFloatsOr returns the hyperparameter arch.name of each layer, a finite number for each or one for all, or other for every
// layer where it is missing.
func (l *Loader) LayerFloatsOr(name string, other float32) []float32 {
	if _, ok := l.file.Lookup(l.key(name)); !ok || !l.OK() {
		return slices.Repeat([]float32{other}, len(l.info.Layers))
	}
	values := slices.Clone(l.LayerFloats(l.key(name)))
	if !l.OK() {
		return make([]float32, len(l.info.Layers))
	}
	return values
}
