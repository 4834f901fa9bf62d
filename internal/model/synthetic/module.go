package synthetic

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// Module describes a draft module of random weights for a target. The zero value of a field is a small default.
type Module struct {
	Family     string // one that package internal/model/module registers
	Target     Spec   // for which it drafts
	Type       tensor.Type
	Seed       uint64
	Heads      int     // medusa, hydra, chimera; 0: 3
	Blocks     int     // residual blocks of a head; clover, peagle, falcon: layers, 0: 1
	Own        bool    // heads, or the module, have outputs of their own; peagle: embeddings too
	Prefix     bool    // hydra: a layer reads the states of the text first
	Vocabulary []int32 // the tokens that it drafts, of a module with an output of its own; nil: all
	Exit       int     // kangaroo, m2r2: the target's layers that draft; 0: 1; transfer: those behind which the first row begins, each further row a layer later
	Taps       []int32 // eagle3, peagle, specblock; nil: those of the default
	Block      int     // dflash, dflare, dspark, peagle, falcon: rows of a block; 0: 5; specblock: slots; 0: 4
	Pairs      int     // falcon: pairs that the LSTM reads; 0: 1
	Causal     bool    // its rows see earlier ones alone
	Anchor     bool    // its rows draft the token behind them
	Rank       int     // dspark: of the matrices by which a draft adds to the logits behind it; 0: there are none
}

// Parts makes the module's metadata and tensors, or returns an error as [Spec.Parts] does.
func (m Module) Parts() ([]gguf.KV, []tensor.View, error) {
	m.Target = m.Target.WithDefaults()
	if m.Heads == 0 {
		m.Heads = 3
	}
	b := builder{spec: m.Target, rng: rand.New(rand.NewPCG(m.Seed, 2))}
	b.spec.Type = m.Type
	switch m.Family {
	case "medusa", "hydra":
		m.heads(&b)
	case "eagle", "eagle3", "fspad", "peagle":
		m.eagle(&b)
	case "dflash", "dflare", "dspark":
		m.block(&b)
		m.Family = "dflash"
	case "falcon":
		m.Family = "falcon-draft"
		m.falcon(&b)
	case "clover":
		m.clover(&b)
	case "chimera":
		m.chimera(&b)
	case "specblock":
		m.slots(&b)
	case "kangaroo":
		m.count(&b, "exit_layer", max(1, m.Exit))
		m.attention(&b, "blk.0.", m.Target.Width)
		b.vector("output_norm.weight", m.Target.Width)
	case "m2r2":
		m.accelerated(&b)
	case "ppd":
		m.count(&b, "block_count", m.Heads)
		b.matrix("prompt.weight", m.Heads, m.Target.Width)
	case "transfer":
		m.count(&b, "block_count", m.Heads)
		layers := make([]uint32, m.Heads)
		for k := range layers {
			layers[k] = uint32(min(m.Exit+k, m.Target.Layers-1))
			b.matrix(fmt.Sprintf("blk.%d.transfer.weight", k), m.Target.Width, m.Target.Width)
		}
		b.metadata = append(b.metadata, gguf.KV{Key: "transfer.layers", Value: gguf.ArrayOf(layers)})
	default:
		return nil, nil, fmt.Errorf("synthetic: module %q is not known", m.Family)
	}
	metadata := append([]gguf.KV{
		{Key: "general.architecture", Value: gguf.Of(m.Family)}, {Key: "general.name", Value: gguf.Of(fmt.Sprintf("random %s, seed %d", m.Family, m.Seed))},
		{Key: "heads.target.vocabulary", Value: gguf.Of(uint32(m.Target.Vocab))}, {Key: m.Family + ".embedding_length", Value: gguf.Of(uint32(m.Target.Width))},
	}, b.metadata...)
	return metadata, b.out, b.err
}

