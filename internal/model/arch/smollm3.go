package arch

import "grove/internal/model"

func init() { model.Register("smollm3", openSmolLM3) }

// smolLM3Period is the number of layers from one without rotation to the next.
const smolLM3Period = 4

// openSmolLM3 opens SmolLM 3 (Hugging Face 2025): Llama's layers, of which every fourth does not rotate its heads (Yang et
// al. 2025).
func openSmolLM3(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, false)
	return openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)}
		if (i+1)%smolLM3Period == 0 {
			layer.attn.Rope = nil
		}
		return layer
	})
}
