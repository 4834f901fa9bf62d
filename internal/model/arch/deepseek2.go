package arch

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/compute/rotary"
	"grove/internal/model"
)

func init() {
	model.Register("deepseek2", openDeepSeek2)
	model.Register("mistral4", openMistral4)
}

// deepseek2 is DeepSeek-V2 (DeepSeek-AI 2024) and V3, and Mistral's mixtures since Large 3 (Mistral AI 2025): latent attention,
// leading layers with a plain feed-forward block, and then layers with routed and shared experts.
type deepseek2 struct {
	info    *model.Info
	hparams model.Hyperparameters
	head    model.Head
	layers  []deepseek2Layer
	scales  scales
}

type deepseek2Layer struct {
	attnNorm compute.Vector
	attn     model.LatentAttention
	ffnNorm  compute.Vector
	mlp      model.MLP // of a leading layer; the shared experts of the others, if any
	experts  model.Experts
}

func openDeepSeek2(l *model.Loader) model.Model {
	s := l.LatentHyperparameters()
	l.SplitPredictors(&s.Hyperparameters)
	config := l.RopeConfig(s.Hyperparameters, false)
	config.Dims, config.NoTemperature = s.RopeSize, true
	rope := l.NewRope(config)
	temperature := 1.0 // part of the scale of attention, by DeepSeek's own multiplier
	if config.Scaling == rotary.YaRN && l.OK() {
		temperature = rotary.Temperature(config.Factor, l.RangeOr("rope.scaling.yarn_log_multiplier", 0, 0, 10))
	}
	s.Temperature, s.TemperLength = temper(l, config.Context)
	return loadDeepSeek2(l, s, rope, temperature, loadMixture(l, s.Hyperparameters))
}

// openMistral4 opens Mistral Small 4 (Mistral AI 2026). The model chooses groups of experts by another rule than DeepSeek-V2, and
// has one.
func openMistral4(l *model.Loader) model.Model {
	if n := l.CountOr("expert_group_count", 0, 0, 1<<16); n > 1 {
		l.Fail("mistral4.expert_group_count is %d; only 1 is supported", n)
	}
	return openDeepSeek2(l)
}

// temper reads the temperature of queries, which grows with each temperature_length positions; context is the length of files that
// have none.
func temper(l *model.Loader, context int) (scale float32, length int) {
	scale, length = float32(l.RangeOr("attention.temperature_scale", 0, 0, 10)), l.CountOr("attention.temperature_length", 0, 0, 1<<30)
	if length == 0 {
		length = context
	}
	if scale > 0 && length < 1 {
		l.Fail("%s.attention.temperature_length is 0 or missing", l.Info().Arch)
	}
	return scale, length
}

// loadDeepSeek2 loads the head and the layers.
func loadDeepSeek2(l *model.Loader, s model.LatentHyperparameters, rope *compute.Rope, temperature float64, mix mixture) *deepseek2 {
	m := &deepseek2{info: l.Info(), hparams: s.Hyperparameters, head: l.Head(s.Hyperparameters), scales: scales{1, 1, 1}}
	layer := func(i int) deepseek2Layer {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s", i, t) }
		one := deepseek2Layer{
			attnNorm: l.Vector(name("attn_norm.weight"), s.Width), attn: l.LatentAttention(s, i, rope, temperature),
			ffnNorm: l.Vector(name("ffn_norm.weight"), s.Width),
		}
		one.mlp, one.experts = mix.blocks(l, i)
		return one
	}
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, layer(i))
	}
	l.Predictors(s.Hyperparameters, func(i int) model.Block { return &deepseek2Block{m, layer(i)} })
	return m
}

// deepseek2Block is the layer of a predictor.
type deepseek2Block struct {
	m     *deepseek2
	layer deepseek2Layer
}

// Forward implements [model.Block].
func (b *deepseek2Block) Forward(x *compute.Exec, stream compute.Buf) compute.Buf {
	return b.m.run(x, &b.layer, stream)
}

// Info implements [model.Model].
func (m *deepseek2) Info() *model.Info { return m.info }

// Lend implements [model.Lender].
func (m *deepseek2) Lend() model.Lent {
	return m.head.Lent(m.scales.embed, m.hparams.Eps, m.scales.logits, 0)
}

// Forward implements [model.Model].
func (m *deepseek2) Forward(x *compute.Exec) {
	x.Embed(m.head.Embed, m.scales.embed)
	for i := range m.layers {
		if stream, ok := x.Enter(i); ok {
			x.Leave(m.run(x, &m.layers[i], stream))
		}
	}
	if h, ok := x.Outputs(); ok {
		x.ScaledLogits(x.RMSNorm(h, m.head.Norm, m.hparams.Eps), compute.Projection{Matrix: m.head.Output}, m.scales.logits, 0)
	}
}

// run returns the stream behind a layer.
func (m *deepseek2) run(x *compute.Exec, l *deepseek2Layer, stream compute.Buf) compute.Buf {
	stream = x.AddScaled(stream, m.scales.block, l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, m.hparams.Eps)))
	h := x.RMSNorm(stream, l.ffnNorm, m.hparams.Eps)
	if l.experts.Choice.ExpertsPerToken > 0 {
		stream = x.AddScaled(stream, m.scales.block, l.experts.Silu(x, h))
	}
	if l.mlp.GateUp != nil {
		stream = x.AddScaled(stream, m.scales.block, l.mlp.Silu(x, h))
	}
	return stream
}
