package model

import (
	"math"
	"slices"

	"grove/internal/compute"
	"grove/internal/kernel"
)

// Limits of what is computed of a pooled state.
const (
	maxDense  = 1 << 16 // values of a layer behind the pooling
	maxLabels = 1 << 10 // values of a reranker's head
)

// Dense is a layer that is computed of a pooled state, outside the model's steps. Its weights are read-only.
type Dense struct {
	Weight     compute.Vector // Out rows of In values
	Bias       compute.Vector // empty: none
	Norm       compute.Vector // of LayerNorm without a bias, behind the activation; empty: none
	In, Out    int
	Eps        float32 // of Norm
	Activation Activation
}

// Activation is the activation of a [Dense] layer.
type Activation int

// The activations. Gelu is by the normal distribution.
const (
	Linear Activation = iota
	Tanh
	Gelu
)

// Forward returns the layer's values of x, which has In values and stays as it is.
//
// The order: each product of float64 is added to one sum of float64, ascending, the bias last; the sum is rounded to float32. The
// activation and the norm are kernels.
func (d *Dense) Forward(x []float32) []float32 {
	out := make([]float32, d.Out)
	for o := range out {
		sum := 0.0
		for i, w := range d.Weight.F[o*d.In : (o+1)*d.In] {
			sum += float64(float64(w) * float64(x[i]))
		}
		if d.Bias.Len() > 0 {
			sum += float64(d.Bias.F[o])
		}
		out[o] = float32(sum)
	}
	switch d.Activation {
	case Tanh:
		kernel.Softcap(out, 1)
	case Gelu:
		kernel.GeluErf(out, out)
	}
	if d.Norm.Len() > 0 {
		kernel.LayerNorm(out, out, d.Norm.F, nil, d.Eps)
	}
	return out
}

// Rank is the head of a reranker, which gives values of a pair of texts. It is read-only.
type Rank struct {
	Pooling Pooling  // of the pair's states
	Head    []Dense  // applied to the pooled state, one behind the other
	Softmax bool     // the values are probabilities
	Labels  []string // of the values; nil: the file has none
}

// Values returns the values of a pooled state. The first one is the score of the pair.
func (r *Rank) Values(pooled []float32) []float32 {
	for i := range r.Head {
		pooled = r.Head[i].Forward(pooled)
	}
	if r.Softmax {
		softmax(pooled)
	}
	return pooled
}

// softmax turns logits into probabilities.
func softmax(x []float32) {
	most, sum := float64(slices.Max(x)), 0.0
	for _, v := range x {
		sum += kernel.Exp64(float64(v) - most)
	}
	for i, v := range x {
		x[i] = float32(kernel.Exp64(float64(v)-most) / sum)
	}
}

// Readouts loads the layers that turn pooled states into an embedding or a score. The layers behind the pooling (dense_2, dense_3) and a reranker's head (cls, cls.norm, cls.output) that the file has become part of
// the model's description. activation is that of the head's first layer, and pooling is the one of its pairs. A file that asks to rank and
// has no head is refused.
func (l *Loader) Readouts(pooling Pooling, activation Activation) {
	i := l.info
	i.Output = i.Width
	for _, name := range []string{"dense_2", "dense_3"} {
		if d, ok := l.dense(name, i.Output, 0, maxDense); ok {
			l.feat(name+"_feat_in", d.In)
			l.feat(name+"_feat_out", d.Out)
			i.Dense, i.Output = append(i.Dense, d), d.Out
		}
	}
	l.Rank(pooling, activation)
}

// Rank loads a reranker's head as [Loader.Readouts] does.
func (l *Loader) Rank(pooling Pooling, activation Activation) {
	r := Rank{Pooling: pooling, Labels: l.labels()}
	width := l.info.Width
	if d, ok := l.dense("cls", width, 0, maxDense); ok {
		d.Activation = activation
		d.Norm, d.Eps = l.VectorIf("cls.norm.weight", d.Out), float32(l.RangeOr("attention.layer_norm_epsilon", 1e-5, 0, 1))
		r.Head, width = append(r.Head, d), d.Out
	}
	if d, ok := l.dense("cls.output", width, len(r.Labels), maxLabels); ok {
		r.Head = append(r.Head, d)
	}
	switch {
	case len(r.Head) > 0:
		l.info.Rank = &r
	case l.info.Pooling == PoolRank:
		l.fail("%s is %d (rank), and the file has neither tensor %q nor %q", l.key("pooling_type"), PoolRank, "cls.weight", "cls.output.weight")
	}
}

// dense loads the layer of a name with its bias; out is the number of its values, or 0 where the file chooses it, up to most.
func (l *Loader) dense(name string, in, out, most int) (d Dense, ok bool) {
	v, ok := l.file.Tensor(name + ".weight")
	if !ok || l.err != nil {
		return d, false
	}
	switch {
	case out > 0:
	case len(v.Shape) == 2:
		out = v.Shape[0]
	default:
		out = 1
	}
	if out < 1 || out > most {
		l.fail("tensor %q has %d rows; it must have 1 to %d", name+".weight", out, most)
		return d, false
	}
	d = Dense{In: in, Out: out, Weight: l.StackBiasIf(name+".weight", out, in), Bias: l.VectorIf(name+".bias", out)}
	l.info.Params += d.Weight.Len()
	return d, l.err == nil
}

// feat checks the size of a dense layer that the file names besides.
func (l *Loader) feat(name string, n int) {
	if f := l.CountOr(name, n, 0, math.MaxInt32); f != n && f != 0 {
		l.fail("%s is %d; the tensor has %d", l.key(name), f, n)
	}
}

// labels reads the names of a reranker's values.
func (l *Loader) labels() []string {
	labels, ok, err := l.file.Strings(l.key("classifier.output_labels"))
	if err != nil {
		l.wrap(err)
	}
	if ok && len(labels) > maxLabels {
		l.fail("%s has %d names; it must have at most %d", l.key("classifier.output_labels"), len(labels), maxLabels)
	}
	return labels
}
