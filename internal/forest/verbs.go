package forest

import "fmt"

// Path returns the slots of the nodes from the first behind the trunk's end to n, in index order; it is
// empty for [Trunk]. The slice is valid until the next call on the forest. Errors: [ErrSeq], [ErrNode].
func (f *Forest) Path(s Seq, n Node) ([]int32, error) {
	if err := f.check(s); err != nil {
		return nil, err
	}
	f.path = f.path[:0]
	if n == Trunk {
		return f.path, nil
	}
	slot, err := f.slot(s, n)
	if err != nil {
		return nil, err
	}
	f.path = f.ancestors(f.path, slot)
	return f.path, nil
}

// ancestors appends slot and the slots above it, in index order.
func (f *Forest) ancestors(dst []int32, slot int32) []int32 {
	start := len(dst)
	for i := slot; i != noParent; i = f.nodes[i].parent {
		dst = append(dst, i)
	}
	for a, b := start, len(dst)-1; a < b; a, b = a+1, b-1 {
		dst[a], dst[b] = dst[b], dst[a]
	}
	return dst
}

// Committable returns the path to n as [Forest.Path] does. It returns an error where a node of the path
// lacks the keys of a layer, because it stopped early, or skipped and is not [Row.Lasting]: a row finds keys in every layer that it runs.
func (f *Forest) Committable(s Seq, n Node) ([]int32, error) {
	path, err := f.Path(s, n)
	if err != nil {
		return nil, err
	}
	for _, slot := range path {
		nd := &f.nodes[slot]
		if int(nd.reached) != f.nLayers {
			return nil, fmt.Errorf("forest: the row at index %d has run layers 0 to %d of %d: resume it before it is committed",
				nd.index, nd.reached, f.nLayers)
		}
		if nd.layers.Len() != f.nLayers && !nd.lasting && !nd.substitutes {
			return nil, fmt.Errorf("forest: the row at index %d skipped %d layers and cannot be committed",
				nd.index, f.nLayers-nd.layers.Len())
		}
		if nd.parts {
			return nil, fmt.Errorf("forest: the row at index %d skipped feed-forward parts of layers and cannot be committed", nd.index)
		}
	}
	return path, nil
}

// SlotEntry returns the entry of the live node in a slot, and whether its keys may be shared by hash.
func (f *Forest) SlotEntry(slot int32) (e Entry, shared bool) {
	return f.nodes[slot].entry, !f.nodes[slot].private
}

// Commit appends the path to n to the trunk. The descendants of n live on behind the trunk's end; every
// other live node of the sequence is dropped. The caller has moved the path's keys. It returns the errors of
// [Forest.Committable] and changes nothing then.
func (f *Forest) Commit(s Seq, n Node) error {
	path, err := f.Committable(s, n)
	if err != nil || len(path) == 0 {
		return err
	}
	f.lack(s, path)
	f.noteGaps(s, path)
	last := path[len(path)-1]
	for _, slot := range path {
		f.marks[slot] = onPath
	}
	if int(f.seqs[s].nodes) > len(path) {
		f.drop(s, last, false)
		for i := range f.nodes {
			if nd := &f.nodes[i]; nd.live && nd.seq == s && f.marks[i] == unmarked && nd.parent == last {
				nd.parent = noParent
			}
		}
	}
	for _, slot := range path {
		f.marks[slot] = unmarked
		f.release(slot)
	}
	f.seqs[s].trunk += int32(len(path))
	return nil
}

// Marks of a slot while Commit and Drop sort the nodes of a sequence.
const (
	unmarked = iota
	onPath
	doomed
)

// drop drops the nodes of s that descend from end, the last one of the marked path, or those that do not; the path stays.
func (f *Forest) drop(s Seq, end int32, behind bool) {
	for i := range f.nodes {
		if nd := &f.nodes[i]; nd.live && nd.seq == s && f.marks[i] != onPath && (f.firstOnPath(nd.parent) == end) == behind {
			f.marks[i] = doomed
		}
	}
	for i := range f.nodes {
		if f.marks[i] == doomed {
			f.marks[i] = unmarked
			f.release(int32(i))
		}
	}
}

// firstOnPath walks up from slot and returns the first one of the marked path, or noParent.
func (f *Forest) firstOnPath(slot int32) int32 {
	for slot != noParent && f.marks[slot] != onPath {
		slot = f.nodes[slot].parent
	}
	return slot
}

// Drop ends n and its descendants; [Trunk] ends all live nodes of the sequence. Errors: [ErrSeq], [ErrNode].
func (f *Forest) Drop(s Seq, n Node) error {
	if err := f.check(s); err != nil {
		return err
	}
	if n == Trunk {
		for i := range f.nodes {
			if f.nodes[i].live && f.nodes[i].seq == s {
				f.release(int32(i))
			}
		}
		return nil
	}
	slot, err := f.slot(s, n)
	if err != nil {
		return err
	}
	f.marks[slot] = onPath
	f.drop(s, slot, true)
	f.marks[slot] = unmarked
	f.release(slot)
	return nil
}

// Truncate drops every live node of the sequence and cuts its trunk to n tokens. It returns an error, and
// changes nothing, where n is negative or above the trunk's length.
func (f *Forest) Truncate(s Seq, n int) error {
	if err := f.check(s); err != nil {
		return err
	}
	if n < 0 || n > int(f.seqs[s].trunk) {
		return fmt.Errorf("forest: truncating a trunk of %d tokens to %d; 0 to %d are possible", f.seqs[s].trunk, n, f.seqs[s].trunk)
	}
	if err := f.Drop(s, Trunk); err != nil {
		return err
	}
	q := &f.seqs[s]
	q.cutGaps(n)
	q.trunk = int32(n)
	for len(q.lacks) > 0 && q.lacks[len(q.lacks)-1].from >= q.trunk {
		q.lacks = q.lacks[:len(q.lacks)-1]
	}
	return nil
}

// Extend lengthens the trunk by n tokens whose keys the cache holds: a shared prefix, or a fork. It returns
// an error, and changes nothing, where the sequence has live nodes, and [ErrContext] past the context.
func (f *Forest) Extend(s Seq, n int) error {
	if err := f.check(s); err != nil {
		return err
	}
	if live := f.seqs[s].nodes; live > 0 {
		return fmt.Errorf("forest: extending a trunk with %d live rows; drop them first", live)
	}
	if n < 0 || int(f.seqs[s].trunk)+n > int(f.context) {
		return fmt.Errorf("forest: extending a trunk of %d tokens by %d: %w of %d", f.seqs[s].trunk, n, ErrContext, f.context)
	}
	f.seqs[s].trunk += int32(n)
	return nil
}
