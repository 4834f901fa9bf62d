package arch

import (
	"math"

	"grove/internal/model"
)

func init() {
	model.Register("minicpm", openMiniCPM)
	model.Register("minicpm3", openMiniCPM3)
}

// miniCPMScales are the scales of MiniCPM (Hu et al. 2024, section 3), which old files lack.
func miniCPMScales(s model.Hyperparameters) scales {
	return scales{embed: 12, block: float32(1.4 / math.Sqrt(float64(max(1, s.Layers)))), logits: 256 / float32(max(1, s.Width))}
}

// openMiniCPM opens MiniCPM 1 and 4 (Hu et al. 2024; MiniCPM team 2025), dense or a mixture of experts: Llama's layers with
// scales of embeddings, of what a block adds and of logits.
func openMiniCPM(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, false)
	m := openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		layer.feedForward(l, s, i)
		return layer
	})
	m.scales = readScales(l, miniCPMScales(s))
	return m
}

// readScales reads scales, which are other where a file lacks them.
func readScales(l *model.Loader, other scales) scales {
	return scales{
		embed: scaleOr(l, "embedding_scale", float64(other.embed)), block: scaleOr(l, "residual_scale", float64(other.block)),
		logits: 1 / scaleOr(l, "logit_scale", 1/float64(other.logits)),
	}
}

// openMiniCPM3 opens MiniCPM 3 (OpenBMB 2024): the layers of DeepSeek-V2 without experts, with the scales of MiniCPM. Heads
// rotate by halves.
func openMiniCPM3(l *model.Loader) model.Model {
	s := l.LatentHyperparameters()
	config := l.RopeConfig(s.Hyperparameters, true)
	config.Dims = s.RopeSize
	m := loadDeepSeek2(l, s, l.NewRope(config), 1, mixture{hparams: s.Hyperparameters, dense: s.Layers})
	m.scales = miniCPMScales(s.Hyperparameters)
	return m
}
