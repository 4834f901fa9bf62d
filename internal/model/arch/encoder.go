// encoder.go holds encoders: models whose tokens see each other, in one step, and that give states and no logits. It is
// linked for what it registers.

package arch

import (
	"grove/internal/compute"
	"grove/internal/model"
)

// begin reads the hyperparameters of an encoder and says in the model's description that it is one.
func begin(l *model.Loader) model.Hyperparameters {
	s := l.Hyperparameters()
	if l.BoolOr("attention.causal", false) {
		l.Fail("%s.attention.causal is true; an encoder's tokens see each other", l.Info().Arch)
	}
	l.Info().Encoder = true
	return s
}

// states ends a step: the states of the rows that want them are the stream, normed where norm is not nil.
func states(x *compute.Exec, norm func(a compute.Buf) compute.Buf) {
	h, ok := x.Outputs()
	if !ok {
		return
	}
	if norm != nil {
		h = norm(h)
	}
	x.States(h)
}
