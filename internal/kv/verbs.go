package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// Commit appends n's path to the trunk, copies its keys and values, and drops the other branches. Errors: [forest.ErrSeq], [forest.ErrNode], a row of the path that has not run every layer,
// and [ErrFull]. Nothing has changed then.
func (k *Cache) Commit(s forest.Seq, n forest.Node) error {
	path, err := k.Forest.Committable(s, n)
	if err != nil || len(path) == 0 {
		return err
	}
	t := &k.seqs[s]
	first, err := k.canFollow(t, path)
	if err == nil {
		err = k.append(s, path)
	}
	if err != nil {
		return err
	}
	k.follow(t, path, first)
	err = k.Forest.Commit(s, n)
	k.dropDead(&t.state)
	return err
}

// append copies the rows of a path behind the trunk of s. The caller then extends the trunk of the forest.
func (k *Cache) append(s forest.Seq, path []int32) error {
	t := &k.seqs[s]
	length := len(t.entries)
	if err := k.reserve(t, length+len(path), length+len(path)); err != nil {
		return err
	}
	for i, slot := range path {
		at := length + i
		e, shared := k.Forest.SlotEntry(slot)
		if (!shared || t.selects()) && t.private == noPage {
			t.private = at / PageTokens
		}
		k.copySlot(t, at, slot)
		t.entries = append(t.entries, e)
		if len(t.entries)%PageTokens == 0 {
			k.seal(t)
		}
	}
	k.passWindows(t)
	return nil
}

// Reserve gives the trunk pages ahead of its tokens, so that later commits cannot fail: for n tokens in all, and
// in groups of a window, which free pages as they go, for near tokens. [Cache.Truncate] to the trunk's own
// length gives them back. Errors: [forest.ErrSeq], [ErrFull]. Nothing has changed then.
func (k *Cache) Reserve(s forest.Seq, n, near int) error {
	if _, err := k.Forest.Index(s, forest.Trunk); err != nil {
		return err
	}
	return k.reserve(&k.seqs[s], min(n, k.config.Context), min(near, k.config.Context))
}

// reserve gives the trunk pages for its first n tokens, in groups of a window for the first near. It takes no page
// where too few are free.
func (k *Cache) reserve(t *trunk, n, near int) error {
	for g := range k.groups {
		need := pagesOf(k.ahead(t, g, n, near)) - len(t.tables[g])
		if need > k.groups[g].pool.available() {
			return fmt.Errorf("kv: a trunk needs %d more pages of %d tokens and %d are free: %w", need, PageTokens, k.groups[g].pool.available(), ErrFull)
		}
	}
	for g := range k.groups {
		for len(t.tables[g]) < pagesOf(k.ahead(t, g, n, near)) {
			id, _ := k.groups[g].pool.take()
			t.tables[g] = append(t.tables[g], id)
		}
	}
	return nil
}

func (k *Cache) ahead(t *trunk, g, n, near int) int {
	if k.groups[g].keeps.Evicts() {
		return near
	}
	return k.kept(t, g, n)
}

// copySlot copies a slot of scratch to index at of the trunk, in every layer in which it has keys.
func (k *Cache) copySlot(t *trunk, at int, slot int32) {
	index := at
	ordinal, keyed := k.Forest.Ordinal(slot)
	for l := range k.places {
		if k.places[l].group == noGroup || k.KeysLayer(l) != l {
			continue
		}
		if at = index; k.config.Layers[l].Gaps {
			if at = ordinal; !keyed {
				continue
			}
		}
		from := k.layerScratch(l, int(slot)/PageTokens)
		to := k.layerPage(t, l, at/PageTokens)
		layer := &k.config.Layers[l]
		for h := range layer.KVHeads {
			toKeys, toValues := k.head(l, to, h)
			fromKeys, fromValues := k.head(l, from, h)
			k.Format.Copy(toKeys, toValues, at%PageTokens, fromKeys, fromValues, int(slot)%PageTokens, layer.HeadSize())
		}
	}
}

// seal gives the last page, which has become full, its hash.
func (k *Cache) seal(t *trunk) {
	p := len(t.entries)/PageTokens - 1
	prev := t.salt
	if p > 0 {
		prev = t.hashes[p-1]
	}
	h := chain(prev, t.entries[p*PageTokens:])
	t.hashes = append(t.hashes, h)
	if t.private != noPage && p >= t.private {
		return
	}
	for g := range k.groups {
		if id := t.tables[g][p]; id != noPage { // a file has none that a window has passed
			t.tables[g][p] = k.groups[g].pool.seal(id, h)
		}
	}
}

