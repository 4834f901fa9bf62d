package arch

import "grove/internal/model"

func init() {
	model.Register("dream", openDream)
	model.Register("llada", openLLaDA)
	model.Register("llada-moe", openLLaDAMoE)
	model.Register("rnd1", openRND1)
	model.Register("sdar", openSDAR)
	model.Register("sdar_moe", openSDARMoE)
}

// openDream opens Dream (Ye et al. 2025), a masked diffusion model that began as a Qwen 2.5: a row gives the token behind its own place.
func openDream(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	rope := l.Rope(s, true)
	m := openDecoder(l, s, func(i int) decoderLayer { return decoderLayer{attn: l.Attention(s, i, rope), mlp: l.MLP(s, i)} })
	l.MaskedDiffusion()
	return m
}

// openLLaDA opens LLaDA (Nie et al. 2025), a masked diffusion model of Llama's layers. Heads rotate by adjacent pairs.
func openLLaDA(l *model.Loader) model.Model {
	m := openLlama(l)
	l.MaskedDiffusion()
	return m
}

// openLLaDAMoE opens LLaDA-MoE (2025): a mixture in every layer, whose weights are not shares among the chosen, and normed heads.
func openLLaDAMoE(l *model.Loader) model.Model {
	s := l.Hyperparameters()
	needExperts(l, s)
	ffn := l.CountOr("expert_feed_forward_length", s.FFN, 1, 1<<18)
	router := l.Router(s)
	rope := l.Rope(s, true)
	m := openDecoder(l, s, func(i int) decoderLayer {
		layer := decoderLayer{attn: l.Attention(s, i, rope), experts: l.Experts(s, i, ffn)}
		layer.experts.Choice = router
		l.HeadNorms(&layer.attn)
		return layer
	})
	l.MaskedDiffusion()
	return m
}

// openRND1 opens RND1 (Radical Numerics 2025), a masked diffusion model that began as a Qwen 3 with a mixture of experts: a row gives the token
// behind its own place.
func openRND1(l *model.Loader) model.Model {
	m := openQwen3MoE(l)
	l.MaskedDiffusion()
	return m
}

// openSDAR opens SDAR (Cheng et al. 2025) and TraDo, models of block diffusion that began as a Qwen 3. The name and the keys are grove's: no other program has files of it.
func openSDAR(l *model.Loader) model.Model {
	m := openQwen3(l)
	l.BlockDiffusion()
	return m
}

// openSDARMoE opens SDAR of Qwen 3 with a mixture of experts in every layer.
func openSDARMoE(l *model.Loader) model.Model {
	m := openQwen3MoE(l)
	l.BlockDiffusion()
	return m
}
