package kv

import (
	"fmt"

	"grove/internal/forest"
)

// canFollow returns an error where the states do not say what is behind a path. first is the row of the path from which on
// records are needed: the one behind Ahead, if that is on the path.
func (k *Cache) canFollow(t *trunk, path []int32) (first int, err error) {
	if k.states == nil {
		return 0, nil
	}
	if r := &t.state; r.Ahead != forest.Trunk {
		for i, slot := range path {
			if k.Forest.At(slot) == r.Ahead {
				first = i + 1
			}
		}
	}
	for _, slot := range path[first:] {
		if _, has := k.RecordOf(slot); !has {
			index, _ := k.Forest.Index(t.seq, k.Forest.At(slot))
			return 0, fmt.Errorf("kv: the row at index %d was added as passing: no path that ends with it, or goes on in another step, can be committed", index)
		}
	}
	return first, nil
}

// follow makes the state behind a path that was appended the one behind the trunk.
func (k *Cache) follow(t *trunk, path []int32, first int) {
	st, r := k.states, &t.state
	if st == nil {
		return
	}
	if first > 0 || k.descends(r.Ahead, path[len(path)-1]) {
		k.namePending(t)
	}
	for i, slot := range path {
		b := &st.bySlot[slot]
		switch {
		case i >= first:
			r.Tail = append(r.Tail, b.record)
		case b.node != forest.Trunk:
			st.free = append(st.free, b.record)
		}
		*b = kept{}
	}
	if first == 0 {
		return
	}
	behind := len(path) - first
	st.freeTail(r, 0, len(r.Tail)-behind)
	st.drop(&r.Base)
	r.Base, r.Index = r.AheadState, len(t.entries)-behind
	r.AheadState = NoState
	k.nameBase(t)
	st.dropAhead(r)
}

// descends reports whether a live node has the one in a slot above it.
func (k *Cache) descends(n forest.Node, slot int32) bool {
	if n == forest.Trunk {
		return false
	}
	up := forest.SlotOf(n)
	for up != forest.NoSlot && up != slot {
		up = k.Forest.Up(up)
	}
	return up == slot
}

// namePending names the snapshots of the path to Ahead that have become the trunk's.
func (k *Cache) namePending(t *trunk) {
	r := &t.state
	left := r.pending[:0]
	for _, s := range r.pending {
		if s.Index <= len(t.entries) {
			k.nameSnapshot(t, s)
		} else {
			left = append(left, s)
		}
	}
	r.pending = left
}

// forkState gives a fork the state of its origin, with a path of the origin's behind it. There are records enough.
func (k *Cache) forkState(to, from *trunk, path []int32, first int) {
	st := k.states
	if st == nil {
		return
	}
	r, f := &to.state, &from.state
	r.Base, r.Index = f.Base, f.Index
	if first > 0 {
		r.Base, r.Index = f.AheadState, len(from.entries)+first
	} else {
		for _, record := range f.Tail {
			r.Tail = append(r.Tail, st.copyRecord(record))
		}
	}
	if r.Base != NoState {
		st.pool.retain(r.Base)
	}
	for _, slot := range path[first:] {
		r.Tail = append(r.Tail, st.copyRecord(st.bySlot[slot].record))
	}
}

func (st *states) copyRecord(from int32) int32 {
	n := len(st.free) - 1
	to := st.free[n]
	st.free = st.free[:n]
	copy(st.records[int(to)*st.record:][:st.record], st.records[int(from)*st.record:])
	return to
}

// canForkState returns an error where a fork finds too few records.
func (k *Cache) canForkState(t *trunk, path []int32, first int) error {
	st := k.states
	if st == nil {
		return nil
	}
	need := len(path) - first
	if first == 0 {
		need += len(t.state.Tail)
	}
	if need > len(st.free) {
		k.collect()
	}
	if need > len(st.free) {
		return fmt.Errorf("kv: a fork needs the records of %d rows and %d are free: %w", need, len(st.free), ErrFull)
	}
	return nil
}

// canTruncateStates returns an error where the state behind the first n rows of a longer trunk is not stored.
func (k *Cache) canTruncateStates(t *trunk, n int) error {
	if k.states == nil || n >= t.state.Index || n == 0 {
		return nil
	}
	if !t.unnamed(n) && k.storesState(t, n) {
		return nil
	}
	return fmt.Errorf("kv: truncating to %d tokens: %w", n, ErrEvicted)
}

// unnamed reports whether the page that ends at an index has no name.
func (t *trunk) unnamed(n int) bool { return t.private != noPage && n > t.private*PageTokens }

// storesState reports whether the state behind the first n rows is found by its name.
func (k *Cache) storesState(t *trunk, n int) bool {
	if k.states == nil || n == 0 {
		return true
	}
	if n%k.states.cadence != 0 {
		return false
	}
	_, ok := k.states.pool.byHash[t.hashes[n/PageTokens-1]]
	return ok
}

// shareState makes the state behind the first n rows, which is stored, the base of a trunk.
func (k *Cache) shareState(t *trunk, n int) {
	if k.states == nil {
		return
	}
	id := int32(NoState)
	if n > 0 {
		id, _ = k.states.pool.share(t.hashes[n/PageTokens-1])
	}
	k.states.setBase(&t.state, id, n)
}

// truncateStates cuts a trunk's states to n rows, after canTruncateStates.
func (k *Cache) truncateStates(t *trunk, n int) {
	if k.states == nil {
		return
	}
	r := &t.state
	k.states.dropAhead(r)
	k.states.drop(&r.loaded)
	if n >= r.Index {
		k.states.freeTail(r, n-r.Index, len(r.Tail))
	} else {
		k.shareState(t, n)
	}
}
