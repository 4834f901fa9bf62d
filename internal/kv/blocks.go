package kv

import (
	"fmt"
	"slices"

	"grove/internal/forest"
)

// Blocks is the list of the blocks of 64 indices of a trunk that the rows of its sequence read in a layer, head by
// head, and the pages that hold them. The usual list is a range: every block. What a layer keeps ([Keep.Span]) limits
// each row besides. Valid until the next verb; read only.
type Blocks struct {
	tokens int
	table  []int32 // the page of each block
	at     int     // offset of the layer in a page
	head   int     // bytes of a head
	keys   int     // of these, those of its keys
	lists  []list
	pool   *pool
}

// list is the blocks below end that are read, ascending; blocks from end on are all read.
type list struct {
	blocks []int32
	end    int32
}

func (l *list) has(block int32) bool {
	if block >= l.end {
		return true
	}
	_, found := slices.BinarySearch(l.blocks, block)
	return found
}

// Blocks returns the blocks of its trunk that the rows of an open sequence read in a layer.
func (k *Cache) Blocks(s forest.Seq, layer int) (b Blocks) {
	t, place, size := &k.seqs[s], &k.places[layer], k.config.Layers[layer].HeadSize()
	b = Blocks{
		tokens: k.kept(t, place.group, len(t.entries)), table: t.tables[place.group], pool: k.groups[place.group].pool,
		at: place.inPage, keys: k.Format.KeyBytes(size.Key),
	}
	b.head = b.keys + k.Format.ValueBytes(size.Value)
	if t.lists != nil {
		b.lists = t.lists[layer]
	}
	return b
}

// Len returns the number of tokens of the trunk that have keys in the layer.
func (b *Blocks) Len() int { return b.tokens }

// Reads reports whether a block is in the list of a head.
func (b *Blocks) Reads(head, block int) bool {
	return b.lists == nil || b.lists[head].has(int32(block))
}

// Page returns a head's keys and values in a block, which [kernel.CacheFormat] describes, and nil where the trunk has
// ended. The block must lie within the layer's window.
func (b *Blocks) Page(head, block int) (keys, values []byte) {
	if block*PageTokens >= b.tokens {
		return nil, nil
	}
	at := b.at + head*b.head
	page := b.pool.bytes(b.table[block])[at : at+b.head : at+b.head]
	return page[:b.keys:b.keys], page[b.keys:]
}

// Same reports whether a block of two trunks, in the same layer, is one page, which is read once for both. It is false
// where either has no such page.
func (b *Blocks) Same(o *Blocks, block int) bool {
	return block < len(b.table) && block < len(o.table) && b.table[block] == o.table[block] && b.table[block] != noPage
}

// Select limits what the rows of a sequence read in a head of a layer: of the blocks that are full now, those listed,
// ascending, and every later one. nil is all blocks again. The keys of other blocks stay stored.
//
// The grade is lossy: the text is another than without. Pages that fill after a selection have no name, so that no
// other sequence finds them. A fork has the selections of its origin; [Cache.Truncate] keeps them for the blocks that
// stay.
func (k *Cache) Select(s forest.Seq, layer, head int, blocks []int32) error {
	if _, err := k.Forest.Index(s, forest.Trunk); err != nil {
		return err
	}
	if layer < 0 || layer >= len(k.places) || head < 0 || head >= k.config.Layers[layer].KVHeads {
		return fmt.Errorf("kv: selecting blocks of head %d of layer %d: the model has no such head", head, layer)
	}
	t := &k.seqs[s]
	if n := len(t.entries); k.config.Layers[layer].Gaps && k.Forest.Kept(s, n) < n {
		return fmt.Errorf("kv: selecting blocks of layer %d, in which %d of %d tokens have no keys; its blocks are not those of the text", layer, n-k.Forest.Kept(s, n), n)
	}
	full := int32(len(t.entries) / PageTokens)
	for i, b := range blocks {
		if b < 0 || b >= full || i > 0 && b <= blocks[i-1] {
			return fmt.Errorf("kv: selecting block %d of layer %d: blocks ascend from 0 to %d", b, layer, full-1)
		}
	}
	if t.lists == nil {
		if blocks == nil {
			return nil
		}
		t.lists = make([][]list, len(k.places))
		for l := range t.lists {
			t.lists[l] = make([]list, k.config.Layers[l].KVHeads)
		}
	}
	t.lists[layer][head] = list{}
	if blocks != nil {
		t.lists[layer][head] = list{slices.Clone(blocks), full}
	}
	if t.private == noPage || t.private > int(full) {
		t.private = int(full)
	}
	return nil
}

// selects reports whether a selection is in force.
func (t *trunk) selects() bool {
	for _, heads := range t.lists {
		for _, l := range heads {
			if l.end > 0 {
				return true
			}
		}
	}
	return false
}

// cutLists ends the selections at a block.
func (t *trunk) cutLists(end int) {
	for _, heads := range t.lists {
		for h := range heads {
			heads[h].end = min(heads[h].end, int32(end))
		}
	}
}

// copyLists takes over the selections of another trunk.
func (t *trunk) copyLists(from *trunk) {
	t.lists = nil
	for _, heads := range from.lists {
		t.lists = append(t.lists, slices.Clone(heads))
	}
}
