package arch

import (
	"fmt"

	"grove/internal/model"
)

func init() { model.Register("jamba", openJamba) }

// openJamba opens Jamba (Lieber et al. 2024): layers of Mamba, whose inputs of the steps, B and C are normed, and one in
// eight that attends without rotation. Some layers have a mixture, whose weights are shares among all experts.
func openJamba(l *model.Loader) model.Model {
	s, layers := l.LayerHyperparameters()
	h := loadSSM(l, s)
	router := l.Router(s)
	return hybridOpenDecoder(l, s, func(i int) []sublayer {
		mixer := sub(l, s, i, "attn_norm")
		if layers[i].KVHeads > 0 {
			a := l.Attention(layers[i], i, nil)
			mixer.blocks = []hybridBlock{&a}
		} else {
			for _, norm := range []string{"dt", "b", "c"} {
				l.Need(fmt.Sprintf("blk.%d.ssm_%s_norm.weight", i, norm))
			}
			mixer.blocks = []hybridBlock{h.loadMamba1(l, i, true)}
		}
		feed := sub(l, s, i, "ffn_norm")
		if s.Experts > 0 && l.Has(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)) {
			e := &hybridMixture{l.Experts(s, i, layers[i].FFN)}
			e.Choice = router
			feed.blocks = []hybridBlock{e}
		} else {
			feed.blocks = []hybridBlock{&gatedMLP{l.MLP(layers[i], i)}}
		}
		return []sublayer{mixer, feed}
	})
}
