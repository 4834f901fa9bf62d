package model

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/kernel"
)

// Exit is the norm and the head of a trained exit (One Model to Train them All, 2025), which turn the stream behind
// its layers into the state of a token, in place of the model's final norm. It is read-only.
type Exit struct {
	Layers int            // the first ones, behind which it is
	Norm   compute.Vector // weights of a norm; empty: none
	Bias   compute.Vector // of LayerNorm; empty: none
	RMS    bool           // the norm is RMSNorm
	Eps    float32
	Head   *Dense // behind the norm, for each token; nil: none
}

// Width returns the values of a state, of a model of a width.
func (e *Exit) Width(width int) int {
	if e.Head != nil {
		return e.Head.Out
	}
	return width
}

// Forward returns the state of a stream, which stays as it is.
func (e *Exit) Forward(x []float32) []float32 {
	if e.Norm.Len() > 0 {
		out := make([]float32, len(x))
		if e.RMS {
			kernel.RMSNorm(out, x, e.Norm.F, e.Eps)
		} else {
			kernel.LayerNorm(out, x, e.Norm.F, e.Bias.F, e.Eps)
		}
		x = out
	}
	if e.Head != nil {
		x = e.Head.Forward(x)
	}
	return x
}

// Exit returns what the exit behind the first n layers has of its own, or nil.
func (i *Info) Exit(n int) *Exit {
	for k := range i.Exits {
		if i.Exits[k].Layers == n {
			return &i.Exits[k]
		}
	}
	return nil
}

// exits loads what exits have of their own: exit.N.norm and exit.N.head, behind the first N layers. The norm is LayerNorm where the
// file names its epsilon.
func (l *Loader) exits() {
	i := l.info
	if i.Source != nil {
		return // the layers are the decoder's, and the encoder's are read
	}
	eps := "attention.layer_norm_epsilon"
	_, layer := l.file.Lookup(l.key(eps))
	if !layer {
		eps = "attention.layer_norm_rms_epsilon"
	}
	for n := 1; n <= len(i.Layers) && l.err == nil; n++ {
		name := fmt.Sprintf("exit.%d.", n)
		e := Exit{Layers: n, Norm: l.VectorIf(name+"norm.weight", i.Width), RMS: !layer, Eps: float32(l.RangeOr(eps, 1e-5, 0, 1))}
		if layer && e.Norm.Len() > 0 {
			e.Bias = l.VectorIf(name+"norm.bias", i.Width)
		}
		if d, ok := l.dense(name+"head", i.Width, 0, maxDense); ok {
			e.Head = &d
		}
		if e.Norm.Len() > 0 || e.Head != nil {
			i.Exits = append(i.Exits, e)
		}
	}
}
