package kv

import (
	"fmt"

	"grove/internal/forest"
)

// Pad gives an empty sequence a trunk of n tokens whose keys and values are small constants, to time steps at
// a depth. Where layers read a source, it gives the sequence one of as many tokens. Its pages are never shared. Errors: [ErrFull], [forest.ErrSeq], [forest.ErrContext], and a sequence
// that is not empty. Nothing has changed then.
func (k *Cache) Pad(s forest.Seq, n int) error {
	if have := k.Forest.Len(s); have != 0 {
		return fmt.Errorf("kv: padding a sequence of %d tokens; it must be empty", have)
	}
	for g := range k.groups {
		if need := pagesOf(n) - k.firstSeen(g, n); need > k.groups[g].pool.available() {
			return fmt.Errorf("kv: %d pages of %d tokens: %w", need, PageTokens, ErrFull)
		}
	}
	if err := k.padSource(s, n); err != nil {
		return err
	}
	state, err := k.padState(n)
	if err == nil {
		err = k.Forest.Extend(s, n)
	}
	if err != nil {
		if state != NoState {
			k.states.drop(&state)
		}
		return err
	}
	t := &k.seqs[s]
	t.private = 0
	if state != NoState {
		k.states.setBase(&t.state, state, n)
	}
	for g := range k.groups {
		pool := k.groups[g].pool
		for p := range pagesOf(n) {
			id := int32(noPage)
			if p >= k.firstSeen(g, n) {
				id, _ = pool.take()
				fill(pool.bytes(id))
			}
			t.tables[g] = append(t.tables[g], id)
		}
	}
	t.entries = append(t.entries, make([]forest.Entry, n)...)
	t.hashes = append(t.hashes, make([]digest, n/PageTokens)...)
	return nil
}

func fill(page []byte) {
	for i := range page {
		page[i] = padByte
	}
}

// padState returns a state behind n rows of the same constants; NoState where there is none.
func (k *Cache) padState(n int) (id int32, err error) {
	if k.states == nil || n == 0 {
		return NoState, nil
	}
	if id, err = k.states.take(); err == nil {
		fill(k.states.pool.bytes(id))
	}
	return id, err
}

// padByte, repeated, is a small positive number of every cache type.
const padByte = 0x11
