package engine

import (
	"grove/internal/engine/step"
	"grove/internal/forest"
	"grove/method"
)

// extras are the extra rows of a round that run, behind its drafts: see [method.Extra].
type extras struct {
	places []int32       // among those of the tree
	nodes  []forest.Node // of all those of the tree; [forest.Trunk]: it does not run
	first  int32         // number of the first row
}

// placeExtra adds the extra rows behind the drafts that run, as far as there is room: first is the number of the next row.
func (r *round) placeExtra(st *step.Step, first int32) {
	s, sp, x := r.s, r.s.drafts, &r.extras
	x.places, x.nodes, x.first = x.places[:0], x.nodes[:0], first
	room := sp.Plan.ExtraRows()
	for i, e := range sp.Tree.Extras() {
		x.nodes = append(x.nodes, forest.Trunk)
		row := e.Row
		if row.Of = r.root; e.Parent != method.Root {
			row.Of = sp.Nodes[e.Parent]
		}
		if row.Parent = row.Of; e.After >= 0 {
			row.Parent = x.nodes[e.After]
		}
		if row.Parent == forest.Trunk || len(x.places) >= room || s.e.steps.Cache.Forest.Live(s.trunk.Seq) > s.e.limits.Drafts {
			continue
		}
		if node, err := st.Add(row); err == nil {
			x.nodes[i], x.places = node, append(x.places, int32(i))
		}
	}
}

// keepExtra keeps what the extra rows gave that hang from the last accepted draft, for the drafters that added them.
func (r *round) keepExtra(st *step.Step) {
	sp, last := r.s.drafts, int32(method.Root)
	sp.ClearExtra()
	if n := len(sp.Outcome.Accepted); n > 0 {
		last = int32(sp.Outcome.Accepted[n-1])
	}
	for i, place := range r.extras.places {
		if sp.Tree.Extras()[place].Parent == last {
			row := int(r.extras.first) + i
			sp.KeepExtra(place, st.Placed(row).Index, st.Result(row))
		}
	}
}
