package module

import (
	"math"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() { model.RegisterModule("ppd", openPPD) }

// standing is rows of the target itself that stand behind its tokens. It has no layers, and rows of its own give what the target's head says of their
// embedding: no method runs any.
type standing struct {
	info *model.Info
	lent model.Lent
}

// openStanding begins a module of a family of n rows.
func openStanding(l *model.Loader, family string) (m *standing, n, width int) {
	n = l.Count("block_count", 1, maxHeads)
	s := l.ModuleHyperparameters(1, false)
	l.Info().Layers = []kv.Layer{{}}
	m = &standing{info: l.Info(), lent: l.Lent()}
	m.info.Module = &forest.Module{Family: family}
	return m, n, s.Width
}

// openPPD opens learned input vectors (Parallel Prompt Decoding, Chen et al. 2024, section 3).
func openPPD(l *model.Loader) model.Model {
	m, n, width := openStanding(l, "ppd")
	values := l.Table("prompt.weight", n, width)
	if !l.OK() {
		return m
	}
	for i, v := range values.F {
		if !(math.Abs(float64(v)) <= compute.MaxTransfer) {
			l.Fail("value %d of prompt.weight is %v; values are finite, %.0e at most in size", i, v, compute.MaxTransfer)
			return m
		}
	}
	for k := range n {
		m.info.Module.Rows = append(m.info.Module.Rows, forest.Row{Vector: values.F[k*width:][:width:width]})
	}
	return m
}

// Info implements [model.Model].
func (m *standing) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *standing) Forward(x *compute.Exec) {
	x.Embed(m.lent.Embed, m.lent.EmbedScale)
	if stream, ok := x.Enter(0); ok {
		x.Leave(stream)
	}
	headOf(x, &m.lent, m.lent.Norm, nil, m.lent.Eps)
}