// chain returns the hash of a page's entries and of the hash of the page before.
func chain(prev digest, entries []forest.Entry) digest {
	var b [len(prev) + PageTokens*16]byte
	copy(b[:], prev[:])
	for i, e := range entries {
		binary.LittleEndian.PutUint64(b[len(prev)+16*i:], e.A)
		binary.LittleEndian.PutUint64(b[len(prev)+16*i+8:], e.B)
	}
	return sha256.Sum256(b[:])
}

// firstSeen returns the first page that a row at index n still sees in a group.
func (k *Cache) firstSeen(g, n int) int {
	low, _ := k.groups[g].keeps.Span(n, n)
	return low / PageTokens
}

// passWindows gives back the pages that no later row can see.
func (k *Cache) passWindows(t *trunk) {
	for g := range k.groups {
		table := t.tables[g]
		for p := k.firstSeen(g, len(t.entries)) - 1; p >= 0 && table[p] != noPage; p-- {
			k.groups[g].pool.drop(table[p])
			table[p] = noPage
		}
	}
}

// Drop ends a live node and its descendants; [forest.Trunk] ends all live nodes of the sequence. Errors:
// [forest.ErrSeq], [forest.ErrNode].
func (k *Cache) Drop(s forest.Seq, n forest.Node) error {
	err := k.Forest.Drop(s, n)
	if err == nil {
		k.dropDead(&k.seqs[s].state)
	}
	return err
}

// Truncate drops every live node and cuts the trunk to n tokens. Errors: [forest.ErrSeq]; n outside 0 to the
// trunk's length; [ErrEvicted] where a row at index n sees keys behind a sliding window that are no longer stored, or goes on
// from a state of recurrent layers that is not (those at multiples of [Cache.Cadence] usually are);
// [ErrFull] where the last page is shared and no page is free for a copy. Nothing has changed then. The caller
// may truncate to a shorter prefix; 0 always succeeds.
func (k *Cache) Truncate(s forest.Seq, n int) error {
	length := k.Forest.Len(s)
	if n < 0 || n > length || int(s) >= len(k.seqs) || s < 0 {
		return k.Forest.Truncate(s, n)
	}
	t := &k.seqs[s]
	if n == length {
		k.dropPages(t, n)
		k.truncateStates(t, n)
		return k.Forest.Truncate(s, n)
	}
	if err := k.truncatable(t, n); err != nil {
		return err
	}
	for g := range k.groups {
		for p := k.firstSeen(g, n); p < pagesOf(k.kept(t, g, n)) && t.tables[g][p] == noPage; p++ {
			t.tables[g][p], _ = k.groups[g].pool.share(t.hashes[p])
		}
	}
	k.dropPages(t, n)
	if err := k.ownLast(t, n); err != nil {
		panic(err) // canTruncate has made sure of the page
	}
	k.truncateStates(t, n)
	t.entries = t.entries[:n]
	t.hashes = t.hashes[:n/PageTokens]
	if t.private >= pagesOf(n) {
		t.private = noPage
	}
	t.cutLists(n / PageTokens)
	return k.Forest.Truncate(s, n)
}

// Rewind is [Cache.Truncate] to n tokens, or where that is refused to the last border of pages before them to which it is not. It
// returns the length. Errors: those of Truncate but [ErrEvicted] and [ErrFull].
func (k *Cache) Rewind(s forest.Seq, n int) (int, error) {
	for {
		err := k.Truncate(s, n)
		if err == nil || n <= 0 || !errors.Is(err, ErrEvicted) && !errors.Is(err, ErrFull) {
			return n, err
		}
		n = (n - 1) / PageTokens * PageTokens
	}
}

// truncatable returns the error of truncating a trunk to n tokens, fewer than it has.
func (k *Cache) truncatable(t *trunk, n int) error {
	for g := range k.groups {
		if err := k.canTruncate(t, g, n); err != nil {
			return err
		}
	}
	return k.canTruncateStates(t, n)
}

// canTruncate returns an error where a group lacks a page that a trunk of n tokens needs: those behind a window
// that a row at index n sees, and one for a partial last page that others use.
func (k *Cache) canTruncate(t *trunk, g, n int) error {
	pool, table := k.groups[g].pool, t.tables[g]
	free, kept := pool.available(), k.kept(t, g, n)
	first, end := k.firstSeen(g, n), pagesOf(kept)
	last := noPage // users of the last page, this one among them
	for p := first; p < end; p++ {
		id := table[p]
		if id != noPage {
			last = int(pool.pages[id].refs)
			continue
		}
		id, ok := pool.byHash[t.hashes[p]]
		if !ok || t.private != noPage && p >= t.private {
			return fmt.Errorf("kv: truncating to %d tokens: %w", n, ErrEvicted)
		}
		if last = int(pool.pages[id].refs) + 1; last == 1 {
			free-- // it is idle
		}
	}
	for _, id := range table[end:] {
		if id != noPage && pool.pages[id].refs == 1 {
			free++
		}
	}
	if kept%PageTokens != 0 && last > 1 && free < 1 {
		return fmt.Errorf("kv: a trunk of %d tokens needs a copy of its last page: %w", n, ErrFull)
	}
	return nil
}

