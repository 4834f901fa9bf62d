package arch

import (
	"grove/internal/compute/rotary"
	"grove/internal/model"
)

func init() { model.Register("mistral3", openMistral3) }

// openMistral3 opens Ministral 3 (Mistral AI 2025): Llama's layers, whose queries have a temperature that grows with their
// position. YaRN stretches positions without a temperature of its own.
func openMistral3(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	l.Refuse("attention.scale")
	config := l.RopeConfig(s, false)
	config.NoTemperature = true
	if m := l.FloatOr("rope.scaling.yarn_log_multiplier", 1); config.Scaling == rotary.YaRN && m != 0 && m != 1 {
		l.Fail("mistral3.rope.scaling.yarn_log_multiplier is %v; only 0 and 1 are supported", m)
	}
	rope := l.NewRope(config)
	temperature := float32(l.RangeOr("attention.temperature_scale", 0, 0, 10))
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		layer.attn.Temperature, layer.attn.TemperLength = temperature, config.Context
		layer.feedForward(l, s, i)
		return layer
	})
}
