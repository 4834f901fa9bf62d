package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() {
	model.Register("qwen3next", openQwen3Next)
	model.Register("qwen35", openQwen35)
	model.Register("qwen35moe", openQwen35)
}

// qwenPeriod is the number of layers from one that attends to the next, where the file does not say.
const qwenPeriod = 4

// openQwen3Next opens Qwen 3 Next (Qwen team 2025): gated delta nets, and in every fourth layer attention with a gate, whose heads rotate in
// part; a mixture in every layer, with a shared expert that each row weighs.
func openQwen3Next(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	if s.Experts == 0 {
		l.Fail("%s.expert_count is 0 or missing", l.Info().Arch)
	}
	return openQwen(l, s, loadDeltaNet(l, s, false), (*deltaNet).qwen3Next)
}

// openQwen35 opens Qwen 3.5 (Qwen team 2026), text only, and its mixture: the layers of Qwen 3 Next, with a plain feed-forward block where there
// are no experts, and other tensors. Its heads of values lie in the order of llama.cpp's files.
func openQwen35(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	l.Sections(s)
	return openQwen(l, s, loadDeltaNet(l, s, true), (*deltaNet).qwen35)
}

// openQwen opens a stack of gated delta nets and attention. first loads the first products of a delta net.
func openQwen(l *model.Loader, s model.Hyperparameters, d deltaNet, first func(d *deltaNet, l *model.Loader, layer int) []compute.Projection) model.Model {
	recurrent, ok := l.LayerBools("attention.recurrent_layers")
	period := l.CountOr("full_attention_interval", qwenPeriod, 1, 1<<10)
	l.SplitPredictors(&s)
	feed := qwenFeed(l, s)
	rope := l.Rope(s, true)
	layer := func(i int) []sublayer {
		mixer := sub(l, s, i, "attn_norm")
		switch attends := (i+1)%period == 0; {
		case i >= s.Layers, ok && !recurrent[i], !ok && attends:
			a := l.GatedAttention(s, i, rope)
			mixer.blocks = []hybridBlock{&a}
		default:
			l.Info().Layers[i] = kv.Layer{}
			mixer.blocks = []hybridBlock{d.load(l, i, first(&d, l, i))}
		}
		return []sublayer{mixer, sub(l, s, i, "post_attention_norm", feed(i)...)}
	}
	m := hybridOpenDecoder(l, s, layer)
	l.Predictors(s, func(i int) model.Block { return &layerBlock{m, layer(i)} })
	return m
}

// qwenFeed returns a function that loads the feed-forward blocks of a layer.
func qwenFeed(l *model.Loader, s model.Hyperparameters) func(layer int) []hybridBlock {
	if s.Experts == 0 {
		return func(layer int) []hybridBlock { return []hybridBlock{&gatedMLP{l.MLP(s, layer)}} }
	}
	ffn := l.CountOr("expert_feed_forward_length", s.FFN/max(1, s.ExpertsPerToken), 1, 1<<18)
	shared := l.CountOr("expert_shared_feed_forward_length", 0, 0, 1<<18)
	if shared == 0 {
		shared = s.FFN
	}
	return func(layer int) []hybridBlock {
		return []hybridBlock{&hybridMixture{l.Experts(s, layer, ffn)}, &hybridMixture{l.SharedExpert(s, layer, shared)}}
	}
}

// qwen35 loads the first products of a layer of Qwen 3.5.
func (d *deltaNet) qwen35(l *model.Loader, layer int) []compute.Projection {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	return []compute.Projection{
		l.Projection(name("attn_qkv"), d.channels(), d.width), l.Projection(name("attn_gate"), d.heads*d.size, d.width),
		l.Projection(name("ssm_beta"), d.heads, d.width), l.Projection(name("ssm_alpha"), d.heads, d.width),
	}
}

// qwen3Next loads the first products of a layer of Qwen 3 Next. Old files have all but strengths and decays in one tensor, by the heads of keys:
// a query, a key, and the values and gates of the value heads that read them. Strengths and decays lie so in every file.
func (d *deltaNet) qwen3Next(l *model.Loader, layer int) []compute.Projection {
	name := func(t string) string { return fmt.Sprintf("blk.%d.%s", layer, t) }
	group := d.heads / max(1, d.keys) // value heads of a head of keys
	var ps []compute.Projection
	if l.Has(name("attn_qkv.weight")) {
		ps = []compute.Projection{l.Projection(name("attn_qkv"), d.channels(), d.width), l.Projection(name("attn_gate"), d.heads*d.size, d.width)}
	} else {
		part := func(first, n int) (rows []model.Rows) {
			for k := range d.keys {
				rows = append(rows, model.Rows{First: k*(2+2*group)*d.size + first*d.size, N: n * d.size})
			}
			return rows
		}
		qkv := append(append(part(0, 1), part(1, 1)...), part(2, group)...)
		ps = l.Gather(name("ssm_in"), d.channels()+d.heads*d.size, d.width, qkv, part(2+group, group))
	}
	beta, alpha := make([]model.Rows, d.keys), make([]model.Rows, d.keys)
	for k := range beta {
		beta[k], alpha[k] = model.Rows{First: 2 * k * group, N: group}, model.Rows{First: (2*k + 1) * group, N: group}
	}
	return append(ps, l.Gather(name("ssm_ba"), 2*d.heads, d.width, beta, alpha)...)
}
