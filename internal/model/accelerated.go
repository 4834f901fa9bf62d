package model

import (
	"strings"

	"grove/internal/compute/weight"
	"grove/internal/weights/gguf"
	"grove/internal/weights/lora"
	"grove/internal/weights/tensor"
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
		down, up := l.factors(t, root, layers)
		a.Pairs = append(a.Pairs, lora.Pair{Name: root + ".weight", A: down, B: up, Scale: scale})
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
	to := l.Target().adaptable[root+".weight"]
	if n, _, ok := gguf.OfBlock(t.Name); !ok || n >= layers || to.lookup || len(to.parts) == 0 || to.parts[0].Experts() > 1 {
		l.fail("%s: the target has no matrix of this name in its first %d layers to which a product can be added", tensor.Label(t.Name), layers)
		return a, b
	}
	out, rank := 0, l.Columns(root+lowB, lora.MaxRank)
	for _, part := range to.parts {
		out += part.Out()
	}
	a, _ = l.view(t.Name, rank, to.parts[0].In())
	b, _ = l.view(root+lowB, out, rank)
	return a, b
}
