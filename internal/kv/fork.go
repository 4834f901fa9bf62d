package kv

import (
	"fmt"

	"grove/internal/forest"
)

// Fork opens a sequence whose trunk is the trunk of s and the path to n, a live node or [forest.Trunk]. Both
// sequences share the full pages of the trunk; its last, partial page and the path are copied: 64 + len(path)
// tokens at most. s keeps its trunk and its live nodes; the fork has no live nodes, and reads the blocks that
// [Cache.Select] chose for s.
//
// Errors: [forest.ErrSeq], [forest.ErrNode], a row of the path that has not run every layer, [ErrSeqs] where as many
// sequences are open as the cache was made for, and [ErrFull]. Nothing has changed then. Forks are closed as other
// sequences are.
func (k *Cache) Fork(s forest.Seq, n forest.Node) (forest.Seq, error) {
	path, err := k.Forest.Committable(s, n)
	if err == nil {
		err = k.canFork(&k.seqs[s], len(path))
	}
	first := 0
	if err == nil {
		first, err = k.canFollow(&k.seqs[s], path)
	}
	if err == nil {
		err = k.canForkState(&k.seqs[s], path, first)
	}
	if err != nil {
		return -1, err
	}
	c := k.NewSeq("")
	from, to := &k.seqs[s], &k.seqs[c]
	to.salt, to.own, to.private, to.adapter, to.adapted = from.salt, from.own, from.private, from.adapter, from.adapted
	to.entries = append(to.entries[:0], from.entries...)
	to.hashes = append(to.hashes[:0], from.hashes...)
	to.copyLists(from)
	k.forkSource(to, from)
	k.Forest.Inherit(c, s, nil)
	for g := range k.groups {
		for _, id := range from.tables[g][:pagesOf(k.kept(from, g, len(from.entries)))] {
			if id != noPage {
				k.groups[g].pool.retain(id)
			}
			to.tables[g] = append(to.tables[g], id)
		}
	}
	err = k.ownLast(to, len(to.entries))
	if err == nil {
		err = k.append(c, path)
	}
	if err == nil {
		err = k.Forest.Extend(c, len(to.entries))
	}
	if err != nil {
		panic(err) // canFork has made sure of the pages
	}
	k.Forest.Inherit(c, s, path)
	k.forkState(to, from, path, first)
	return c, nil
}

// canFork returns an error where a fork of a trunk, with a path behind it, has no room: a sequence, and in
// each group the pages that the path fills and one for a partial last page.
func (k *Cache) canFork(t *trunk, path int) error {
	if open := k.Forest.Seqs(); open >= k.config.Seqs {
		return fmt.Errorf("kv: forking beside %d open sequences: %w; close one, or make the cache for more than %d", open, ErrSeqs, k.config.Seqs)
	}
	for g := range k.groups {
		n := k.kept(t, g, len(t.entries))
		need := pagesOf(n+path) - pagesOf(n)
		if n%PageTokens != 0 {
			need++
		}
		if free := k.groups[g].pool.available(); need > free {
			return fmt.Errorf("kv: forking a trunk of %d tokens needs %d pages and %d are free: %w", len(t.entries)+path, need, free, ErrFull)
		}
	}
	return nil
}
