// perceptron.go computes small perceptrons of two layers, such as the filter of a canvas, with sums in order (N1).

package compute

// Perceptron has two layers with a ReLU between them. It is read-only.
type Perceptron struct {
	Inputs       int
	Hidden       int
	In, InBias   []float32 // Hidden times Inputs, and Hidden
	Out, OutBias []float32 // as many rows of Hidden as there are outputs, and their biases
}

// Score writes the outputs for some inputs.
func (p *Perceptron) Score(outputs, inputs []float32) {
	hidden := make([]float32, p.Hidden)
	affine(hidden, inputs, p.In, p.InBias)
	for i := range hidden {
		hidden[i] = max(0, hidden[i])
	}
	affine(outputs, hidden, p.Out, p.OutBias)
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
