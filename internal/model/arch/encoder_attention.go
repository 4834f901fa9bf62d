package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/model"
)

// attention is the attention of a layer: all heads of queries, and of keys, may be normed as one vector by LayerNorm; they may rotate, and
// have biases by distance.
type attention struct {
	qkv          []compute.Projection
	out          compute.Projection
	qNorm, kNorm model.LayerNorm // without weights: none
	rope         *compute.Rope   // nil: none
	kvHeads      int
	attend       compute.Attention
}

// loadAttention loads the attention of a layer, of queries, keys and values in three tensors or in one, with the biases that the file has.
func loadAttention(l *model.Loader, s model.Hyperparameters, layer int) attention {
	a := l.Attention(s, layer, nil)
	return attention{
		qkv: a.QKV, out: a.Out, kvHeads: s.KVHeads,
		attend: compute.Attention{Layer: layer, Heads: s.Heads, Scale: float32(1 / math.Sqrt(float64(s.KeySize)))},
	}
}

// normIf loads the LayerNorm of a tensor of a layer; it has no weights where the file has none.
func normIf(l *model.Loader, layer int, name string, n int, eps float32) model.LayerNorm {
	name = fmt.Sprintf("blk.%d.%s", layer, name)
	return model.LayerNorm{Weight: l.VectorIf(name+".weight", n), Bias: l.VectorIf(name+".bias", n), Eps: eps}
}

// forward returns the block's addition to the stream; h is the stream, normed if the model does.
func (a *attention) forward(x *compute.Exec, h compute.Buf) compute.Buf {
	qkv := x.Linears(a.qkv, h)
	q, k, v := qkv[0], qkv[1], qkv[2]
	if a.qNorm.Weight.Len() > 0 {
		q = a.qNorm.Stream(x, q)
	}
	if a.kNorm.Weight.Len() > 0 {
		k = a.kNorm.Stream(x, k)
	}
	if a.rope != nil {
		q, k = x.Rope(q, a.attend.Heads, a.rope), x.Rope(k, a.kvHeads, a.rope)
	}
	return x.Linear(a.out, x.Attend(a.attend, q, k, v))
}
