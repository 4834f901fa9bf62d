package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/model"
)

func init() { model.Register("gpt-oss", openGPTOSS) }

// gptOSS is gpt-oss (OpenAI 2025): every other layer has a sliding window, every head an attention sink, and
// experts with biases are chosen by a softmax over their own logits and gated by a clamped SwiGLU.
type gptOSS struct {
	info    *model.Info
	hparams model.Hyperparameters
	head    model.Head
	layers  []gptOSSLayer
}

type gptOSSLayer struct {
	attnNorm compute.Vector
	attn     model.Attention
	ffnNorm  compute.Vector
	experts  model.Experts
}

// gptOSSPeriod is the number of layers from one without a window to the next.
const gptOSSPeriod = 2

func openGPTOSS(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	ffn := l.Count("expert_feed_forward_length", 1, 1<<18)
	l.Windows(l.Count("attention.sliding_window", 1, 1<<24), gptOSSPeriod)
	config := l.RopeConfig(s, true)
	config.Fractional = true // as in the authors' code; files do not say it
	rope := l.NewRope(config)
	m := &gptOSS{info: l.Info(), hparams: s, head: l.Head(s)}
	for i := 0; i < s.Layers && l.OK(); i++ {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
		l.Need(name("attn_q.bias"), name("attn_k.bias"), name("attn_v.bias"), name("attn_output.bias"),
			name("ffn_gate_inp.bias"), name("ffn_gate_exps.bias"), name("ffn_up_exps.bias"), name("ffn_down_exps.bias"))
		layer := gptOSSLayer{
			attnNorm: l.Vector(name("attn_norm.weight"), s.Width), attn: l.Attention(s, i, rope),
			ffnNorm: l.Vector(name("post_attention_norm.weight"), s.Width), experts: l.Experts(s, i, ffn),
		}
		layer.attn.Sinks = l.Vector(name("attn_sinks.weight"), s.Heads)
		m.layers = append(m.layers, layer)
	}
	return m
}

// Info implements [model.Model].
func (m *gptOSS) Info() *model.Info { return m.info }

// Lend implements [model.Lender].
func (m *gptOSS) Lend() model.Lent {
	return m.head.Lent(1, m.hparams.Eps, 1, 0)
}

// Forward implements [model.Model].
func (m *gptOSS) Forward(x *compute.Exec) {
	eps := m.hparams.Eps
	x.Embed(m.head.Embed, 1)
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		stream = x.Add(stream, l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, eps)))
		stream = x.Add(stream, l.experts.Clamped(x, x.RMSNorm(stream, l.ffnNorm, eps)))
		x.Leave(stream)
	}
	x.Output(m.head.Norm, eps, m.head.Output)
}
