package arch

import (
	"fmt"
	"math"

	"grove/compute"
	"grove/model"
)

func init() { model.Register("gemma3", openGemma3) }

// gemma3 is Gemma 3, text only (Gemma team 2025): five layers with a sliding window and a rotary base
// of their own, then one that sees everything; norms before and after each block.
type gemma3 struct {
	info   *model.Info
	shape  model.Shape
	head   model.Head
	layers []gemma3Layer
}

type gemma3Layer struct {
	attnNorm, postAttn compute.Vector
	attn               model.Attention
	ffnNorm, postFFN   compute.Vector
	mlp                model.MLP
}

// gemma3Period is the number of layers from one that sees everything to the next.
const gemma3Period = 6

func openGemma3(l *model.Loader) model.Model {
	s := l.Shape()
	m := &gemma3{info: l.Info(), shape: s}
	window := l.Count("attention.sliding_window", 1, 1<<24)
	global := l.Rope(s, true)
	local := l.NewRope(compute.RopeConfig{Dims: s.Size, NeoX: true, Base: l.FloatOr("rope.freq_base_swa", 10000)})
	m.head = l.Head(s)
	for i := 0; i < s.Layers && l.OK(); i++ {
		name := func(t string) string { return fmt.Sprintf("blk.%d.%s.weight", i, t) }
		rope := local
		if i%gemma3Period == gemma3Period-1 {
			rope = global
		} else {
			m.info.Layers[i].Window = window
		}
		layer := gemma3Layer{
			attnNorm: l.Vector(name("attn_norm"), s.Width), postAttn: l.Vector(name("post_attention_norm"), s.Width),
			attn:    l.Attention(s, i, rope),
			ffnNorm: l.Vector(name("ffn_norm"), s.Width), postFFN: l.Vector(name("post_ffw_norm"), s.Width),
			mlp: l.MLP(s, i),
		}
		if s.Layers == gemma3Layers27B {
			layer.attn.SetScale(float32(1 / math.Sqrt(float64(s.Width)/float64(s.Heads))))
		}
		m.layers = append(m.layers, layer)
	}
	return m
}

// gemma3Layers27B is the number of layers of the 27 B model, which scales queries by width and heads
// instead of by head size; files do not say so otherwise.
const gemma3Layers27B = 62

// Info implements [model.Model].
func (m *gemma3) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *gemma3) Forward(x *compute.Exec) {
	eps := m.shape.Eps
	x.Embed(m.head.Embed, float32(math.Sqrt(float64(m.shape.Width))))
	for i := range m.layers {
		l := &m.layers[i]
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		a := l.attn.Forward(x, x.RMSNorm(stream, l.attnNorm, eps))
		stream = x.Add(stream, x.RMSNorm(a, l.postAttn, eps))
		f := l.mlp.Gelu(x, x.RMSNorm(stream, l.ffnNorm, eps))
		stream = x.Add(stream, x.RMSNorm(f, l.postFFN, eps))
		x.Leave(stream)
	}
	x.Output(m.head.Norm, eps, m.head.Output)
}
