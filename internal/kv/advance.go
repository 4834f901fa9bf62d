package kv

import (
	"fmt"

	"grove/internal/forest"
)

// Advance prepares the states for a step: records for the rows that may be followed, and states that the step writes, which
// are never those that it reads. [Cache.Advanced] ends it. Errors: rows of a block; a row behind one whose record was not
// kept; [forest.ErrScratch] where too many records are kept; [ErrFull]. Nothing has changed then. Without recurrent layers it
// does nothing.
func (k *Cache) Advance(step *forest.Step) error {
	if k.states == nil {
		return nil
	}
	k.Advanced(false) // a step that panicked
	k.states.stamp++
	err := k.advanceRows(step.Rows())
	for i := 0; err == nil && i < len(k.states.step); i++ {
		err = k.advanceSeq(&k.seqs[k.states.step[i]])
	}
	if err != nil {
		k.Advanced(false)
	}
	return err
}

// advanceRows finds from which state each row goes on, and gives it a record.
func (k *Cache) advanceRows(rows []forest.Placed) error {
	st := k.states
	for i := range rows {
		row := &rows[i]
		if row.Block > 0 {
			return fmt.Errorf("kv: the row at index %d is of block %d, whose rows see each other; a recurrent layer reads rows in order alone", row.Index, row.Block)
		}
		r := &k.seqs[row.Seq].state
		ahead, err := k.from(r, row)
		if err != nil {
			return err
		}
		k.extendPath(r, row, ahead)
		_, has := k.RecordOf(row.Slot)
		switch {
		case row.Resume != forest.Trunk && !has:
			return fmt.Errorf("kv: the row at index %d cannot be resumed: it was added as passing, and its record is not kept", row.Index)
		case row.Transient || has:
			continue
		}
		if len(st.free) == 0 {
			k.collect()
		}
		n := len(st.free)
		if n == 0 {
			return fmt.Errorf("kv: %d rows with records: %w; add rows that nothing follows as passing", k.config.Records, forest.ErrScratch)
		}
		if old := &st.bySlot[row.Slot]; old.node != forest.Trunk { // of a node that is gone
			st.free, n = append(st.free, old.record), n+1
		}
		st.bySlot[row.Slot] = kept{row.Node, st.free[n-1]}
		st.free, st.fresh = st.free[:n-1], append(st.fresh, row.Slot)
	}
	return nil
}

// from finds whether a row goes on from the state ahead or from the trunk. Rows between have records.
func (k *Cache) from(r *Recurrence, row *forest.Placed) (ahead bool, err error) {
	st := k.states
	slot := row.Slot
	for {
		m := &st.marks[slot]
		if m.stamp == st.stamp {
			ahead = m.ahead
			break
		}
		if slot != row.Slot {
			node := k.Forest.At(slot)
			if node == r.Ahead {
				ahead = true
				break
			}
			if _, has := k.RecordOf(slot); !has {
				index, _ := k.Forest.Index(row.Seq, node)
				return false, fmt.Errorf("kv: the state behind the row at index %d is gone: it was added as passing", index)
			}
		}
		if slot = k.Forest.Up(slot); slot == forest.NoSlot {
			break
		}
	}
	for end, slot := slot, row.Slot; slot != end; slot = k.Forest.Up(slot) {
		st.marks[slot] = mark{st.stamp, ahead}
	}
	return ahead, nil
}

// extendPath adds a row to what is known of its sequence's rows.
func (k *Cache) extendPath(r *Recurrence, row *forest.Placed, ahead bool) {
	n := &r.Next
	if n.rows == 0 {
		k.dropDead(r)
		k.states.step = append(k.states.step, row.Seq)
		n.path, n.Behind = row.Parent == forest.Trunk || row.Parent == r.Ahead, ahead
		n.last = row.Parent
	}
	whole := row.Run.Len() == k.Forest.Layers()
	n.path = n.path && whole && row.Parent == n.last && row.Resume == forest.Trunk
	n.whole = n.whole || whole && !ahead
	n.only = n.only || row.Transient
	n.rows++
	n.last = row.Node
}

