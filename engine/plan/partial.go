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
	extra int // extra rows, which all do
}

// resume looks for rows that drafters have run. The first row is that of the text's last token.
func (p *Planner) resume(t *method.Tree) (r resumed) {
	r.p, r.layer, r.fresh, r.extra = p, t.RootLive().Layer, 1, p.extraOf(t, method.Root)
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

// add counts the row of a draft, and the extra rows behind it.
func (r *resumed) add(place int32) {
	r.extra += r.p.extraOf(r.p.tree, place)
	if r.p.tree.Nodes()[place].Live.Layer == 0 {
		r.fresh++
	}
}

// seconds predicts the step of so many rows.
func (r *resumed) seconds(rows int) float64 {
	extra := min(r.extra, 1+r.p.most()-rows)
	t := r.p.table[rows+extra]
	if r.layer > 0 {
		t -= r.p.LayerSeconds(rows+extra, r.layer) - r.p.LayerSeconds(r.fresh+extra, r.layer)
	}
	return t
}

// extraOf returns how many extra rows hang from a draft, or from [method.Root].
func (p *Planner) extraOf(t *method.Tree, place int32) (n int) {
	for _, e := range t.Extras() {
		if e.Parent == place {
			n++
		}
	}
	return n
}

// ExtraRows returns how many extra rows the step may run beside the chosen drafts: those behind them and behind the text's last token, as far as there is
// room for as many drafts.
func (p *Planner) ExtraRows() int {
	if p.noExtra {
		return 0
	}
	n := p.extraOf(p.tree, method.Root)
	for _, c := range p.chosen {
		n += p.extraOf(p.tree, c)
	}
	return max(0, min(n, p.most()-len(p.chosen), p.extraRoom))
}

// LimitExtra bounds the extra rows of the step.
func (p *Planner) LimitExtra(rows int) { p.extraRoom = rows }

// ExtraSeconds predicts what so many extra rows add to a step.
func (p *Planner) ExtraSeconds(rows int) float64 {
	return p.table[min(1+rows, len(p.table)-1)] - p.table[1]
}
