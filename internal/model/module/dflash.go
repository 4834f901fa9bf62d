package module

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kernel"
	"grove/internal/kv"
	"grove/internal/model"
	"grove/internal/text/token"
)

// Bounds of modules that draft blocks.
const (
	maxTaps  = 16
	maxBlock = 64      // rows of a block
	maxReach = 1 << 30 // tokens of a window
)

// llamaDFlash is the architecture of such modules in files of ik_llama.cpp. Names of its keys begin with dflash. once more, layers are counted from 0, and two
// tensors have longer names.
const llamaDFlash = "dflash-draft"

func init() {
	model.RegisterModule("dflash", openDFlash)
	model.RegisterModule(llamaDFlash, openDFlash)
}

// dflash drafts a block of tokens in one pass (DFlash, 2026). A row of the context has the target's stream at some places as its vector: a product and a
// norm make one vector of it, of which every layer makes the row's keys and values. It has no other part in the layers, so it costs little
// and depends on its own place alone. A block is the text's last token and mask tokens, rows without a vector: they see the context and each other, or the
// earlier ones where the file has attention.causal. Each gives logits of the token at its own place, or with sample_from_anchor of the next one.
//
// Keys of a file, behind its architecture: block_count, block_size, mask_token_id, taps (k: the stream behind the first k layers), sample_from_anchor,
// attention.causal, attention.sliding_window and its pattern, and those of attention. Tensors: fc [width, taps x width], hidden_norm, output_norm,
// blk.N.attn_norm, attn_q, attn_k, attn_v, attn_output, ffn_norm, ffn_gate, ffn_up, ffn_down; if any: attn_q_norm, attn_k_norm, attn_sinks, biases;
// token_embd and output, which else are the target's; draft_vocabulary goes with output.
//
// DFlare (2026) has fusion.weight [layers, taps] in place of fc: each layer reads a sum of the taps, weighted by the softmax of its row; and
// blk.N.attn_k_target and attn_v_target make the context's keys and values. It may have blk.N.hidden_norm in place of hidden_norm. DSpark (2026) has markov_w1 [vocabulary, rank] and markov_w2 [vocabulary of drafts, rank]:
// each token adds a product of the two to the logits behind it. Its conf_proj [1, width+rank] with a bias, if any, gives of the state of a block's
// row and of the token's row of markov_w1, as a logit, how likely the draft is to be accepted. Its rows draft the next token unless the file says otherwise.
type dflash struct {
	info       *model.Info
	hp         model.Hyperparameters
	embed      *compute.Matrix
	embedScale float32
	lent       model.Lent
	join       *compute.Projection // nil: layers weigh the taps
	mix        [][]float32         // by layer: the weights of the taps
	hiddenNorm []compute.Vector    // by layer
	layers     []blockLayer
	norm       compute.Vector
	own        *compute.Projection // nil: the target's head is lent
	order      *orderLayer         // nil: none
}

// blockLayer is a layer of Llama's kind with another source of the context's keys and values.
type blockLayer struct {
	moduleLayer
	context model.Attention // of which the keys and values are used
}

// orderLayer is a layer for rows of a token by themselves.
type orderLayer struct {
	in    *compute.Matrix // [vocabulary, rank]
	trust *compute.Projection
	heads []compute.Projection // by layer: that of the block, and that of this layer
}

