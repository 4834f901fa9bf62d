// Package arch holds the architectures, one file each. Importing it registers them all.
package arch

import "grove/internal/model"

func init() { model.Register("llama", openLlama) }

// openLlama opens Llama 1 to 3 and models with equal layers, such as Mistral and Mixtral, a mixture of experts
// (Touvron et al. 2023; Jiang et al. 2024). Heads rotate by adjacent pairs.
func openLlama(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, false)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope)}
		layer.feedForward(l, s, i)
		return layer
	})
}
