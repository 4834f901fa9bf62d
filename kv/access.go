package kv

import (
	"slices"

	"grove/forest"
	"grove/internal/kernel"
)

// layerPage returns the bytes of a layer in a page of the trunk.
func (k *Cache) layerPage(t *trunk, layer, page int) []byte {
	pl := &k.places[layer]
	pool := k.groups[pl.group].pool
	return pool.bytes(t.tables[pl.group][page])[pl.inPage : pl.inPage+pl.bytes]
}

// layerScratch returns the bytes of a layer in a page of scratch.
func (k *Cache) layerScratch(layer, page int) []byte {
	pl := &k.places[layer]
	at := page*k.scratchBytes + pl.inScratch
	return k.scratch[at : at+pl.bytes]
}

// Page returns the keys and values that a layer holds of 64 consecutive tokens of a trunk, those of
// head 0 first; [kernel.CacheFormat] describes them. The page must lie within the trunk and the
// layer's window. Valid until the next verb; read only.
func (k *Cache) Page(s forest.Seq, layer, page int) []byte {
	return k.layerPage(&k.seqs[s], layer, page)
}

// Same reports whether a page of two trunks is one and the same in a layer: what both hold of its tokens is read
// once. It is false where either has no such page.
func (k *Cache) Same(layer, page int, a, b forest.Seq) bool {
	g := k.places[layer].group
	ta, tb := k.seqs[a].tables[g], k.seqs[b].tables[g]
	return page < len(ta) && page < len(tb) && ta[page] == tb[page] && ta[page] != noPage
}

// Compare orders sequences so that those which share pages stand side by side, the more of them the nearer.
func (k *Cache) Compare(a, b forest.Seq) int {
	return slices.Compare(k.seqs[a].tables[0], k.seqs[b].tables[0])
}

// Scratch returns the keys and values that a layer holds of 64 consecutive slots of live rows.
func (k *Cache) Scratch(layer, page int) []byte { return k.layerScratch(layer, page) }

// Put rounds and writes the key and the value of one head of a live row (N4).
func (k *Cache) Put(layer int, slot int32, head int, key, value []float32) kernel.PutResult {
	keys, values := k.Head(layer, k.layerScratch(layer, int(slot)/PageTokens), head)
	return k.Format.Put(keys, values, int(slot)%PageTokens, k.config.Layers[layer].HeadSize(), key, value)
}

// Head returns a head's keys and values in what [Cache.Page] or [Cache.Scratch] gave for a layer.
func (k *Cache) Head(layer int, page []byte, head int) (keys, values []byte) {
	size := k.config.Layers[layer].HeadSize()
	kb := k.Format.KeyBytes(size.Key)
	stride := kb + k.Format.ValueBytes(size.Value)
	b := page[head*stride : (head+1)*stride]
	return b[:kb], b[kb:]
}