func openDFlash(l *model.Loader) model.Model {
	if l.Has("enc.output_norm.weight") {
		l.Fail("tensor %q is that of a module of DeepSeek-V4's kind, whose layers are not supported", "enc.output_norm.weight")
	}
	layers, prefix := l.Count("block_count", 1, maxLayers), ""
	s := l.ModuleHyperparameters(layers, true)
	m := &dflash{info: l.Info(), hp: s, lent: l.Lent()}
	m.embed, m.embedScale = m.lent.Embed, m.lent.EmbedScale
	b := &forest.Module{Family: "dflash"}
	join, hidden := "fc", "hidden_norm.weight"
	if m.info.Arch == llamaDFlash {
		prefix, join, hidden = "dflash.", "dflash_fc", "dflash_hidden_norm.weight"
		b.Taps = layerTaps(l, prefix+"target_layer_ids", 0, maxTaps)
		refuseLlama(l)
	} else {
		b.Taps = layerTaps(l, "taps", 1, maxTaps)
	}
	vocabulary, ordered := draftVocabulary(l), l.Has("markov_w1.weight")
	b.Vocabulary = vocabulary
	b.Block = &forest.Block{
		Size: l.Count(prefix+"block_size", 2, maxBlock), Mask: token.ID(l.Count(prefix+"mask_token_id", 0, m.info.Vocabulary-1)),
		Own: !l.BoolOr("sample_from_anchor", ordered), Sees: !l.BoolOr("attention.causal", false),
	}
	m.info.Module = b
	if l.Has("fusion.weight") {
		b.Family, m.mix = "dflare", fusion(l, layers, len(b.Taps))
	} else {
		p := l.Projection(join, s.Width, len(b.Taps)*s.Width)
		m.join = &p
	}
	m.hiddenNorm, m.norm = hiddenNorms(l, hidden, layers, m.mix != nil), l.Vector("output_norm.weight", s.Width)
	if l.Has("token_embd.weight") {
		m.embed, m.embedScale = l.Matrix("token_embd.weight", m.info.Vocabulary, s.Width), 1
	}
	m.own = ownHead(l, s, vocabulary)
	rope := l.Rope(s, l.BoolOr("rope.neox", true))
	for i := 0; i < layers && l.OK(); i++ {
		m.layers = append(m.layers, openBlockLayer(l, s, i, m.mix != nil, rope))
	}
	l.Windows(l.CountOr("attention.sliding_window", 0, 0, maxReach), 0)
	if ordered && l.OK() {
		m.openOrder(l)
	}
	return m
}

// hiddenNorms loads the norm of what the layers read of the target: one of that name, or where they may be apart those of the layers.
func hiddenNorms(l *model.Loader, name string, layers int, apart bool) []compute.Vector {
	out := make([]compute.Vector, layers)
	for i := range out {
		own := fmt.Sprintf("blk.%d.hidden_norm.weight", i)
		switch {
		case apart && !l.Has(name) && l.Has(own):
			out[i] = l.Vector(own, l.Info().Width)
		case i > 0 && l.Has(name):
			out[i] = out[0]
		default:
			out[i] = l.Vector(name, l.Info().Width)
		}
	}
	return out
}

// refuseLlama refuses a file of ik_llama.cpp with what is not known here.
func refuseLlama(l *model.Loader) {
	if l.BoolOr("dflash.laguna", false) {
		l.Fail("%s.dflash.laguna is set; norms of each place of the target's stream are not supported", llamaDFlash)
	}
	base := l.FloatOr("rope.freq_base", 10000)
	if context := l.FloatOr("dflash.backbone_rotary_base", base); context != base {
		l.Fail("%s.dflash.backbone_rotary_base is %v and rope.freq_base is %v; one rotation for the context and another one for the block are not supported", llamaDFlash, context, base)
	}
}

// fusion returns for each layer the softmax of its row of tensor fusion, the weights of the taps.
func fusion(l *model.Loader, layers, taps int) [][]float32 {
	all := l.Table("fusion.weight", layers, taps).Floats()
	if !l.OK() {
		return nil
	}
	out := make([][]float32, layers)
	for i := range out {
		row := all[i*taps : (i+1)*taps]
		high, sum := row[0], 0.0
		for _, x := range row {
			high = max(high, x)
		}
		for _, x := range row {
			sum += kernel.Exp64(float64(x) - float64(high))
		}
		for _, x := range row {
			out[i] = append(out[i], float32(kernel.Exp64(float64(x)-float64(high))/sum))
		}
	}
	return out
}

// openBlockLayer loads layer i; apart says that it has projections for the context.
func openBlockLayer(l *model.Loader, s model.Hyperparameters, i int, apart bool, rope *compute.Rope) blockLayer {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
	l.KeepsKeys(s, i)
	d := blockLayer{moduleLayer: moduleLayer{attnNorm: l.Vector(name("attn_norm.weight"), s.Width), attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)}}
	ffnNorm := name("ffn_norm.weight")
	if l.Has(name("post_attention_norm.weight")) {
		ffnNorm = name("post_attention_norm.weight") // as ik_llama.cpp names it
	}
	d.ffnNorm = l.Vector(ffnNorm, s.Width)
	d.attn.QNorm, d.attn.KNorm = l.VectorIf(name("attn_q_norm.weight"), s.KeySize), l.VectorIf(name("attn_k_norm.weight"), s.KeySize)
	d.attn.Sinks = l.VectorIf(name("attn_sinks.weight"), s.Heads)
	if d.context = d.attn; apart {
		d.context.QKV = []compute.Projection{
			d.attn.QKV[0], l.Projection(name("attn_k_target"), s.KVHeads*s.KeySize, s.Width), l.Projection(name("attn_v_target"), s.KVHeads*s.ValueSize, s.Width),
		}
	}
	return d
}