// accelerated adds low-rank matrices to two of each of the target's first layers.
func (m Module) accelerated(b *builder) {
	const rank = 4
	s := m.Target
	m.count(b, "exit_layer", max(1, m.Exit))
	for l := range max(1, m.Exit) {
		q, down := fmt.Sprintf("blk.%d.attn_q", l), fmt.Sprintf("blk.%d.ffn_down", l)
		b.matrix(q+".lora_a.weight", rank, s.Width)
		b.matrix(q+".lora_b.weight", s.Heads*s.KeySize, rank)
		b.matrix(down+".lora_a.weight", rank, s.FFN)
		b.matrix(down+".lora_b.weight", s.Width, rank)
	}
}

// count adds a number, once.
func (m Module) count(b *builder, key string, n int) {
	if slices.ContainsFunc(b.metadata, func(has gguf.KV) bool { return has.Key == m.Family+"."+key }) {
		return
	}
	b.metadata = append(b.metadata, gguf.KV{Key: m.Family + "." + key, Value: gguf.Of(uint32(n))})
}

// attention adds the hyperparameters and tensors of attention by rows of width values, and the norm before it.
func (m Module) attention(b *builder, prefix string, width int) {
	s := m.Target
	m.count(b, "attention.head_count", s.Heads)
	m.count(b, "attention.head_count_kv", s.KVHeads)
	m.count(b, "attention.key_length", s.KeySize)
	m.count(b, "feed_forward_length", s.FFN)
	m.projections(b, prefix, width)
}

// projections adds the tensors of attention, and the norm before it.
func (m Module) projections(b *builder, prefix string, width int) {
	s := m.Target
	b.matrix(prefix+"attn_q.weight", s.Heads*s.KeySize, width)
	b.matrix(prefix+"attn_k.weight", s.KVHeads*s.KeySize, width)
	b.matrix(prefix+"attn_v.weight", s.KVHeads*s.KeySize, width)
	b.matrix(prefix+"attn_output.weight", s.Width, s.Heads*s.KeySize)
	if m.Family != "eagle" && m.Family != "fspad" && (m.Family != "falcon-draft" || prefix != "blk.0.") {
		b.vector(prefix+"attn_norm.weight", s.Width)
	}
}

// feed adds a gated feed-forward block and its norm.
func (m Module) feed(b *builder, prefix string) {
	s := m.Target
	b.vector(prefix+"ffn_norm.weight", s.Width)
	b.matrix(prefix+"ffn_gate.weight", s.FFN, s.Width)
	b.matrix(prefix+"ffn_up.weight", s.FFN, s.Width)
	b.matrix(prefix+"ffn_down.weight", s.Width, s.FFN)
}

// heads adds the heads of Medusa or Hydra.
func (m Module) heads(b *builder) {
	s := m.Target
	m.count(b, "block_count", m.Heads)
	m.count(b, "residual_count", m.Blocks)
	if m.Prefix {
		m.attention(b, "prefix.", s.Width)
		m.feed(b, "prefix.")
		b.vector("prefix.output_norm.weight", s.Width)
	}
	for k := range m.Heads {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s", k, t) }
		if m.Family == "hydra" {
			b.linear(name("in"), s.Width, (k+2)*s.Width)
			b.linear(name("skip"), s.Width, (k+2)*s.Width)
		}
		for j := range m.Blocks {
			b.linear(name(fmt.Sprintf("res.%d", j)), s.Width, s.Width)
		}
		if m.Own {
			b.matrix(name("output.weight"), s.Vocab, s.Width)
		}
	}
}

