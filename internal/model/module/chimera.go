package module

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
)

func init() { model.RegisterModule("chimera", openChimera) }

// chimera is heads that read all tokens (Chimera, Zeng et al. 2024, section 3). A token whose state the target has not made yet has a row that is made of
// its embedding and those of the two tokens before it, x: the trigram P(x + SiLU(W x + b)). One layer of Llama's kind reads the target's final states as rows,
// and such rows behind them; what it gives stands for the missing state. Head k reads the last state that is known and what the layer gives behind k drafts.
//
// The paper leaves the mask of the trigrams' rows open; chosen here, and trained with: each row stands at its token's place, and sees what is before it, the states of the
// text and then the trigrams of the text's last token and of the drafts of its path, and itself. Before a text's first token stands that token again.
//
// Layer 0 makes the stream of a row: the state, or a trigram; layer 1 is that of Llama's kind, and layer 2+k is head k. A row of the text has the state as its vector.
// Layer 1 keeps its keys and values and computes nothing else of it; what layer 0 gives is what heads read (Prefix 1). A row of a draft, or of the text's last token, has the
// last known state as its vector, its token, and the two tokens before it, in their order, as its mixture; it leaves out the heads of other depths.
//
// Tensors of a file: trigram.in with its bias (trimlp.0.linear), trigram.out (trimlp.1), prefix.* the layer (fast_layer1.0), and for each head either blk.N.output
// [vocabulary, 2 width] (chimera_head.N.0) or blk.N.mix [width, 2 width], what of both states the target's head reads: a product of the two is a head of the
// published kind, and the published ones begin as the target's head twice, side by side. All read the state first.
type chimera struct {
	info    *model.Info
	hp      model.Hyperparameters
	lent    model.Lent
	in, out compute.Projection // [3 width, 3 width], [width, 3 width]
	layer   moduleLayer
	mix     []compute.Projection // by head; nil: heads have outputs of their own
	own     []compute.Projection // outputs, by layer
}

// Layers of the module before its heads.
const (
	rowLayer = iota
	readLayer
	firstHead
)

func openChimera(l *model.Loader) model.Model {
	n := l.Count("block_count", 1, maxHeads)
	s := l.ModuleHyperparameters(firstHead+n, true)
	m := &chimera{info: l.Info(), hp: s, lent: l.Lent(), in: l.Projection("trigram.in", 3*s.Width, 3*s.Width), out: l.Projection("trigram.out", s.Width, 3*s.Width)}
	m.info.Module = &forest.Module{Family: "chimera", Heads: n, Prefix: rowLayer + 1}
	l.KeepsKeys(s, readLayer)
	m.layer = moduleLayer{
		attnNorm: l.Vector("prefix.attn_norm.weight", s.Width), ffnNorm: l.Vector("prefix.ffn_norm.weight", s.Width),
		attn: l.NamedAttention(s, "prefix.", readLayer, l.Rope(s, l.BoolOr("rope.neox", true))), mlp: l.NamedMLP(s, "prefix."),
	}
	if m.own = outputs(l, 2*s.Width, firstHead, n); m.own != nil {
		return m
	}
	for k := 0; k < n && l.OK(); k++ {
		m.mix = append(m.mix, l.Projection(fmt.Sprintf("blk.%d.mix", k), s.Width, 2*s.Width))
	}
	return m
}

// Info implements [model.Model].
func (m *chimera) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *chimera) Forward(x *compute.Exec) {
	width := m.info.Width
	x.EmbedPairs(m.lent.Embed, m.lent.EmbedScale, width, 2)
	if _, ok := x.Enter(rowLayer); ok {
		if stream, ok := x.Only(rowLayer, true); ok {
			x.Leave(x.CopyHeads(stream, 0, x.Carried(0, width), 0, width, 1))
		}
		if stream, ok := x.Only(rowLayer, false); ok {
			x.Leave(m.trigram(x, stream))
		}
	}
	if _, ok := x.Enter(readLayer); ok {
		if stream, ok := x.Only(readLayer, true); ok {
			m.keep(x, stream)
		}
		if stream, ok := x.Only(readLayer, false); ok {
			x.Leave(m.layer.forward(x, stream, m.hp.Eps))
		}
	}
	for k := range m.info.Module.Heads {
		if stream, ok := x.Enter(firstHead + k); ok && m.mix != nil {
			x.Leave(x.CopyHeads(stream, 0, x.Linear(m.mix[k], x.Join(x.Carried(0, width), stream)), 0, width, 1))
		}
	}
	switch h, ok := x.Outputs(); {
	case !ok:
	case m.own != nil:
		x.LogitsByLayer(x.Join(x.Carried(0, width), h), m.own)
	default:
		m.lent.Logits(x, h)
	}
}

// trigram makes the stream of rows, the embeddings of their tokens, their trigrams.
func (m *chimera) trigram(x *compute.Exec, stream compute.Buf) compute.Buf {
	width := m.info.Width
	read := x.Join(x.Carried(width, 2*width), stream)
	gram := x.Linear(m.out, x.Add(x.Silu(x.Linear(m.in, read)), read))
	return x.CopyHeads(stream, 0, gram, 0, width, 1)
}

// keep keeps the keys and values of the text's rows.
func (m *chimera) keep(x *compute.Exec, stream compute.Buf) {
	attn := &m.layer.attn
	kv := x.Linears(attn.QKV[1:3], x.RMSNorm(stream, m.layer.attnNorm, m.hp.Eps))
	x.Store(readLayer, x.Rope(kv[0], m.hp.KVHeads, attn.Rope), kv[1])
}
