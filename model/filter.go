package model

import "grove/compute"

// mostFilter bounds the lengths of a filter's layers.
const mostFilter = 1 << 12

// CanvasFilter is a perceptron that says of each place of a block of a canvas whether what the model proposes there is right, by the probabilities that the model has at all of
// them (Learn2PD, 2025). It is read-only.
type CanvasFilter struct {
	Length     int // places of a block
	hidden     int
	in, inBias compute.Vector // hidden times Length, and hidden
	out        compute.Vector // Length times hidden
	outBias    compute.Vector
}

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
	f := &CanvasFilter{Length: int(n), hidden: hidden}
	f.in, f.inBias = l.Table(first+"weight", hidden, f.Length), l.Vector(first+"bias", hidden)
	f.out, f.outBias = l.Table(second+"weight", f.Length, hidden), l.Vector(second+"bias", f.Length)
	return f
}

// Block returns the places of a block.
func (f *CanvasFilter) Block() int { return f.Length }

// Score writes the logits that places are right, of their probabilities. Both have [CanvasFilter.Block] values.
func (f *CanvasFilter) Score(logits, probabilities []float32) {
	hidden := make([]float32, f.hidden)
	affine(hidden, probabilities, f.in.F, f.inBias.F)
	for i := range hidden {
		hidden[i] = max(0, hidden[i])
	}
	affine(logits, hidden, f.out.F, f.outBias.F)
}

// affine writes the products of rows of weights with a vector, and biases.
func affine(to, x, weights, bias []float32) {
	for i := range to {
		sum := bias[i]
		for j, w := range weights[i*len(x) : (i+1)*len(x)] {
			sum += float32(w * x[j])
		}
		to[i] = sum
	}
}
