package module

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() { model.RegisterSubstitutes(openSubstitutes) }

const mostSubstituteRank = 4096

// openSubstitutes takes adapters that stand for layers of a target's rows (LoRA-Drop, 2026): of a layer N blk.N.drop_a.weight [rank, width] and blk.N.drop_b.weight [width, rank].
//
// Keys of a file, behind its architecture: embedding_length; scale, 1 where it is missing.
func openSubstitutes(l *model.Loader, target *model.Info) compute.SubstituteLayers {
	layers := make(compute.SubstituteLayers, len(target.Layers))
	checkSubstitutable(l, target)
	if n := l.Count("embedding_length", 1, 1<<16); l.OK() && n != target.Width {
		l.Fail("%s.embedding_length is %d; the width of the target is %d", model.SubstitutesArch, n, target.Width)
	}
	scale := l.RangeOr("scale", 1, -1e6, 1e6)
	for i := range layers {
		if a, b := fmt.Sprintf("blk.%d.drop_a.weight", i), fmt.Sprintf("blk.%d.drop_b.weight", i); l.OK() && (l.Has(a) || l.Has(b)) {
			layers[i] = substituted(l, i, a, b, target.Width, float32(scale))
		}
	}
	if l.OK() && layers.Set() == (compute.SubstituteLayers{}).Set() {
		l.Fail("the file has no tensors blk.N.drop_a.weight of layers below %d, which the target has", len(layers))
	}
	return layers
}

// checkSubstitutable makes the load fail where rows of a target depend on more of a layer than keys and the stream.
func checkSubstitutable(l *model.Loader, target *model.Info) {
	if target.Source != nil || target.Encoder || target.Diffusion != nil || kv.Tail(target.Layers) < len(target.Layers) {
		l.Fail("%s reads more than the keys of its own text, layer by layer: adapters cannot stand for its layers", target.Arch)
	}
	for i := range target.Layers {
		if k := &target.Layers[i]; len(k.States) > 0 || k.Keeps.Kind == kv.Shared {
			l.Fail("layer %d of %s is recurrent or reads another layer's keys: adapters cannot stand for its layers", i, target.Arch)
		}
	}
}

// substituted loads the adapters of a layer.
func substituted(l *model.Loader, layer int, a, b string, width int, scale float32) (of compute.SubstituteLayer) {
	if layer == 0 {
		l.Fail("%q: layer 0 cannot be substituted", a)
	}
	rank := l.Columns(b, mostSubstituteRank)
	of = compute.SubstituteLayer{A: l.Matrix(a, rank, width), B: l.Matrix(b, width, rank), Scale: scale}
	for _, m := range []*compute.Matrix{of.A, of.B} {
		if l.OK() && m.Format.Quantized {
			l.Fail("%q and %q: their type is quantized; use F32, F16 or BF16", a, b)
		}
	}
	return of
}
