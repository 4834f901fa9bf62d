package kv

import (
	"fmt"

	"grove/forest"
)

// Pad gives an empty sequence a trunk of n tokens whose keys and values are small numbers of no
// meaning, for timing steps at a depth. They are never shared. It returns an error, and changes nothing,
// where they do not fit.
func (k *Cache) Pad(s forest.Seq, n int) error {
	if have := k.Forest.Len(s); have != 0 {
		return fmt.Errorf("kv: padding a sequence of %d tokens", have)
	}
	for g := range k.groups {
		if need := pagesOf(n) - k.firstSeen(g, n); need > k.groups[g].pool.available() {
			return fmt.Errorf("kv: %d pages of %d tokens: %w", need, PageTokens, ErrFull)
		}
	}
	if err := k.Forest.Extend(s, n); err != nil {
		return err
	}
	t := &k.seqs[s]
	t.private = 0
	for g := range k.groups {
		pool := k.groups[g].pool
		for p := range pagesOf(n) {
			id := int32(noPage)
			if p >= k.firstSeen(g, n) {
				id, _ = pool.take()
				page := pool.bytes(id)
				for i := range page {
					page[i] = padByte
				}
			}
			t.tables[g] = append(t.tables[g], id)
		}
	}
	t.entries = append(t.entries, make([]forest.Entry, n)...)
	t.hashes = append(t.hashes, make([]digest, n/PageTokens)...)
	return nil
}

// padByte makes a small positive number of every cache type when it is repeated.
const padByte = 0x11