// block adds a module that drafts blocks, of two layers, with norms of queries and keys; the mask token is the last one.
func (m Module) block(b *builder) {
	s, apart := m.Target, m.Family == "dflare"
	m.Family = "dflash"
	m.count(b, "block_count", 2)
	m.count(b, "block_size", cmp.Or(m.Block, 5))
	m.count(b, "mask_token_id", s.Vocab-1)
	b.metadata = append(b.metadata, gguf.KV{Key: "dflash.taps", Value: gguf.ArrayOf(m.Taps)}, gguf.KV{Key: "dflash.attention.causal", Value: gguf.Of(m.Causal)},
		gguf.KV{Key: "dflash.sample_from_anchor", Value: gguf.Of(m.Anchor)})
	if apart {
		b.floats("fusion.weight", tensor.F32, 2, len(m.Taps))
	} else {
		b.matrix("fc.weight", s.Width, len(m.Taps)*s.Width)
	}
	b.vector("hidden_norm.weight", s.Width)
	b.vector("output_norm.weight", s.Width)
	for i := range 2 {
		prefix := fmt.Sprintf("blk.%d.", i)
		if i == 0 {
			m.attention(b, prefix, s.Width)
		} else {
			m.projections(b, prefix, s.Width)
		}
		m.feed(b, prefix)
		b.vector(prefix+"attn_q_norm.weight", s.KeySize)
		b.vector(prefix+"attn_k_norm.weight", s.KeySize)
		if apart {
			b.matrix(prefix+"attn_k_target.weight", s.KVHeads*s.KeySize, s.Width)
			b.matrix(prefix+"attn_v_target.weight", s.KVHeads*s.KeySize, s.Width)
		}
	}
	if m.Own {
		b.matrix("token_embd.weight", s.Vocab, s.Width)
		b.matrix("output.weight", s.Vocab, s.Width)
	}
	if m.Rank > 0 {
		b.matrix("markov_w1.weight", s.Vocab, m.Rank)
		b.matrix("markov_w2.weight", s.Vocab, m.Rank)
		b.linear("conf_proj", 1, s.Width+m.Rank)
	}
}

// chimera adds the module of Chimera; with Own its heads have outputs.
func (m Module) chimera(b *builder) {
	s := m.Target
	m.count(b, "block_count", m.Heads)
	b.linear("trigram.in", 3*s.Width, 3*s.Width)
	b.matrix("trigram.out.weight", s.Width, 3*s.Width)
	m.attention(b, "prefix.", s.Width)
	m.feed(b, "prefix.")
	for k := range m.Heads {
		if m.Own {
			b.matrix(fmt.Sprintf("blk.%d.output.weight", k), s.Vocab, 2*s.Width)
		} else {
			b.matrix(fmt.Sprintf("blk.%d.mix.weight", k), s.Width, 2*s.Width)
		}
	}
}

// clover adds the module of Clover-2; with Own it has embeddings and a head.
func (m Module) clover(b *builder) {
	s := m.Target
	m.count(b, "block_count", max(1, m.Blocks))
	for _, cell := range []string{"mix.", "cell."} {
		b.vector(cell+"attn_norm.weight", s.Width)
		for _, name := range []string{"attn_q", "attn_k", "attn_v"} {
			b.linear(cell+name, s.Width, s.Width)
		}
	}
	for i := range max(1, m.Blocks) {
		prefix := fmt.Sprintf("blk.%d.", i)
		m.attention(b, prefix, s.Width)
		m.feed(b, prefix)
	}
	b.vector("output_norm.weight", s.Width)
	b.vector("head_norm.weight", s.Width)
	b.linear("first", s.Width, s.Width)
	b.linear("next", s.Width, 2*s.Width)
	if m.Own {
		b.matrix("token_embd.weight", s.Vocab, s.Width)
		b.matrix("output.weight", s.Vocab, s.Width)
	}
}

