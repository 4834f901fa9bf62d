// hybrid.go has decoders with recurrent layers, one file each: layers that advance a state row by row, beside layers
// that attend or instead of them.

package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

// hybridBlock is a part of a layer: attention, a recurrence, a feed-forward block.
type hybridBlock interface {
	// Forward returns the block's addition to the stream; h is the stream, normed, and stays as it is.
	Forward(x *compute.Exec, h compute.Buf) compute.Buf
}

// sublayer norms the stream and adds to it what its blocks give, all of which read the same normed rows.
type sublayer struct {
	norm   compute.Vector
	blocks []hybridBlock
}

// hybridDecoder is a stack of layers, each of one sublayer or of two: what mixes rows, and what feeds forward.
type hybridDecoder struct {
	info   *model.Info
	eps    float32
	head   model.Head
	layers [][]sublayer
	scales hybridScales
}

// hybridScales are factors of embeddings, of what a sublayer adds to the stream, and of logits.
type hybridScales struct{ embed, block, logits float32 }

// hybridOpenDecoder loads the embedding table, the final norm and the head. layer loads the sublayers of one layer.
func hybridOpenDecoder(l *model.Loader, s model.Hyperparameters, layer func(i int) []sublayer) *hybridDecoder {
	return openDecoderNormed(l, s, "output_norm.weight", layer)
}

// openDecoderNormed is openDecoder of a file whose final norm has another name.
func openDecoderNormed(l *model.Loader, s model.Hyperparameters, norm string, layer func(i int) []sublayer) *hybridDecoder {
	embed, output := l.Tables(s)
	m := &hybridDecoder{info: l.Info(), eps: s.Eps, head: model.Head{Embed: embed, Output: output, Norm: l.Vector(norm, s.Width)}, scales: hybridScales{1, 1, 1}}
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, layer(i))
	}
	return m
}

// sub loads the norm of a sublayer, blk.I.NAME.weight.
func sub(l *model.Loader, s model.Hyperparameters, i int, norm string, blocks ...hybridBlock) sublayer {
	return sublayer{norm: l.Vector(fmt.Sprintf("blk.%d.%s.weight", i, norm), s.Width), blocks: blocks}
}

// Info implements [model.Model].
func (m *hybridDecoder) Info() *model.Info { return m.info }

// Lend implements [model.Lender].
func (m *hybridDecoder) Lend() model.Lent {
	return m.head.Lent(m.scales.embed, m.eps, m.scales.logits, 0)
}

// Forward implements [model.Model].
func (m *hybridDecoder) Forward(x *compute.Exec) {
	x.Embed(m.head.Embed, m.scales.embed)
	for i, subs := range m.layers {
		if stream, ok := x.Enter(i); ok {
			x.Leave(m.run(x, subs, stream))
		}
	}
	if h, ok := x.Outputs(); ok {
		x.ScaledLogits(x.RMSNorm(h, m.head.Norm, m.eps), compute.Projection{Matrix: m.head.Output}, m.scales.logits, 0)
	}
}

// run returns the stream behind a layer.
func (m *hybridDecoder) run(x *compute.Exec, layer []sublayer, stream compute.Buf) compute.Buf {
	for i := range layer {
		stream = x.AddScaled(stream, m.scales.block, layer[i].forward(x, stream, m.eps))
	}
	return stream
}

// layerBlock is the layer of a predictor.
type layerBlock struct {
	m     *hybridDecoder
	layer []sublayer
}

// Forward implements [model.Block].
func (b *layerBlock) Forward(x *compute.Exec, stream compute.Buf) compute.Buf {
	return b.m.run(x, b.layer, stream)
}

// forward returns the sum of what the blocks give.
func (s *sublayer) forward(x *compute.Exec, stream compute.Buf, eps float32) compute.Buf {
	h := x.RMSNorm(stream, s.norm, eps)
	sum := s.blocks[0].Forward(x, h)
	for _, b := range s.blocks[1:] {
		sum = x.Add(sum, b.Forward(x, h))
	}
	return sum
}
