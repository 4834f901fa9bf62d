package model

import "grove/internal/compute"

// mostFilter bounds the lengths of a filter's layers.
const mostFilter = 1 << 12

// CanvasFilter says of each place of a block of a canvas whether what the model proposes there is right, by the probabilities that the model has at all of
// them (Learn2PD, 2025): Score writes the logits that places are right. It is read-only.
type CanvasFilter struct{ compute.Perceptron }

// Block returns the places of a block.
func (f *CanvasFilter) Block() int { return f.Inputs }

// filter loads the filter of a model of masked diffusion, of F32 tensors diffusion.filter.N.weight and .bias with the key diffusion.filter.block_length; nil: the file has none.
func (l *Loader) filter() *CanvasFilter {
	const first, second = "diffusion.filter.0.", "diffusion.filter.1."
	n, ok, err := l.file.Uint("diffusion.filter.block_length")
	if err != nil {
		l.wrap(err)
	}
	if !ok || err != nil {
		return nil
	}
	hidden := l.Rows(first + "weight")
	if n < 1 || n > mostFilter || hidden > mostFilter {
		l.fail("diffusion.filter.block_length is %d and the filter has %d hidden places; both must be 1 to %d", n, hidden, mostFilter)
		return nil
	}
	f := &CanvasFilter{compute.Perceptron{Inputs: int(n), Hidden: hidden}}
	f.In, f.InBias = l.Table(first+"weight", hidden, f.Inputs).F, l.Vector(first+"bias", hidden).F
	f.Out, f.OutBias = l.Table(second+"weight", f.Inputs, hidden).F, l.Vector(second+"bias", f.Inputs).F
	return f
}
