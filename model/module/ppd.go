package module

import (
	"math"

	"grove/compute"
	"grove/kv"
	"grove/model"
)

func init() { model.RegisterModule("ppd", openPPD) }

// ppd is learned input vectors of the target's own rows (Parallel Prompt Decoding, Chen et al. 2024, section 3). It has no layers, and rows of its own give
// what the target's head says of their embedding: no method runs any.
type ppd struct {
	info *model.Info
	lent model.Lent
}

func openPPD(l *model.Loader) model.Model {
	n := l.Count("block_count", 1, maxHeads)
	s := l.ModuleHyperparameters(1, false)
	l.Info().Layers = []kv.Layer{{}}
	m := &ppd{info: l.Info(), lent: l.Lent()}
	m.info.Module = &model.Module{Family: "ppd"}
	values := l.Table("prompt.weight", n, s.Width)
	if !l.OK() {
		return m
	}
	for i, v := range values.F {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			l.Fail("value %d of prompt.weight is %v; values are finite", i, v)
			return m
		}
	}
	for k := range n {
		m.info.Module.Vectors = append(m.info.Module.Vectors, values.F[k*s.Width:][:s.Width:s.Width])
	}
	return m
}

// Info implements [model.Model].
func (m *ppd) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *ppd) Forward(x *compute.Exec) {
	x.Embed(m.lent.Embed, m.lent.EmbedScale)
	if stream, ok := x.Enter(0); ok {
		x.Leave(stream)
	}
	headOf(x, &m.lent, m.lent.Norm, nil, m.lent.Eps)
}
