package hf

import ()

// routed is the settings of such a mixture.
type routed struct {
	experts, ffn, shared int // shared is the inner values of all shared experts
	dense                int // leading layers without experts
}

// routed reads and adds the settings. Experts are chosen by sigmoids unless the folder says softmax.
func (b *mixturesBuilder) routed(expertsKey, sharedKey string, s Shape) routed {
	c := b.Config
	if !c.Has(expertsKey) {
		return routed{dense: s.Layers}
	}
	m := routed{
		experts: b.Experts(expertsKey), ffn: c.Count("moe_intermediate_size", 1, MaxWidth),
		dense: c.CountOr("first_k_dense_replace", 0, 0, s.Layers),
	}
	n := c.CountOr(sharedKey, 0, 0, 1<<8)
	m.shared = n * m.ffn
	b.SetCount(".expert_feed_forward_length", m.ffn)
	b.SetCount(".expert_shared_count", n)
	b.SetCount(".leading_dense_block_count", m.dense)
	b.SetFloat(".expert_weights_scale", c.FloatOr("routed_scaling_factor", 1, 0, 1e4))
	FolderSet(b.DecoderBuilder.FolderBuilder, ".expert_weights_norm", c.BoolOr("norm_topk_prob", false))
	return m
}

// gating adds how experts are chosen: by sigmoids, or by softmax.
func (b *mixturesBuilder) gating(other string) {
	const softmax, sigmoid = 1, 2
	c := b.Config
	key := c.First("scoring_func", "score_function")
	c.Only(key, "softmax", "sigmoid")
	kind := softmax
	if c.TextOr(key, other) == "sigmoid" {
		kind = sigmoid
	}
	b.SetCount(".expert_gating_func", kind)
	if n := c.CountOr("n_group", 1, 1, MaxExperts); n > 1 {
		b.SetCount(".expert_group_count", n)
		b.SetCount(".expert_group_used_count", c.Count("topk_group", 1, n))
	}
}

// routedBlock adds the feed-forward blocks of a layer. bias names the numbers that join the choice, if the folder has them.
func (b *mixturesBuilder) routedBlock(s Shape, m routed, layer int, to, from func(string) string, bias string) {
	if layer < m.dense {
		b.Gated(s, to, from)
		return
	}
	b.EitherMixture(s, m.experts, m.ffn, to, from)
	if b.Has(from(bias)) {
		b.Norm(to("exp_probs_b.bias"), from(bias), m.experts, 0)
	}
	if m.shared > 0 {
		b.SharedExpert(s, m.shared, to, from("mlp.shared_experts."))
	}
}

const correction = "mlp.gate.e_score_correction_bias"

// predictor adds what a layer that predicts further tokens has besides its blocks.
func (b *mixturesBuilder) predictor(s Shape, to, from func(string) string) {
	b.predictorOf(s, 0, "shared_head.head.weight", "shared_head.norm.weight", to, from)
}

// predictorOf is predictor for a family whose norms add a number to their weights, and that has the head and its norm by other names.
func (b *mixturesBuilder) predictorOf(s Shape, add float32, head, norm string, to, from func(string) string) {
	b.joins(s, add, to, from)
	b.Norm(to("nextn.shared_head_norm.weight"), from(norm), s.Width, add)
	b.CopyIf(to("nextn.embed_tokens.weight"), from("embed_tokens.weight"), b.Vocab, s.Width)
	b.CopyIf(to("nextn.shared_head_head.weight"), from(head), b.Vocab, s.Width)
}

// joins adds what joins the embedding of a token and the stream of the token before.
func (b *mixturesBuilder) joins(s Shape, add float32, to, from func(string) string) {
	b.Copy(to("nextn.eh_proj.weight"), from("eh_proj.weight"), s.Width, 2*s.Width)
	b.Norm(to("nextn.enorm.weight"), from("enorm.weight"), s.Width, add)
	b.Norm(to("nextn.hnorm.weight"), from("hnorm.weight"), s.Width, add)
}
