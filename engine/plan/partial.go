package plan

import "grove/method"

// LayerSeconds implements [method.Steps].
func (p *Planner) LayerSeconds(rows, layers int) float64 {
	return p.layers[min(rows, len(p.layers)-1)] * float64(layers) / float64(max(1, p.Layers))
}

// HeadSeconds implements [method.Steps].
func (p *Planner) HeadSeconds(rows int) float64 {
	rows = min(rows, len(p.table)-1)
	return p.table[rows] - p.layers[rows]
}

// resumed describes the rows of a round that drafters have run on the first layers: the verifying step runs the others anew, and all of them
// from that layer on.
type resumed struct {
	p     *Planner
	layer int // that all resumed rows have reached; 0: none is resumed
	fresh int // rows that run anew
}

// resume looks for rows that drafters have run. The first row is that of the text's last token.
func (p *Planner) resume(t *method.Tree) (r resumed) {
	r.p, r.layer, r.fresh = p, t.RootLive().Layer, 1
	if r.layer == 0 || p.Layers == 0 {
		r.layer = 0
		return r
	}
	for i := range t.Nodes() {
		if l := t.Nodes()[i].Live.Layer; l > 0 {
			r.layer = min(r.layer, l)
		}
	}
	r.fresh = 0
	return r
}

// add counts the row of a draft.
func (r *resumed) add(n *method.Node) {
	if n.Live.Layer == 0 {
		r.fresh++
	}
}

// seconds predicts the step of so many rows.
func (r *resumed) seconds(rows int) float64 {
	t := r.p.table[rows]
	if r.layer > 0 {
		t -= r.p.LayerSeconds(rows, r.layer) - r.p.LayerSeconds(r.fresh, r.layer)
	}
	return t
}
