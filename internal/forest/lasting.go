package forest

import "fmt"

// lacks says that the trunk's tokens from an index on have no keys in some layers. Of the entries of a sequence, each has the layers of the one before.
type lacks struct {
	from   int32
	layers Layers
}

// lacking returns the layers in which a token of the trunk has no keys.
func (q *sequence) lacking() Layers {
	if n := len(q.lacks); n > 0 {
		return q.lacks[n-1].layers
	}
	return Layers{}
}

// lack notes the layers that a path, which becomes the end of the trunk, has no keys in.
func (f *Forest) lack(s Seq, path []int32) {
	q := &f.seqs[s]
	for _, slot := range path {
		nd := &f.nodes[slot]
		missing := LayerRange(0, f.nLayers).Minus(nd.layers)
		if nd.substitutes {
			missing = missing.Minus(f.substitutable) // in which later rows look for no key of it
		}
		if missing != q.lacking() {
			q.lacks = append(q.lacks, lacks{nd.index, missing})
		}
	}
}

// keyed returns an error where a row that runs some layers would look for keys that a token before it does not have: of the trunk, or of
// its parent up where the row is to last.
func (f *Forest) keyed(r *Row, runs Layers, up *node) error {
	missing := f.seqs[r.Seq].lacking()
	if up != nil && up.lasting && !r.Lasting {
		return fmt.Errorf("forest: a row behind one that lasts must last too")
	}
	if up != nil && r.Lasting {
		missing = missing.Union(LayerRange(0, f.nLayers).Minus(up.layers))
	}
	if without := runs.Minus(missing); without != runs {
		return fmt.Errorf("forest: a row runs layer %d, in which a token before it has no keys; it must skip what that token skipped", runs.Minus(without).Last())
	}
	return nil
}

// Inherit gives a sequence that was made a fork of s, and a path of s behind it, the layers that these lack. Rows behind it have no anchor.
func (f *Forest) Inherit(fork, s Seq, path []int32) {
	to, from := &f.seqs[fork], &f.seqs[s]
	to.lacks, to.gaps = append(to.lacks[:0], from.lacks...), append(to.gaps[:0], from.gaps...)
	f.lack(fork, path)
	f.noteGaps(fork, path)
	to.anchor = Trunk
}

// Lacks reports whether a token of the trunk of an open sequence has no keys in some layer.
func (f *Forest) Lacks(s Seq) bool { return len(f.seqs[s].lacks) > 0 }