// ownLast replaces the last, partial page of n tokens, in each group, by one that is the trunk's alone: a page that
// others use, or find by its hash, must not change (K2).
func (k *Cache) ownLast(t *trunk, n int) error {
	for g := range k.groups {
		kept := k.kept(t, g, n)
		if kept%PageTokens == 0 {
			continue
		}
		id, ok := k.groups[g].pool.own(t.tables[g][kept/PageTokens])
		if !ok {
			return fmt.Errorf("kv: a trunk of %d tokens needs a copy of its last page: %w", n, ErrFull)
		}
		t.tables[g][kept/PageTokens] = id
	}
	return nil
}

// Reuse extends a trunk by the pages of ids that are stored in every group, the longest prefix of them, and
// returns the trunk's length. At least one id is left over: its row gives the logits. A trunk that is not empty
// must be a prefix of ids; one that ends within a page, or has private pages, is left as it is. Errors:
// [forest.ErrSeq], and live rows.
func (k *Cache) Reuse(s forest.Seq, ids []token.ID) (int, error) {
	if _, err := k.Forest.Index(s, forest.Trunk); err != nil {
		return 0, err
	}
	length := k.Forest.Len(s)
	if live := k.Forest.Live(s); live != 0 {
		return 0, fmt.Errorf("kv: reusing a prefix for a sequence with %d live rows; drop them first", live)
	}
	t := &k.seqs[s]
	if length%PageTokens != 0 || t.private != noPage {
		return length, nil
	}
	have := length / PageTokens
	pages := k.name(t, ids)
	for pages > have && !k.stored(t, have, pages) {
		pages--
	}
	t.hashes, t.entries = t.hashes[:pages], t.entries[:pages*PageTokens]
	if pages == have {
		return length, nil
	}
	k.shareState(t, pages*PageTokens)
	k.dropPages(t, have*PageTokens) // reserved ones
	for g := range k.groups {
		first := k.firstSeen(g, pages*PageTokens)
		for p := have; p < pages; p++ {
			id := int32(noPage)
			if p >= first {
				id, _ = k.groups[g].pool.share(t.hashes[p])
			}
			t.tables[g] = append(t.tables[g], id)
		}
	}
	k.passWindows(t)
	return pages * PageTokens, k.Forest.Extend(s, pages*PageTokens-length)
}

// name appends the entries and hashes of the pages that ids fill to a trunk of full pages, and returns the number
// of its pages. Where the trunk has pages it stops at the first page that no group holds.
func (k *Cache) name(t *trunk, ids []token.ID) int {
	have, prev := len(t.hashes), t.salt
	if have > 0 {
		prev = t.hashes[have-1]
	}
	for (len(t.hashes)+1)*PageTokens < len(ids) && (len(t.hashes)+1)*PageTokens <= k.config.Context {
		first := len(t.entries)
		for _, id := range ids[first : first+PageTokens] {
			t.entries = append(t.entries, k.entry(t, len(t.entries), id))
		}
		prev = chain(prev, t.entries[first:])
		if have > 0 && !k.known(prev) {
			t.entries = t.entries[:first]
			break
		}
		t.hashes = append(t.hashes, prev)
	}
	return len(t.hashes)
}

// known reports whether any group holds a page, or none can say.
func (k *Cache) known(h digest) bool {
	if len(k.groups) == 0 {
		return true // states have few of the names
	}
	for g := range k.groups {
		if _, ok := k.groups[g].pool.byHash[h]; ok {
			return true
		}
	}
	return false
}

// stored reports whether every group holds the pages that a row behind the first n pages sees, without the first
// have pages, which are the trunk's.
func (k *Cache) stored(t *trunk, have, n int) bool {
	for g := range k.groups {
		for p := max(have, k.firstSeen(g, n*PageTokens)); p < n; p++ {
			if _, ok := k.groups[g].pool.byHash[t.hashes[p]]; !ok {
				return false
			}
		}
	}
	return k.storesState(t, n*PageTokens)
}