// openOrder loads the layer for rows of a token, the last one, which keeps nothing.
func (m *dflash) openOrder(l *model.Loader) {
	rank, b := l.Columns("markov_w1.weight", m.hp.Width-1), m.info.Module
	o := &orderLayer{in: l.Matrix("markov_w1.weight", m.info.Vocabulary, rank)}
	if p, ok := l.ProjectionIf("conf_proj", 1, m.hp.Width+rank); ok {
		o.trust, b.Block.Trust = &p, rank
	}
	head := m.lent.Head
	switch {
	case m.own != nil:
		head = *m.own
	case m.lent.Scale != 1 || m.lent.Softcap != 0:
		l.Fail("tensor %q is there and the target's logits are scaled (by %v) or capped (at %v); a module with this tensor has a head of its own then", "markov_w1.weight", m.lent.Scale, m.lent.Softcap)
		return
	}
	out := m.info.Vocabulary
	if b.Vocabulary != nil {
		out = len(b.Vocabulary)
	}
	o.heads = make([]compute.Projection, len(m.layers)+1)
	o.heads[len(m.layers)-1], o.heads[len(m.layers)] = head, l.Projection("markov_w2", out, rank)
	m.info.Layers = append(m.info.Layers, kv.Layer{})
	m.order, b.Block.Order, b.Family = o, true, "dspark"
}

// Info implements [model.Model].
func (m *dflash) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *dflash) Forward(x *compute.Exec) {
	x.EmbedPairs(m.embed, m.embedScale, len(m.info.Module.Taps)*m.hp.Width, 0)
	for i := range m.layers {
		if _, ok := x.Enter(i); !ok {
			continue
		}
		if stream, ok := x.Only(i, true); ok {
			m.layers[i].keep(x, i, m.context(x, i, stream), &m.hp)
		}
		if stream, ok := x.Only(i, false); ok {
			h := m.layers[i].forward(x, stream, m.hp.Eps)
			if i == len(m.layers)-1 {
				x.CopyHeads(h, 0, x.RMSNorm(h, m.norm, m.hp.Eps), 0, m.hp.Width, 1)
			}
			x.Leave(h)
		}
	}
	if m.order == nil {
		headOf(x, &m.lent, compute.Vector{}, m.own, m.hp.Eps)
		return
	}
	if stream, ok := x.Enter(len(m.layers)); ok {
		m.order.forward(x, stream)
	}
	if h, ok := x.Outputs(); ok {
		x.LogitsByLayer(h, m.order.heads)
	}
}

// keep keeps the keys and values of the rows of the context in layer i; h is what they are made of.
func (d *blockLayer) keep(x *compute.Exec, i int, h compute.Buf, s *model.Hyperparameters) {
	kv := x.Linears(d.context.QKV[1:3], h)
	k := kv[0]
	if d.context.KNorm.Len() > 0 {
		k = x.NormHeads(k, s.KVHeads, d.context.KNorm, s.Eps)
	}
	x.Store(i, x.Rope(k, s.KVHeads, d.context.Rope), kv[1])
}

// context returns what the rows of the context are in layer i, whose stream is theirs.
func (m *dflash) context(x *compute.Exec, i int, stream compute.Buf) compute.Buf {
	width := m.hp.Width
	if m.join == nil {
		sum := x.Scale(x.Carried(0, width), m.mix[i][0])
		for t, w := range m.mix[i][1:] {
			x.AddScaled(sum, w, x.Carried((t+1)*width, width))
		}
		return x.RMSNorm(sum, m.hiddenNorm[i], m.hp.Eps)
	}
	if i == 0 { // the rows keep it as their stream
		g := x.RMSNorm(x.Linear(*m.join, x.Carried(0, len(m.info.Module.Taps)*width)), m.hiddenNorm[0], m.hp.Eps)
		stream = x.CopyHeads(stream, 0, g, 0, width, 1)
		x.Leave(stream)
	}
	return stream
}

// forward makes the stream of the rows begin with their tokens' rows of the table, and behind these what is expected of the next draft.
func (o *orderLayer) forward(x *compute.Exec, stream compute.Buf) {
	token := x.Lookup(o.in, 1)
	x.CopyHeads(stream, 0, token, 0, o.in.In(), 1)
	if o.trust != nil {
		trust := x.Linear(*o.trust, x.Join(x.Carried(0, o.trust.Matrix.In()-o.in.In()), token))
		x.CopyHeads(stream, o.in.In(), trust, 0, 1, 1)
	}
	x.Leave(stream)
}