// advanceSeq takes the states that the step writes of a sequence.
func (k *Cache) advanceSeq(t *trunk) (err error) {
	st, r := k.states, &t.state
	n := &r.Next
	if n.whole && len(r.Tail) > 0 {
		if n.Base, err = st.take(); err != nil {
			return err
		}
		k.takeSnapshots(t, r.Index, r.Index+len(r.Tail))
	}
	if !n.path || r.only && !n.only {
		return nil // a state that cannot be had again is not given up for one that can
	}
	if n.Ahead, err = st.take(); err != nil {
		return err
	}
	index, _ := k.Forest.Index(t.seq, n.last)
	k.takeSnapshots(t, index+1-n.rows, index+1)
	return nil
}

// takeSnapshots takes states for the snapshots behind an index and before another one. Where none is free they are left out.
func (k *Cache) takeSnapshots(t *trunk, from, end int) {
	st, n := k.states, &t.state.Next
	for at := (from/st.cadence + 1) * st.cadence; at < end && k.shared(t, at) && k.spare(); at += st.cadence {
		id, _ := st.pool.take()
		n.Snapshots = append(n.Snapshots, Snapshot{at, id})
	}
}

// shared reports whether the page that ends at an index has a name, now or once its rows are committed.
func (k *Cache) shared(t *trunk, index int) bool {
	return !t.unnamed(index) && (index <= len(t.entries) || !t.selects())
}

// Advanced ends what [Cache.Advance] has begun. Where the step is done, what it has written is taken over; otherwise, as it
// was not, all is as before.
func (k *Cache) Advanced(done bool) {
	st := k.states
	if st == nil {
		return
	}
	for _, s := range st.step {
		t := &k.seqs[s]
		if done {
			k.takeOver(t)
		}
		r := &t.state
		st.drop(&r.Next.Base)
		st.drop(&r.Next.Ahead)
		for i := range r.Next.Snapshots {
			st.drop(&r.Next.Snapshots[i].State)
		}
		r.Next = Next{Base: NoState, Ahead: NoState, Snapshots: r.Next.Snapshots[:0]}
	}
	if !done {
		for _, slot := range st.fresh {
			st.free = append(st.free, st.bySlot[slot].record)
			st.bySlot[slot] = kept{}
		}
	}
	st.step, st.fresh = st.step[:0], st.fresh[:0]
}

// takeOver makes what a step has written of a sequence its own.
func (k *Cache) takeOver(t *trunk) {
	st, r := k.states, &t.state
	n := &r.Next
	length := len(t.entries)
	if n.Base != NoState {
		st.setBase(r, n.Base, length)
		n.Base = NoState
		k.nameBase(t)
	}
	if n.Ahead != NoState {
		st.dropAhead(r)
		r.Ahead, r.AheadState, r.only = n.last, n.Ahead, n.only
		n.Ahead = NoState
	}
	for _, s := range n.Snapshots {
		if s.Index <= length {
			k.nameSnapshot(t, s)
		} else {
			r.pending = append(r.pending, s)
		}
	}
	n.Snapshots = n.Snapshots[:0]
}

// nameSnapshot gives a snapshot of the trunk the name of its page, and lets it go: it is found by name until its memory is
// needed.
func (k *Cache) nameSnapshot(t *trunk, s Snapshot) {
	if !t.unnamed(s.Index) {
		s.State = k.states.pool.seal(s.State, t.hashes[s.Index/PageTokens-1])
		k.thin(t, s.Index)
	}
	k.states.pool.drop(s.State)
}

// nameBase gives the base the name of a page, where it stands at a border.
func (k *Cache) nameBase(t *trunk) {
	r := &t.state
	if r.Index > 0 && r.Index%k.states.cadence == 0 && !t.unnamed(r.Index) {
		r.Base = k.states.pool.seal(r.Base, t.hashes[r.Index/PageTokens-1])
	}
}
