package module

import (
	"strconv"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/kv"
	"grove/internal/model"
)

func init() { model.RegisterPredictors(openPredictor) }

// openPredictor returns the i-th predictor of a model's file as a draft module. All predictors of MiMo read the target's states; others are chained, as
// DeepSeek-V3's report has it and Step 3.5 does.
func openPredictor(target model.Lender, i int) model.Model {
	of := target.Info()
	p := &of.Predictors[i]
	info := *of
	info.Layers, info.Predictors, info.Exits, info.Bytes, info.Params = []kv.Layer{p.Keeps}, nil, nil, p.Bytes, 0
	info.Mixtures = min(1, info.Mixtures)
	info.SampleDigest, info.Identity = of.SampleDigest+"predictor"+strconv.Itoa(i), func() (string, error) {
		id, err := of.Identity()
		return id + " predictor " + strconv.Itoa(i), err
	}
	info.Module = &forest.Module{Family: "mtp", FeedsState: true, Chained: of.Arch != "mimo2"}
	info.Module.LayerCost = model.LayerCost(p.Params, 1, of)
	return &predictor{info: &info, p: p, lent: target.Lend()}
}

// predictor is a predictor as a module.
type predictor struct {
	info *model.Info
	p    *model.Predictor
	lent model.Lent
}

// Info implements [model.Model].
func (m *predictor) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *predictor) Forward(x *compute.Exec) {
	p, width, eps := m.p, m.info.Width, m.lent.Eps
	table, norm, head := m.lent.Embed, m.lent.Norm, m.lent.Head
	if p.Embed != nil {
		table = p.Embed
	}
	if p.Norm.Len() > 0 {
		norm = p.Norm
	}
	if p.Head != nil {
		head = compute.Projection{Matrix: p.Head}
	}
	x.EmbedPairs(table, m.lent.EmbedScale, width, 0)
	if stream, ok := x.Enter(0); ok {
		embed, state := x.RMSNorm(stream, p.EmbedNorm, eps), x.RMSNorm(x.Carried(0, width), p.StreamNorm, eps)
		if p.Join.Matrix == nil {
			x.CopyHeads(stream, 0, x.Add(state, embed), 0, width, 1)
		} else {
			x.CopyHeads(stream, 0, x.Linear(p.Join, x.Join(embed, state)), 0, width, 1)
		}
		x.Leave(p.Block.Forward(x, stream))
	}
	if h, ok := x.Outputs(); ok {
		x.ScaledLogits(x.RMSNorm(h, norm, eps), head, m.lent.Scale, m.lent.Softcap)
	}
}
