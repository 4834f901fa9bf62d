package model

import (
	"cmp"
	"fmt"
	"slices"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/par"
	"grove/internal/weights/lora"
	"grove/internal/weights/tensor"
)

// adaptable is a tensor of the file that adapters can add to: the matrices that were made of it, in the order of its rows.
type adaptable struct {
	parts  []*compute.Matrix
	lookup bool // its rows are embeddings
}

// adapts notes that the operations to which a matrix is given add what adapters give: [compute.Exec.Linear], LinearExperts, the head.
// Tensors that are not noted are refused by [Adapt].
func (l *Loader) adapts(name string, parts ...*compute.Matrix) {
	l.note(name, adaptable{parts: parts})
}

// looksUp notes that [compute.Exec.Embed] reads the rows of a matrix.
func (l *Loader) looksUp(name string, m *compute.Matrix) {
	l.note(name, adaptable{parts: []*compute.Matrix{m}, lookup: true})
}

func (l *Loader) note(name string, a adaptable) {
	if l.err != nil {
		return
	}
	for _, m := range a.parts {
		l.weights.Adaptable(m, a.lookup)
	}
	if l.info.adaptable == nil {
		l.info.adaptable = map[string]adaptable{}
	}
	l.info.adaptable[name] = a
}

// Adapts reports whether adapters can add to a tensor of the model's file.
func (i *Info) Adapts(name string) bool { return i.adaptable[name].parts != nil }

// Adapt packs an adapter that fits the model's file ([lora.Adapter.Fit]) for its matrices. It returns a [*LoadError] for a pair of a
// tensor whose products or rows cannot be added to, before anything is allocated. Factors that are quantised become F32.
func Adapt(i *Info, pool *par.Pool, a *lora.Adapter) (*weight.Adapter, error) {
	for n := range a.Pairs {
		p := &a.Pairs[n]
		if t, ok := i.adaptable[p.Name]; !ok || t.lookup != p.Lookup() {
			return nil, &LoadError{Problem: fmt.Sprintf("%s: %s: architecture %q has no place where an adapter can add to this tensor", a.Path, tensor.Label(p.Name), i.Arch)}
		}
	}
	p := &packing{store: weight.New(pool, nil), seen: map[*byte]*down{}}
	for n := range a.Pairs {
		if err := p.add(i.adaptable[a.Pairs[n].Name], &a.Pairs[n]); err != nil {
			return nil, &LoadError{Err: err}
		}
	}
	adapted, err := p.adapter()
	if err != nil {
		return nil, &LoadError{Err: err}
	}
	return adapted, nil
}

// packing is the factors of an adapter on their way to the kernels.
type packing struct {
	store *weight.Store
	ups   []up
	downs []*down
	seen  map[*byte]*down // by the first byte of an A
}

// up is a B, or the rows of one that are for a part of a tensor.
type up struct {
	to     *compute.Matrix
	lookup bool
	view   tensor.View
	scale  float32
	down   *down
}

// down is an A, which the parts of a tensor, and tensors that a folder has as one, share.
type down struct {
	order  int // that in which the model reads it
	view   tensor.View
	packed *compute.Matrix
}

// add gives each part of a tensor its rows of B, and all of them the same A.
func (p *packing) add(t adaptable, pair *lora.Pair) error {
	a, err := plain(pair.A)
	if err != nil {
		return err
	}
	b, err := plain(pair.B)
	if err != nil {
		return err
	}
	d := p.downOf(a, t.parts[0].Number())
	first := 0
	for _, m := range t.parts {
		v, n := b, m.Out()
		if rows := v.Shape[0]; !t.lookup && n < rows && len(v.Shape) == 2 {
			row := len(v.Data) / rows
			v.Shape, v.Data = []int{n, v.Shape[1]}, v.Data[first*row:(first+n)*row]
		}
		p.ups = append(p.ups, up{to: m, lookup: t.lookup, view: v, scale: float32(pair.Scale), down: d})
		first += n
	}
	return nil
}

// downOf returns an A; views of the same bytes are one.
func (p *packing) downOf(v tensor.View, order int) *down {
	d := p.seen[&v.Data[0]]
	if d != nil && d.view.Type == v.Type && slices.Equal(v.Shape, d.view.Shape) {
		d.order = min(d.order, order)
		return d
	}
	d = &down{order: order, view: v}
	p.downs, p.seen[&v.Data[0]] = append(p.downs, d), d
	return d
}

// adapter packs the factors: matrices of one size side by side, in the order in which the model reads them, so that products of the same
// rows with several As are one.
func (p *packing) adapter() (*weight.Adapter, error) {
	slices.SortStableFunc(p.downs, func(x, y *down) int { return cmp.Compare(x.order, y.order) })
	slices.SortStableFunc(p.ups, func(x, y up) int { return cmp.Compare(x.to.Number(), y.to.Number()) })
	var views []tensor.View
	for _, d := range p.downs {
		views = append(views, d.view)
	}
	downs, err := p.packed(views)
	if err != nil {
		return nil, err
	}
	for i, d := range p.downs {
		d.packed = downs[i]
	}
	views = nil
	for _, u := range p.ups {
		views = append(views, u.view)
	}
	ups, err := p.packed(views)
	if err != nil {
		return nil, err
	}
	adapted := &weight.Adapter{}
	for i, u := range p.ups {
		adapted.Add(u.to, u.lookup, weight.Pair{A: u.down.packed, B: ups[i], Scale: u.scale})
	}
	return adapted, nil
}

// packed packs views: those of equal types and inputs side by side, stacks of experts by themselves.
func (p *packing) packed(views []tensor.View) ([]*compute.Matrix, error) {
	type kind struct {
		typ tensor.Type
		in  int
	}
	all, alike := make([]*compute.Matrix, len(views)), map[kind][]int{}
	for i, v := range views {
		if len(v.Shape) == 2 {
			k := kind{v.Type, v.Shape[1]}
			alike[k] = append(alike[k], i)
			continue
		}
		m, err := p.store.Matrix(v)
		if err != nil {
			return nil, err
		}
		all[i] = m
	}
	for _, places := range alike {
		var some []tensor.View
		for _, i := range places {
			some = append(some, views[i])
		}
		parts, err := p.store.Stacked(some)
		if err != nil {
			return nil, err
		}
		for n, i := range places {
			all[i] = parts[n]
		}
	}
	return all, nil
}

// plain returns a factor in a type of floats: those of others become F32.
func plain(v tensor.View) (tensor.View, error) {
	if c, _ := tensor.CodecOf(v.Type); !c.Quantised() {
		return v, nil
	}
	values := make([]float32, v.Elems())
	if err := tensor.Unpack(v.Type, values, v.Data); err != nil {
		return v, fmt.Errorf("%s: %w", tensor.Label(v.Name), err)
	}
	data := make([]byte, 4*len(values))
	if err := tensor.Pack(tensor.F32, data, values); err != nil {
		return v, fmt.Errorf("%s: %w", tensor.Label(v.Name), err)
	}
	v.Type, v.Data = tensor.F32, data
	return v, nil
}