// slots adds the module of SpecBlock, of two layers and four slots, whose rank head has eight hidden values.
func (m Module) slots(b *builder) {
	s := m.Target
	m.count(b, "block_count", 2)
	m.count(b, "block_size", cmp.Or(m.Block, 4))
	for _, name := range []string{"fc_norm.weight", "token_norm.weight", "query_norm.weight", "output_norm.weight"} {
		b.vector(name, s.Width)
	}
	b.matrix("fc.weight", s.Width, 3*s.Width)
	b.matrix("fuse.weight", s.Width, 3*s.Width)
	b.matrix("queries.weight", cmp.Or(m.Block, 4), s.Width)
	m.attention(b, "blk.0.", s.Width)
	m.projections(b, "blk.1.", s.Width)
	b.matrix("blk.1.shift.weight", s.Width, 2*s.Width)
	m.feed(b, "blk.0.")
	m.feed(b, "blk.1.")
	b.floats("rank_in.weight", tensor.F32, 8, s.Width+15)
	b.floats("rank_in.bias", tensor.F32, 8)
	b.floats("rank_out.weight", tensor.F32, 4, 8)
	b.floats("rank_out.bias", tensor.F32, 4)
	m.ends(b)
}

// eagle adds the module of EAGLE, FSPAD, EAGLE-3 or P-EAGLE, whose mask token is the last one.
func (m Module) eagle(b *builder) {
	s := m.Target
	layers := 1
	if m.Family == "peagle" {
		layers = max(1, m.Blocks)
	}
	m.count(b, "block_count", layers)
	switch m.Family {
	case "fspad":
		m.feed(b, "fc.")
		b.matrix("blk.0.ffn_down_logits.weight", s.Width, s.FFN)
		fallthrough
	case "eagle":
		b.linear("fc", s.Width, 2*s.Width)
		m.attention(b, "blk.0.", s.Width)
	default:
		b.matrix("fc.weight", s.Width, 3*s.Width)
		b.vector("blk.0.embd_norm.weight", s.Width)
		m.attention(b, "blk.0.", 2*s.Width)
		b.vector("output_norm.weight", s.Width)
	}
	m.feed(b, "blk.0.")
	for i := 1; i < layers; i++ {
		m.projections(b, fmt.Sprintf("blk.%d.", i), s.Width)
		m.feed(b, fmt.Sprintf("blk.%d.", i))
	}
	if m.Family == "peagle" {
		m.count(b, "block_size", cmp.Or(m.Block, 5))
		m.count(b, "mask_token_id", s.Vocab-1)
		b.vector("mask_hidden.weight", 3*s.Width)
		if m.Own {
			b.matrix("token_embd.weight", s.Vocab, s.Width)
		}
	}
	m.ends(b)
}

// ends adds the vocabulary, the taps and the output of a module that may have them.
func (m Module) ends(b *builder) {
	s := m.Target
	out := s.Vocab
	if m.Vocabulary != nil {
		b.metadata = append(b.metadata, gguf.KV{Key: m.Family + ".draft_vocabulary", Value: gguf.ArrayOf(m.Vocabulary)})
		out = len(m.Vocabulary)
	}
	if m.Taps != nil {
		b.metadata = append(b.metadata, gguf.KV{Key: m.Family + ".taps", Value: gguf.ArrayOf(m.Taps)})
	}
	if m.Own {
		b.matrix("output.weight", out, s.Width)
	}
}

// falcon adds the module of Falcon, with an LSTM of two layers.
func (m Module) falcon(b *builder) {
	s, inputs := m.Target, 2*m.Target.Width
	m.count(b, "block_count", max(1, m.Blocks))
	m.count(b, "block_size", cmp.Or(m.Block, 5))
	m.count(b, "lstm_pairs", cmp.Or(m.Pairs, 1))
	for i := range 2 {
		b.linear(fmt.Sprintf("lstm.%d.ih", i), 4*s.Width, inputs)
		if b.bias(fmt.Sprintf("lstm.%d.hh.bias", i), 4*s.Width); m.Pairs > 1 {
			b.matrix(fmt.Sprintf("lstm.%d.hh.weight", i), 4*s.Width, s.Width)
		}
		inputs = s.Width
	}
	for i := range max(1, m.Blocks) {
		prefix := fmt.Sprintf("blk.%d.", i)
		m.attention(b, prefix, s.Width)
		m.feed(b, prefix)
	}
	if m.Own {
		b.matrix("output.weight", s.Vocab, s.Width)
	}
}
