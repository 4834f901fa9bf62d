package module

import (
	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
)

func init() { model.RegisterModule("clover", openClover) }

// clover is a recurrent head (Clover-2, Xiao et al. 2024, section 3; Clover, Xiao et al. 2024, sections 3.1 to 3.3). A row of the text joins the target's final state and
// the token behind it, and layers of Llama's kind make the state z of these: layers 0 to n-1 (clover.block_count). Layer n is a draft's: it makes the next
// state of its parent's, the row's vector, and of the draft's token. The layers behind it make what the head reads: layer n+1 of a state of the text, layer n+2 of
// a draft's state and its token. So rows of the text run the first n layers, the row of the first head layer n+1 with the state as its vector, and the row of a draft
// layers n and n+2, whose state is the stream behind layer n.
//
// Tensors of a file: mix.attn_norm, mix.attn_q, mix.attn_k, mix.attn_v (clover_head_mlp_rnn) and cell.* (clover_head_mlp_rnn2) the two cells; blk.N.* the layers and
// output_norm (clover_norm) the norm behind them; first (clover_head_mlp) and next (clover_head_mlp2) what the head reads, head_norm (clover_head_norm) the norm before it;
// token_embd (clover_embed_tokens) embeddings of the module's own, and output a head of its own, where it has them. Projections may have biases. Key clover.cell.head_count
// is the heads of the cells, where they are not those of the layers.
type clover struct {
	info       *model.Info
	hp         model.Hyperparameters
	lent       model.Lent
	mix, cell  cloverCell
	layers     []moduleLayer
	norm       compute.Vector
	first      compute.Projection // [width, width]
	next       compute.Projection // [width, 2 width], of the state and then the embedding
	headNorm   compute.Vector
	own        *compute.Projection // nil: the target's head is lent
	embed      *compute.Matrix
	embedScale float32
}

// cloverCell adds to a state x what a token says, as far as x and the token agree: per head, x + cos(q, k) v, with q of x and k and v of the token's embedding.
type cloverCell struct {
	norm    compute.Vector
	q, k, v compute.Projection
	sums    compute.Projection // of each head
	heads   int
	eps     float32
}

// unitEps is the least length that a query or key of a cell is divided by.
const unitEps = 1e-8

func openClover(l *model.Loader) model.Model {
	n := l.Count("block_count", 1, maxLayers)
	s := l.ModuleHyperparameters(n+3, true)
	m := &clover{info: l.Info(), hp: s, lent: l.Lent()}
	m.info.Module = &forest.Module{Family: "clover", Prefix: n}
	heads := l.CountOr("cell.head_count", max(1, s.Heads), 1, maxCellHeads)
	if l.OK() && s.Width%heads != 0 {
		l.Fail("%d heads of cells do not divide %d, the width", heads, s.Width)
	}
	m.mix, m.cell = openCell(l, s, "mix.", heads), openCell(l, s, "cell.", heads)
	rope := l.Rope(s, l.BoolOr("rope.neox", true))
	for i := 0; i < n && l.OK(); i++ {
		m.layers = append(m.layers, openLayer(l, s, i, s.Width, rope))
	}
	m.norm, m.headNorm = l.Vector("output_norm.weight", s.Width), l.Vector("head_norm.weight", s.Width)
	m.first, m.next = l.Projection("first", s.Width, s.Width), l.Projection("next", s.Width, 2*s.Width)
	m.own = ownHead(l, s, nil)
	m.embed, m.embedScale = m.lent.Embed, m.lent.EmbedScale
	if l.Has("token_embd.weight") {
		m.embed, m.embedScale = l.LookupTable("token_embd.weight", m.info.Vocabulary, s.Width), 1
	}
	return m
}

// maxCellHeads bounds the heads of a cell.
const maxCellHeads = 1024

func openCell(l *model.Loader, s model.Hyperparameters, prefix string, heads int) cloverCell {
	return cloverCell{
		norm: l.Vector(prefix+"attn_norm.weight", s.Width), heads: heads, eps: s.Eps, sums: compute.Projection{Matrix: l.HeadSums(heads, s.Width)},
		q: l.Projection(prefix+"attn_q", s.Width, s.Width), k: l.Projection(prefix+"attn_k", s.Width, s.Width), v: l.Projection(prefix+"attn_v", s.Width, s.Width),
	}
}

// Info implements [model.Model].
func (m *clover) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *clover) Forward(x *compute.Exec) {
	width, n := m.info.Width, len(m.layers)
	x.EmbedPairs(m.embed, m.embedScale, 2*width, 0) // a row carries a vector, and its embedding behind the stream's change
	for i := range m.layers {
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		if i == 0 {
			x.CopyHeads(stream, 0, m.mix.forward(x, x.Carried(0, width), stream), 0, width, 1)
		}
		if stream = m.layers[i].forward(x, stream, m.hp.Eps); i == n-1 {
			x.CopyHeads(stream, 0, x.RMSNorm(stream, m.norm, m.hp.Eps), 0, width, 1)
		}
		x.Leave(stream)
	}
	if stream, ok := x.Enter(n); ok {
		x.SetCarried(width, stream)
		x.CopyHeads(stream, 0, m.cell.forward(x, x.Carried(0, width), stream), 0, width, 1)
		x.Leave(stream)
	}
	if stream, ok := x.Enter(n + 1); ok {
		x.CopyHeads(stream, 0, x.Linear(m.first, x.Carried(0, width)), 0, width, 1)
		x.Leave(stream)
	}
	if stream, ok := x.Enter(n + 2); ok {
		x.CopyHeads(stream, 0, x.Linear(m.next, x.Join(stream, x.Carried(width, width))), 0, width, 1)
		x.Leave(stream)
	}
	headOf(x, &m.lent, m.headNorm, m.own, m.hp.Eps)
}

// forward returns the state behind a cell, of a state and the embedding of a token. It changes the state's buffer.
func (c *cloverCell) forward(x *compute.Exec, state, embed compute.Buf) compute.Buf {
	q := x.UnitHeads(x.Linear(c.q, x.RMSNorm(state, c.norm, c.eps)), c.heads, unitEps)
	k := x.UnitHeads(x.Linear(c.k, embed), c.heads, unitEps)
	gate := x.Linear(c.sums, x.Mul(q, k))
	return x.Add(state, x.MulHeads(x.Linear(c.v, embed), gate))
}
