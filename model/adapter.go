package model

import (
	"fmt"

	"grove/compute"
	"grove/compute/weight"
	"grove/internal/par"
	"grove/weights/lora"
	"grove/weights/tensor"
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
	store, adapted := weight.New(pool, nil), &weight.Adapter{}
	for n := range a.Pairs {
		if err := adaptPair(store, adapted, i.adaptable[a.Pairs[n].Name], &a.Pairs[n]); err != nil {
			return nil, &LoadError{Err: err}
		}
	}
	return adapted, nil
}

// adaptPair gives each part of a tensor its rows of B, and all of them the same A.
func adaptPair(store *weight.Store, to *weight.Adapter, t adaptable, p *lora.Pair) error {
	down, err := factor(store, p.A, 0, 0, t.parts[0])
	first := 0
	for _, m := range t.parts {
		n := m.Out()
		if t.lookup {
			n = m.In()
		}
		var up *compute.Matrix
		if err == nil {
			up, err = factor(store, p.B, first, n, m)
		}
		if err != nil {
			return err
		}
		to.Add(m, t.lookup, &weight.Pair{A: down, B: up, Scale: float32(p.Scale)})
		first += n
	}
	return nil
}

// factor packs a factor for a matrix, or n of its rows from the first on; n 0: all. One of a matrix that is stored as a stack of one
// becomes such a stack.
func factor(store *weight.Store, v tensor.View, first, n int, m *compute.Matrix) (*compute.Matrix, error) {
	if c, _ := tensor.CodecOf(v.Type); c.Quantised() {
		values := make([]float32, v.Elems())
		if err := tensor.Unpack(v.Type, values, v.Data); err != nil {
			return nil, fmt.Errorf("%s: %w", tensor.Label(v.Name), err)
		}
		data := make([]byte, 4*len(values))
		if err := tensor.Pack(tensor.F32, data, values); err != nil {
			return nil, fmt.Errorf("%s: %w", tensor.Label(v.Name), err)
		}
		v.Type, v.Data = tensor.F32, data
	}
	if rows := v.Shape[0]; n > 0 && n < rows && len(v.Shape) == 2 {
		row := len(v.Data) / rows
		v.Shape, v.Data = []int{n, v.Shape[1]}, v.Data[first*row:(first+n)*row]
	}
	return store.Matrix(v)
}
