// Package module holds the families of draft modules, one file each: small models of trained weights that read the target's states
// and borrow its embeddings and its head. Importing it registers them all.
package module

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
)

// Bounds of heads.
const (
	maxHeads  = 16 // of a file
	maxBlocks = 8  // residual blocks of a head
)

func init() { model.RegisterModule("medusa", openMedusa) }

// medusa is heads that each predict one of the next tokens from the target's final state alone (Medusa, Cai et al. 2024, section 2.1). A row has the state as
// its vector and runs one layer, its head: residual blocks x + SiLU(W x + b), and logits.
type medusa struct {
	info  *model.Info
	lent  model.Lent
	heads []medusaHead
	own   []compute.Projection // outputs of the heads; empty: the target's head is lent
}

// medusaHead is the residual blocks of a head.
type medusaHead struct{ blocks []compute.Projection }

func openMedusa(l *model.Loader) model.Model {
	n, blocks := l.Count("block_count", 1, maxHeads), l.CountOr("residual_count", 1, 0, maxBlocks)
	s := l.ModuleHyperparameters(n, false)
	m := &medusa{info: l.Info(), lent: l.Lent()}
	m.info.Module = &forest.Module{Family: "medusa", Heads: n}
	for k := 0; k < n && l.OK(); k++ {
		m.heads = append(m.heads, medusaHead{residual(l, s.Width, k, blocks)})
	}
	m.own = outputs(l, s.Width, 0, n)
	return m
}

// residual loads the residual blocks of head k.
func residual(l *model.Loader, width, k, n int) (blocks []compute.Projection) {
	for j := 0; j < n && l.OK(); j++ {
		blocks = append(blocks, l.Projection(fmt.Sprintf("blk.%d.res.%d", k, j), width, width))
	}
	return blocks
}

// outputs loads the outputs of n heads, of which the first is that of layer first: all of them, or none.
func outputs(l *model.Loader, width, first, n int) []compute.Projection {
	own := make([]compute.Projection, first, first+n)
	for k := range n {
		if p, ok := l.ProjectionIf(fmt.Sprintf("blk.%d.output", k), l.Info().Vocabulary, width); ok {
			own = append(own, p)
		}
	}
	switch len(own) - first {
	case 0:
		return nil
	case n:
		return own
	}
	l.Fail("%d of %d heads have an output (blk.K.output.weight); all of them or none must have one", len(own)-first, n)
	return nil
}

// Info implements [model.Model].
func (m *medusa) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *medusa) Forward(x *compute.Exec) {
	x.Embed(m.lent.Embed, m.lent.EmbedScale)
	for k := range m.heads {
		if stream, ok := x.Enter(k); ok {
			x.Leave(refine(x, stream, m.heads[k].blocks))
		}
	}
	finish(x, &m.lent, m.own)
}

// refine adds residual blocks to a stream.
func refine(x *compute.Exec, stream compute.Buf, blocks []compute.Projection) compute.Buf {
	for _, b := range blocks {
		stream = x.Add(stream, x.Silu(x.Linear(b, stream)))
	}
	return stream
}

// finish ends a step of heads with outputs of their own, or with the target's.
func finish(x *compute.Exec, lent *model.Lent, own []compute.Projection) {
	h, ok := x.Outputs()
	switch {
	case !ok:
	case own != nil:
		x.LogitsByLayer(h, own)
	default:
		lent.Logits(x, h)
	}
}
