package kv

import (
	"fmt"

	"grove/internal/forest"
)

// Retain keeps the tokens of a trunk at some rising indices, and drops the others and all live nodes. The tokens that stay move together; their keys have the positions that
// they had. The text that is left is none that others could share: pages from the first dropped token on have no name. Errors: [forest.ErrSeq]; indices that do not rise within
// the trunk; a model with states or sliding windows, and a sequence that selects blocks or skips layers, which go by index; [ErrFull] where a page that others use is to
// change and none is free for a copy. Nothing has changed then.
func (k *Cache) Retain(s forest.Seq, indices []int32) error {
	if _, err := k.Forest.Index(s, forest.Trunk); err != nil {
		return err
	}
	t := &k.seqs[s]
	same := 0
	for i, at := range indices {
		if at < 0 || int(at) >= len(t.entries) || i > 0 && at <= indices[i-1] {
			return fmt.Errorf("kv: retaining index %d of a trunk of %d tokens: indices rise within it", at, len(t.entries))
		}
		if int(at) == i {
			same = i + 1
		}
	}
	if same < len(indices) {
		if err := k.moveTogether(s, indices, same); err != nil {
			return err
		}
	}
	return k.Truncate(s, len(indices))
}

// moveTogether copies the tokens at indices, of which the first ones are in their place, to the beginning of a trunk.
func (k *Cache) moveTogether(s forest.Seq, indices []int32, same int) error {
	t := &k.seqs[s]
	for g := range k.groups {
		if k.groups[g].keeps.Evicts() {
			return fmt.Errorf("kv: retaining tokens of a model with a sliding window: it counts indices")
		}
	}
	if k.states != nil || t.selects() || k.Forest.Lacks(s) {
		return fmt.Errorf("kv: retaining tokens of a sequence with states, selected blocks or skipped layers: these go by index")
	}
	first := same / PageTokens
	for g := range k.groups {
		for p := first; p < pagesOf(len(indices)); p++ {
			id, ok := k.groups[g].pool.own(t.tables[g][p])
			if !ok {
				return fmt.Errorf("kv: retaining %d tokens needs a copy of page %d: %w", len(indices), p, ErrFull)
			}
			t.tables[g][p] = id
		}
	}
	for i := same; i < len(indices); i++ {
		k.moveToken(t, i, int(indices[i]))
		t.entries[i] = t.entries[indices[i]]
	}
	if t.private == noPage || t.private > first {
		t.private = first
	}
	for p := first; p < len(t.hashes); p++ {
		prev := t.salt
		if p > 0 {
			prev = t.hashes[p-1]
		}
		t.hashes[p] = chain(prev, t.entries[p*PageTokens:(p+1)*PageTokens])
	}
	return nil
}

// moveToken copies the keys and values of a token of a trunk to another index, in every layer.
func (k *Cache) moveToken(t *trunk, to, from int) {
	for l := range k.places {
		if k.places[l].group == noGroup || k.KeysLayer(l) != l {
			continue
		}
		toPage, fromPage := k.layerPage(t, l, to/PageTokens), k.layerPage(t, l, from/PageTokens)
		layer := &k.config.Layers[l]
		for h := range layer.KVHeads {
			toKeys, toValues := k.head(l, toPage, h)
			fromKeys, fromValues := k.head(l, fromPage, h)
			k.Format.Copy(toKeys, toValues, to%PageTokens, fromKeys, fromValues, from%PageTokens, layer.HeadSize())
		}
	}
}
