package lora

import (
	"fmt"

	"grove/weights/gguf"
	"grove/weights/tensor"
)

// Merged returns the values of a tensor of the base with all that adapters add to it, each with a scale of its own, and whether any
// adds to it.
//
// The order of arithmetic: w is the tensor's value in float32; d is the float64 sum over r of the products of B's and A's values,
// ascending; then, for each adapter in turn, w = float32(float64(w) + scale*d).
func Merged(base *gguf.File, t tensor.View, adapters []*Adapter, scales []float64) (values []float32, changed bool, err error) {
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
			if err := p.mergeInto(values, t.Shape, scales[i]); err != nil {
				return nil, false, err
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

// mergeInto adds a pair's product to the values of a tensor of the given shape.
func (p *Pair) mergeInto(w []float32, shape []int, scale float64) error {
	a, err := unpack(p.A)
	if err != nil {
		return err
	}
	b, err := unpack(p.B)
	if err != nil {
		return err
	}
	rank, out, in, experts := p.Rank(), shape[len(shape)-2], shape[len(shape)-1], 1
	if len(shape) == 3 {
		experts = shape[0]
	}
	scale *= p.Scale
	sum := make([]float64, in)
	for e := range experts {
		for o := range out {
			clear(sum)
			for r := range rank {
				if p.Lookup() { // row o of the table is B times row o of A
					x := float64(a[o*rank+r])
					for i := range sum {
						sum[i] += x * float64(b[i*rank+r])
					}
					continue
				}
				x := float64(b[(e*out+o)*rank+r])
				row := a[(e*rank+r)*in:]
				for i := range sum {
					sum[i] += x * float64(row[i])
				}
			}
			row := w[(e*out+o)*in:]
			for i, d := range sum {
				row[i] = float32(float64(row[i]) + scale*d)
			}
		}
	}
	return nil
}
