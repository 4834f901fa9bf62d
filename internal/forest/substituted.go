package forest

import (
	"errors"
	"slices"
)

// SetSubstitutable says which layers rows with [Row.Substitute] do not run. Layer 0 is none of them. It must not be called while sequences are open.
func (f *Forest) SetSubstitutable(l Layers) { f.substitutable = l }

// Substitutable returns the layers that can be substituted.
func (f *Forest) Substitutable() Layers { return f.substitutable }

// Anchored reports whether rows behind a trunk have an anchor in it.
func (f *Forest) Anchored(s Seq) bool { return f.seqs[s].anchor != Trunk }

// Kept returns how many of the first n tokens of a trunk have keys in the layers that can be substituted. Tokens behind the trunk's end count as those that have.
func (f *Forest) Kept(s Seq, n int) int {
	before, _ := slices.BinarySearch(f.seqs[s].gaps, int32(n))
	return n - before
}

// Ordinal returns the place of the live node in a slot among the tokens of its path that have keys in the layers that can be substituted, and whether it is one of them.
func (f *Forest) Ordinal(slot int32) (ordinal int, keyed bool) {
	return int(f.nodes[slot].ordinal), !f.nodes[slot].substitutes
}

// place is the place of a node's key in a layer: its index, or in a layer that can be substituted its ordinal.
func (f *Forest) place(nd *node, layer int) int32 {
	if f.substitutable.Has(layer) {
		return nd.ordinal
	}
	return nd.index
}

// substitutes completes a row that substitutes layers, or returns an error where it cannot.
func (f *Forest) substitutes(r *Row) error {
	if !r.Substitute {
		return nil
	}
	switch {
	case f.substitutable == Layers{}:
		return errors.New("forest: a row substitutes layers, and the model has none that can be substituted")
	case r.Anchor || r.Lasting || r.Block > 0 || r.Through != nil || r.Resume != Trunk || r.To != f.nLayers || r.Skip != Layers{} || r.SkipAttention != Layers{} || r.SkipFeedForward != Layers{}:
		return errors.New("forest: a row that substitutes layers runs all others, lies in no block, is no anchor and no resumed row, and begins with its own input")
	}
	r.Skip = f.substitutable
	return nil
}

// begin makes a new node one behind the trunk's end.
func (f *Forest) begin(nd *node, s Seq) {
	q := &f.seqs[s]
	nd.ordinal, nd.anchor = q.trunk-int32(len(q.gaps)), q.anchor
	nd.plain = len(q.gaps) == 0
}

// follow makes a new node one behind another.
func (nd *node) follow(up *node) {
	if nd.ordinal, nd.anchor = up.ordinal, up.anchor; !up.substitutes {
		nd.ordinal++
	}
}

// substitute makes a new node one that substitutes the layers that can be substituted, where the row does. It returns an error where it has no anchor.
func (nd *node) substitute(r *Row) error {
	if nd.substitutes = r.Substitute; r.Substitute && nd.anchor == Trunk {
		return errors.New("forest: a row substitutes layers, and no row before it is an anchor; let the row of its anchor run again")
	}
	nd.private = nd.private || r.Substitute || nd.ordinal != nd.index
	return nil
}

// noteGaps notes the tokens of a path without keys in some layers, which becomes the end of the trunk, and its last anchor.
func (f *Forest) noteGaps(s Seq, path []int32) {
	q := &f.seqs[s]
	for _, slot := range path {
		nd := &f.nodes[slot]
		if nd.substitutes {
			q.gaps = append(q.gaps, nd.index)
		}
		q.anchor = nd.anchor
	}
}

// cutGaps forgets the tokens of the trunk from index n on. Where there are any, rows behind it have no anchor.
func (q *sequence) cutGaps(n int) {
	if n == int(q.trunk) {
		return
	}
	keep, _ := slices.BinarySearch(q.gaps, int32(n))
	q.gaps, q.anchor = q.gaps[:keep], Trunk
}
