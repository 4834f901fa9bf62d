package hf

// BlockFFN adds the feed-forward block of a layer of BlockFFN, in either of the orders of its matrices, and the settings of all layers, once. As
// many blocks of a row as the paper measures have a gate.
func (b *FolderBuilder) BlockFFN(width int, to, from func(string) string) {
	c := b.Config
	c.Only("ffn_type", "block", "block_linear")
	c.Only("attention_type", "vanilla")
	c.Only("router_act", "relu")
	if norm := c.TextOr("norm_after_router", "sum"); norm != "rms" {
		c.Fail("norm_after_router is %.40q; it must be rms", norm)
	}
	n, size := c.CountOr("num_experts", 40, 1, maxExperts), c.CountOr("expert_size", 128, 1, folderMaxWidth)
	b.SetCountOnce(".expert_count", n)
	b.SetCountOnce(".expert_used_count", max(1, n/5))
	b.SetCountOnce(".expert_feed_forward_length", size)
	b.Copy(to("ffn_gate_inp.weight"), from("mlp.router_proj.weight"), n, width)
	b.Norm(to("ffn_gate_inp_norm.weight"), from("mlp.router_norm.weight"), n, 0)
	up, down := []int{n, size, width}, []int{n, width, size}
	if c.TextOr("ffn_type", "") == "block" {
		b.Copy(to("ffn_up_exps.weight"), from("mlp.up_proj"), up...)
		b.Copy(to("ffn_down_exps.weight"), from("mlp.down_proj"), down...)
		return
	}
	b.GatheredAs(to("ffn_up_exps.weight"), from("mlp.up_proj"), []int{n * size, width}, up, func(i int) int { return i })
	b.GatheredAs(to("ffn_down_exps.weight"), from("mlp.down_proj"), []int{width, n * size}, down, func(i int) int { return i%width*n + i/width })
}
