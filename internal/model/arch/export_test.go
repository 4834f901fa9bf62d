package arch

import (
	"grove/internal/compute"
	"grove/internal/model"
)

// OpenPhiMoEAsPeer opens Phi 3.5 MoE with what llama.cpp computes in place of LayerNorm and SparseMixer: the root mean square with weights and biases,
// and shares of the two likeliest experts by softmax.
func OpenPhiMoEAsPeer(l *model.Loader) model.Model {
	m := loadPhiMoE(l, compute.Router{Norm: true})
	m.normed = func(n *model.LayerNorm, x *compute.Exec, a compute.Buf) compute.Buf {
		return x.AddVector(x.RMSNorm(a, n.Weight, n.Eps), n.Bias)
	}
	return m
}
