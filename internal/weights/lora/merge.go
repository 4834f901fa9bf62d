package lora

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"grove/internal/par"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Merge presents a base with all that adapters add to it, each with a scale of its own, as a file whose changed tensors are made when
// they are asked for, in the types that they have in the base. Closing it closes the base and the adapters. It refuses by name what a
// merged file cannot be: an adapter that works from its invocation on, and one of an embedding table that is the head too.
//
// A merged value is rounded to the tensor's type as [tensor.Pack] does; of a quantised type the values are unpacked, added to and
// quantised again. See [Merged] for the sums.
func Merge(base *gguf.File, adapters []*Adapter, scales []float64, pool *par.Pool) (*gguf.File, error) {
	tensors := slices.Clone(base.Tensors)
	for _, a := range adapters {
		if len(a.Invocation) > 0 {
			return nil, a.fail("it works from its invocation on and cannot be merged")
		}
		for i := range a.Pairs {
			p := &a.Pairs[i]
			t, ok := base.Tensor(p.Name)
			if !ok {
				return nil, a.fail("%s: the base has no such tensor", tensor.Label(p.Name))
			}
			if _, known := tensor.CodecOf(t.Type); !known {
				return nil, a.fail("%s: type %v cannot be made", tensor.Label(p.Name), t.Type)
			}
			if _, untied := base.Tensor("output.weight"); p.Lookup() && !untied {
				return nil, a.fail("%s: the table is the head too, to which the adapter does not add; it cannot be merged", tensor.Label(p.Name))
			}
			at := slices.IndexFunc(tensors, func(v tensor.View) bool { return v.Name == p.Name })
			tensors[at].Data = nil
		}
	}
	m := &merging{base: base, adapters: adapters, scales: scales, pool: pool}
	return gguf.New("", base.Metadata, tensors, m, func(i int) ([]byte, error) { return m.load(base.Tensors[i]) })
}

// merging is a base and its adapters, as the storage of the merged file.
type merging struct {
	base     *gguf.File
	adapters []*Adapter
	scales   []float64
	pool     *par.Pool
}

// Close implements [gguf.Storage].
func (m *merging) Close() error {
	err := m.base.Close()
	for _, a := range m.adapters {
		err = errors.Join(err, a.Close())
	}
	return err
}

// Check implements [gguf.Storage].
func (m *merging) Check() error { return m.base.Check() }

// Release implements [gguf.Storage].
func (m *merging) Release(b []byte) { m.base.Release(b) }

// Stamp implements [gguf.Storage]: what is merged is stored nowhere.
func (m *merging) Stamp() (string, time.Time, error) {
	return "", time.Time{}, errors.New("lora: a merged model is not stored yet")
}

// load returns the bytes of a tensor.
func (m *merging) load(t tensor.View) ([]byte, error) {
	values, changed, err := merged(m.base, t, m.adapters, m.scales, m.pool)
	if err != nil {
		return nil, err
	}
	if !changed {
		t, err = m.base.Load(t)
		return t.Data, err
	}
	data := make([]byte, t.Bytes())
	if err := tensor.Pack(t.Type, data, values); err != nil {
		return nil, fmt.Errorf("lora: %s: %w", tensor.Label(t.Name), err)
	}
	return data, nil
}

// Merged returns the values of a tensor of the base with all that adapters add to it, each with a scale of its own, and whether any
// adds to it.
//
// The order of arithmetic: w is the tensor's value in float32; d is the float64 sum over r of the products of B's and A's values,
// ascending; then, for each adapter in turn, w = float32(float64(w) + scale*d).
func Merged(base *gguf.File, t tensor.View, adapters []*Adapter, scales []float64) (values []float32, changed bool, err error) {
	return merged(base, t, adapters, scales, nil)
}

// merged is Merged on the threads of a pool, or on the caller's.
func merged(base *gguf.File, t tensor.View, adapters []*Adapter, scales []float64, pool *par.Pool) (values []float32, changed bool, err error) {
	for i, a := range adapters {
		for n := range a.Pairs {
			p := &a.Pairs[n]
			if p.Name != t.Name {
				continue
			}
			if !changed {
				if values, err = floats(base, t); err != nil {
					return nil, false, err
				}
			}
			changed = true
			s, err := newSum(p, values, t.Shape, scales[i])
			if err != nil {
				return nil, false, err
			}
			if pool != nil {
				pool.Run(s.rows, s)
				continue
			}
			for row := range s.rows {
				s.Do(0, row)
			}
		}
	}
	return values, changed, nil
}

// floats returns the values of a tensor.
func floats(f *gguf.File, t tensor.View) ([]float32, error) {
	t, err := f.Load(t)
	if err != nil {
		return nil, err
	}
	return unpack(t)
}

func unpack(t tensor.View) ([]float32, error) {
	values := make([]float32, t.Elems())
	if err := tensor.Unpack(t.Type, values, t.Data); err != nil {
		return nil, fmt.Errorf("lora: %s: %w", tensor.Label(t.Name), err)
	}
	return values, nil
}

// sum adds a pair's product to the values of a tensor; an item is a row.
type sum struct {
	a, b          []float32
	w             []float32
	rows, out, in int // of the tensor, all experts together; of one expert
	rank          int
	scale         float64
	lookup        bool
}

func newSum(p *Pair, w []float32, shape []int, scale float64) (s *sum, err error) {
	s = &sum{w: w, out: shape[len(shape)-2], in: shape[len(shape)-1], rank: p.Rank(), scale: scale * p.Scale, lookup: p.Lookup()}
	s.rows = len(w) / s.in
	if s.a, err = unpack(p.A); err == nil {
		s.b, err = unpack(p.B)
	}
	return s, err
}

// Do implements [par.Task].
func (s *sum) Do(_, row int) {
	d := make([]float64, s.in)
	for r := range s.rank {
		if s.lookup { // the row of the table is B times the row of A
			x := float64(s.a[row*s.rank+r])
			for i := range d {
				d[i] += float64(x * float64(s.b[i*s.rank+r]))
			}
			continue
		}
		x := float64(s.b[row*s.rank+r])
		for i, v := range s.a[(row/s.out*s.rank+r)*s.in:][:s.in] {
			d[i] += float64(x * float64(v))
		}
	}
	for i, v := range s.w[row*s.in : (row+1)*s.in] {
		s.w[row*s.in+i] = float32(float64(v) + float64(s.scale*d[i]))
	}
}
