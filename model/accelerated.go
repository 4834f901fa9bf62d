package model

import (
	"strings"

	"grove/compute/weight"
	"grove/weights/lora"
	"grove/weights/tensor"
)

// Accelerated is low-rank matrices that add to the products of a target's first layers. It is read-only.
type Accelerated struct {
	Layers  int // that they add to, the target's first ones
	Adapter *weight.Adapter
	Name    [32]byte // a digest of all that decides what they add
}

// The ends of the names of a pair of matrices.
const lowA, lowB = ".lora_a.weight", ".lora_b.weight"

// Accelerated loads the matrices of a draft module that add to the target's first layers: of a tensor NAME.weight of the target NAME.lora_a.weight [rank, inputs] and
// NAME.lora_b.weight [outputs, rank]. scale multiplies what they add.
func (l *Loader) Accelerated(layers int, scale float64) *Accelerated {
	a := &lora.Adapter{Path: l.info.Name}
	for _, t := range l.file.Tensors {
		root, isA := strings.CutSuffix(t.Name, lowA)
		if !isA || l.err != nil {
			continue
		}
		pair := lora.Pair{Name: root + ".weight", Scale: scale}
		pair.A, pair.B = l.factors(t, root, layers)
		a.Pairs = append(a.Pairs, pair)
	}
	if l.err == nil && len(a.Pairs) == 0 {
		l.fail("the file has no tensors NAME%s", lowA)
	}
	if l.err != nil {
		return nil
	}
	packed, err := Adapt(l.Target(), l.weights.Pool(), a)
	if err != nil {
		l.wrap(err)
		return nil
	}
	return &Accelerated{Layers: layers, Adapter: packed, Name: a.Digest()}
}

// factors returns both matrices of a tensor of the target, of which t is the first, read.
func (l *Loader) factors(t tensor.View, root string, layers int) (a, b tensor.View) {
	name := root + ".weight"
	to := l.Target().adaptable[name]
	if n, _, ok := ofBlock(name); !ok || n >= layers || to.lookup || len(to.parts) == 0 {
		l.fail("%s: the target has no matrix of this name in its first %d layers to which a product can be added", tensor.Label(t.Name), layers)
		return a, b
	}
	if len(t.Shape) != 2 || t.Shape[0] > lora.MaxRank {
		l.fail("%s has shape %v; it must be a matrix of 1 to %d rows", tensor.Label(t.Name), t.Shape, lora.MaxRank)
		return a, b
	}
	out := 0
	for _, part := range to.parts {
		out += part.Out()
	}
	a, _ = l.view(t.Name, t.Shape[0], to.parts[0].In())
	b, _ = l.view(root+lowB, out, t.Shape[0])
	if l.err == nil {
		l.tally(a)
		l.tally(b)
		l.info.Bytes += 4 * (a.Elems() + b.Elems())
	}
	return a, b
}
