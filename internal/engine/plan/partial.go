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
	late  int // layers below those at which these begin, of all of them
}

// resume looks for rows that drafters have run. The first row is that of the text's last token.
func (p *Planner) resume(t *method.Tree) (r resumed) {
	r.p, r.layer, r.fresh = p, t.RootLive().Layer, 1
	r.extra, r.late = p.extraOf(t, method.Root)
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
	extra, late := r.p.extraOf(r.p.tree, place)
	r.extra, r.late = r.extra+extra, r.late+late
	if r.p.tree.Nodes()[place].Live.Layer == 0 {
		r.fresh++
	}
}

// seconds predicts the step of so many rows.
func (r *resumed) seconds(rows int) float64 {
	extra := min(r.extra, 1+r.p.most()-rows)
	t := r.p.table[rows+extra]
	if r.late > 0 {
		each := r.p.LayerSeconds(rows+extra, 1) - r.p.LayerSeconds(rows, 1)
		t -= each * float64(r.late) / float64(r.extra)
	}
	if r.layer > 0 {
		t -= r.p.LayerSeconds(rows+extra, r.layer) - r.p.LayerSeconds(r.fresh+extra, r.layer)
	}
	return t
}

// extraOf returns how many extra rows hang from a draft, or from [method.Root], and how many layers they leave out together.
func (p *Planner) extraOf(t *method.Tree, place int32) (n, late int) {
	for i := range t.Extras() {
		if e := &t.Extras()[i]; e.Parent == place {
			n, late = n+1, late+e.Row.Skip.Len()
		}
	}
	return n, late
}

// ExtraRows returns how many extra rows the step may run beside the chosen drafts: those behind them and behind the text's last token, as far as there is
// room for as many drafts.
func (p *Planner) ExtraRows() int {
	if p.noExtra {
		return 0
	}
	n, _ := p.extraOf(p.tree, method.Root)
	for _, c := range p.chosen {
		more, _ := p.extraOf(p.tree, c)
		n += more
	}
	return max(0, min(n, p.most()-len(p.chosen), p.extraRoom))
}

// LimitExtra bounds the extra rows of the step.
func (p *Planner) LimitExtra(rows int) { p.extraRoom = rows }

// ExtraSeconds predicts what so many extra rows add to a step.
func (p *Planner) ExtraSeconds(rows int) float64 {
	return p.table[min(1+rows, len(p.table)-1)] - p.table[1]
}
