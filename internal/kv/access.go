package kv

import (
	"slices"

	"grove/internal/forest"
	"grove/internal/kernel"
)

// layerPage returns the bytes of a layer in a page of the trunk.
func (k *Cache) layerPage(t *trunk, layer, page int) []byte {
	pl := &k.places[layer]
	pool := k.groups[pl.group].pool
	return pool.bytes(t.tables[pl.group][page])[pl.inPage : pl.inPage+pl.bytes]
}

// kept returns how many of the first n tokens of a trunk have keys in a group. Those behind the trunk's end count as if they had.
func (k *Cache) kept(t *trunk, g, n int) int {
	if !k.groups[g].gaps {
		return n
	}
	return k.Forest.Kept(t.seq, n)
}

// layerScratch returns the bytes of a layer in a page of scratch.
func (k *Cache) layerScratch(layer, page int) []byte {
	pl := &k.places[layer]
	at := page*k.scratchBytes + pl.inScratch
	return k.scratch[at : at+pl.bytes]
}

// KeysLayer returns the layer whose keys and values a layer reads: itself, or of a shared layer the earlier one.
func (k *Cache) KeysLayer(layer int) int {
	if keeps := k.config.Layers[layer].Keeps; keeps.Kind == Shared {
		return keeps.From
	}
	return layer
}

// Compare orders sequences by their pages: sequences that share a prefix are neighbours.
func (k *Cache) Compare(a, b forest.Seq) int {
	if len(k.groups) == 0 {
		return 0
	}
	return slices.Compare(k.seqs[a].tables[0], k.seqs[b].tables[0])
}

// Scratch returns the keys and values that a head of a layer holds of 64 consecutive slots of live rows.
// [kernel.CacheFormat] describes them. Valid as long as the cache; read only.
func (k *Cache) Scratch(layer, page, head int) (keys, values []byte) {
	return k.head(layer, k.layerScratch(layer, page), head)
}

// Put rounds and writes the key and the value of one head of a live row (N4), in a layer that is not shared. It may run for different rows and
// heads at a time.
func (k *Cache) Put(layer int, slot int32, head int, key, value []float32) kernel.PutResult {
	keys, values := k.Scratch(layer, int(slot)/PageTokens, head)
	return k.Format.Put(keys, values, int(slot)%PageTokens, k.config.Layers[layer].HeadSize(), key, value)
}

// head returns a head's keys and values in a layer's bytes of a page.
func (k *Cache) head(layer int, page []byte, head int) (keys, values []byte) {
	size := k.config.Layers[layer].HeadSize()
	kb := k.Format.KeyBytes(size.Key)
	stride := kb + k.Format.ValueBytes(size.Value)
	b := page[head*stride : (head+1)*stride]
	return b[:kb], b[kb:]
}
