package forest

// Run is a stretch of keys in scratch: N consecutive slots of one page, which hold N consecutive
// indices of one attention block.
type Run struct {
	Slot, Index, N int32
}

// Clip cuts a run to the indices [low, high) and returns its first index and its length, which is 0 or less where nothing is left.
func (r Run) Clip(low, high int) (first, n int) {
	first = max(low, int(r.Index))
	return first, min(high, int(r.Index+r.N)) - first
}

// Extends reports whether some runs begin with the indices of others.
func Extends(runs, others []Run) bool {
	if len(others) > len(runs) {
		return false
	}
	for i, o := range others {
		r := runs[i]
		if r.Slot != o.Slot || r.Index != o.Index || r.N < o.N || r.N > o.N && i < len(others)-1 {
			return false
		}
	}
	return true
}

// Visible appends to dst the live nodes that row i of the step sees in a layer, as runs in index order, or in a layer that can be substituted in the order of their ordinals ([Forest.Ordinal]):
// its ancestors behind the trunk's end, the row itself, and the later rows of its block unless the layer is causal. Nodes without keys
// in the layer are left out, row i too, which asks for an earlier layer than it runs where it reads that layer's keys. The trunk is visible too, and is not listed. Visible allocates only where dst is
// too short.
func (s *Step) Visible(dst []Run, i, layer int) []Run {
	f := s.forest
	start := len(dst)
	r := &s.rows[i]
	s.path = f.ancestors(s.path[:0], r.Slot)
	for _, slot := range s.path {
		if nd := &f.nodes[slot]; nd.layers.Has(layer) {
			dst = appendRun(dst, start, slot, f.place(nd, layer))
		}
	}
	if r.Block == 0 || r.Causal.Has(layer) {
		return dst
	}
	for j := i + 1; j < len(s.rows); j++ {
		if o := &s.rows[j]; o.Seq == r.Seq && o.Block == r.Block && f.nodes[o.Slot].layers.Has(layer) {
			dst = appendRun(dst, start, o.Slot, f.place(&f.nodes[o.Slot], layer))
		}
	}
	return dst
}

func appendRun(dst []Run, start int, slot, index int32) []Run {
	if n := len(dst); n > start {
		last := &dst[n-1]
		if last.Slot+last.N == slot && last.Index+last.N == index && slot%SlotsPerPage != 0 && index%SlotsPerPage != 0 {
			last.N++
			return dst
		}
	}
	return append(dst, Run{Slot: slot, Index: index, N: 1})
}

// At returns the live node in a slot, and [Trunk] where there is none.
func (f *Forest) At(slot int32) Node {
	if nd := &f.nodes[slot]; nd.live {
		return makeNode(slot, nd.generation)
	}
	return Trunk
}

// SlotOf returns the slot of a live node.
func SlotOf(n Node) int32 { return int32(uint32(n)) - 1 }

// NoSlot stands for the end of a trunk, which has no slot.
const NoSlot = noParent

// Up returns the slot of the parent of the live node in a slot; [NoSlot]: it is the trunk's end.
func (f *Forest) Up(slot int32) int32 { return f.nodes[slot].parent }

// Ran reports whether the live node in a slot has run a layer, in this step or an earlier one.
func (f *Forest) Ran(slot int32, layer int) bool { return f.nodes[slot].layers.Has(layer) }
