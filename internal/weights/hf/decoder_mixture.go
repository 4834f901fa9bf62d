package hf

import "fmt"

// Mixture adds a mixture of gated blocks; name gives the tensor of an expert.
func (b *DecoderBuilder) Mixture(s Shape, experts, ffn int, to func(string) string, router string, name func(expert int, part string) string, gate, up, down string) {
	part := func(which string) func(int) string {
		return func(e int) string { return name(e, which) }
	}
	b.Copy(to("ffn_gate_inp.weight"), router, experts, s.Width)
	b.Stacked(to("ffn_gate_exps.weight"), part(gate), experts, ffn, s.Width)
	b.Stacked(to("ffn_up_exps.weight"), part(up), experts, ffn, s.Width)
	b.Stacked(to("ffn_down_exps.weight"), part(down), experts, s.Width, ffn)
}

// ExpertOf names a matrix of an expert as most families do.
func ExpertOf(from func(string) string) func(expert int, part string) string {
	return func(e int, part string) string { return from(fmt.Sprintf("mlp.experts.%d.%s.weight", e, part)) }
}

// EitherMixture adds a router and its experts, of ffn inner values, which folders have one by one, or as two tensors.
func (b *DecoderBuilder) EitherMixture(s Shape, experts, ffn int, to, from func(string) string) {
	both := from("mlp.experts.gate_up_proj")
	if !b.Has(both) {
		b.Mixture(s, experts, ffn, to, from("mlp.gate.weight"), ExpertOf(from), "gate_proj", "up_proj", "down_proj")
		return
	}
	b.Copy(to("ffn_gate_inp.weight"), from("mlp.gate.weight"), experts, s.Width)
	b.Copy(to("ffn_gate_up_exps.weight"), both, experts, 2*ffn, s.Width)
	b.Copy(to("ffn_down_exps.weight"), from("mlp.experts.down_proj"), experts, s.Width, ffn)
}

// SharedExpert adds the block of ffn inner values that all rows run, whose tensors are below root.
func (b *DecoderBuilder) SharedExpert(s Shape, ffn int, to func(string) string, root string) {
	b.Copy(to("ffn_gate_shexp.weight"), root+"gate_proj.weight", ffn, s.Width)
	b.Copy(to("ffn_up_shexp.weight"), root+"up_proj.weight", ffn, s.Width)
	b.Copy(to("ffn_down_shexp.weight"), root+"down_proj.weight", s.Width, ffn)
}
