package module

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
)

func init() { model.RegisterModule("hydra", openHydra) }

// hydra is heads that read the drafts before their own (Hydra, Ankner et al. 2024, section 3): head k reads the target's final state and the
// embeddings of k+1 tokens, the text's last one and the drafts behind it. A row of a head has the state as its vector, the tokens as its
// mixture, and runs the head's layer alone. Hydra++ (section 4) has a first layer of Llama's kind, which reads the states of the text; what it gives
// stands for the state.
type hydra struct {
	info   *model.Info
	hp     model.Hyperparameters
	lent   model.Lent
	prefix *prefixLayer // nil: none
	heads  []hydraHead
	own    []compute.Projection // outputs, by layer; nil: the target's head is lent
}

// hydraHead makes y = R x + SiLU(W x + b) of what it reads, and refines that by residual blocks.
type hydraHead struct {
	in, skip compute.Projection
	blocks   []compute.Projection
}

// prefixLayer is a layer of Llama's kind over the states of the text.
type prefixLayer struct {
	attnNorm, ffnNorm, norm compute.Vector
	attn                    model.Attention
	mlp                     model.MLP
}

func openHydra(l *model.Loader) model.Model {
	n, blocks, layers := l.Count("block_count", 1, maxHeads), l.CountOr("residual_count", 0, 0, maxBlocks), 0
	if l.Has("prefix.attn_q.weight") {
		layers = 1
	}
	s := l.ModuleHyperparameters(layers+n, layers > 0)
	m := &hydra{info: l.Info(), hp: s, lent: l.Lent()}
	m.info.Module = &forest.Module{Family: "hydra", Heads: n, Prefix: layers}
	if layers > 0 {
		m.prefix = openPrefix(l, s)
	}
	for k := 0; k < n && l.OK(); k++ {
		in := (k + 2) * s.Width
		m.heads = append(m.heads, hydraHead{
			in: l.Projection(fmt.Sprintf("blk.%d.in", k), s.Width, in), skip: l.Projection(fmt.Sprintf("blk.%d.skip", k), s.Width, in),
			blocks: residual(l, s.Width, k, blocks),
		})
	}
	m.own = outputs(l, s.Width, layers, n)
	return m
}

// openPrefix loads the layer that reads the states of the text.
func openPrefix(l *model.Loader, s model.Hyperparameters) *prefixLayer {
	l.KeepsKeys(s, 0)
	return &prefixLayer{
		attnNorm: l.Vector("prefix.attn_norm.weight", s.Width), ffnNorm: l.Vector("prefix.ffn_norm.weight", s.Width), norm: l.Vector("prefix.output_norm.weight", s.Width),
		attn: l.NamedAttention(s, "prefix.", 0, l.Rope(s, l.BoolOr("rope.neox", true))), mlp: l.NamedMLP(s, "prefix."),
	}
}

// Info implements [model.Model].
func (m *hydra) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *hydra) Forward(x *compute.Exec) {
	width, first := m.info.Width, 0
	x.EmbedPairs(m.lent.Embed, m.lent.EmbedScale, width, len(m.heads))
	if m.prefix != nil {
		first = 1
		if stream, ok := x.Enter(0); ok {
			x.Leave(m.prefix.forward(x, stream, m.hp.Eps))
		}
	}
	for k := range m.heads {
		h := &m.heads[k]
		if stream, ok := x.Enter(first + k); ok {
			read := x.Carried(0, (k+2)*width)
			y := x.Add(x.Silu(x.Linear(h.in, read)), x.Linear(h.skip, read))
			x.CopyHeads(stream, 0, refine(x, y, h.blocks), 0, width, 1)
			x.Leave(stream)
		}
	}
	finish(x, &m.lent, m.own)
}

// forward returns the stream behind the layer, of rows that carry a state.
func (p *prefixLayer) forward(x *compute.Exec, stream compute.Buf, eps float32) compute.Buf {
	width := p.norm.Len()
	x.CopyHeads(stream, 0, x.Carried(0, width), 0, width, 1)
	stream = x.Add(stream, p.attn.Forward(x, x.RMSNorm(stream, p.attnNorm, eps)))
	stream = x.Add(stream, p.mlp.Silu(x, x.RMSNorm(stream, p.ffnNorm, eps)))
	return x.CopyHeads(stream, 0, x.RMSNorm(stream, p.norm, eps), 0, width, 1)
}
