package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() {
	model.Register("lfm2", openLFM2)
	model.Register("lfm2moe", openLFM2)
}

// openLFM2 opens LFM2 (Liquid AI 2025) and its mixture: a layer without heads of keys is a short convolution between two
// gates, the others attend, with normed queries and keys, in all that they see or in a window. Behind the leading layers of a mixture come experts, chosen
// by sigmoids with a bias.
func openLFM2(l *model.Loader) model.Model {
	s, layers := l.LayerHyperparameters()
	taps := l.Count("shortconv.l_cache", 2, maxTaps)
	dense, ffn := s.Layers, 0
	var router compute.Router
	if s.Experts > 0 {
		dense = l.CountOr("leading_dense_block_count", 0, 0, s.Layers)
		ffn = l.Count("expert_feed_forward_length", 1, 1<<18)
		router = l.Router(s)
		router.Norm = true
	}
	if window := l.CountOr("attention.sliding_window", 0, 0, 1<<24); window > 0 {
		for i := range layers {
			if layers[i].KVHeads > 0 && window < l.Info().Context {
				l.Info().Layers[i].Keeps = kv.Window(window)
			}
		}
	}
	rope := l.Rope(s, true)
	return openDecoderNormed(l, s, lfm2Norm(l), func(i int) []sublayer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
		mixer, feed := sub(l, s, i, "attn_norm"), sub(l, s, i, "ffn_norm")
		if layers[i].KVHeads > 0 {
			a := l.Attention(layers[i], i, rope)
			l.HeadNorms(&a)
			mixer.blocks = []hybridBlock{&a}
		} else {
			mixer.blocks = []hybridBlock{loadShortConv(l, s.Width, taps, i)}
		}
		if i < dense {
			feed.blocks = []hybridBlock{&gatedMLP{l.MLP(layers[i], i)}}
		} else {
			experts := l.Experts(s, i, ffn)
			experts.Choice = router
			experts.Choice.Bias = l.VectorIf(name("exp_probs_b.bias"), s.Experts)
			feed.blocks = []hybridBlock{&hybridMixture{experts}}
		}
		return []sublayer{mixer, feed}
	})
}

// lfm2Norm returns the name of the final norm, which files before 2026 call after the embedding.
func lfm2Norm(l *model.Loader) string {
	if l.Has("token_embd_norm.weight") {
		return "token_embd_norm.weight"
	}
	return "output_norm.weight"
}

// shortConv is LFM2's short convolution: one product makes two gates and what they gate, b, c and x; the convolution reads b x, and
// c multiplies what it gives.
type shortConv struct {
	layer int
	in    []compute.Projection // b, c, x
	conv  *compute.Conv
	out   compute.Projection
}

// loadShortConv loads the block of a layer.
func loadShortConv(l *model.Loader, width, taps, layer int) *shortConv {
	name := func(t string) string { return fmt.Sprintf("blk.%d.shortconv.%s", layer, t) }
	m := &shortConv{
		layer: layer, in: l.Projections(name("in_proj"), width, width, width, width), out: l.Projection(name("out_proj"), width, width),
	}
	w := l.Table(name("conv.weight"), width, taps)
	if l.OK() {
		m.conv = compute.NewConv(w, compute.Vector{}, width, taps, false)
		keeps(l, layer, m.conv.Keeps())
	}
	return m
}

// Forward implements [hybridBlock].
func (m *shortConv) Forward(x *compute.Exec, h compute.Buf) compute.Buf {
	p := x.Linears(m.in, h)
	b, c, u := p[0], p[1], p[2]
	return x.Linear(m.out, x.Mul(c, x.Recur(m.layer, 0, m.conv, x.Mul(b, u))))
}
