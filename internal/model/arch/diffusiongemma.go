package arch

import (
	"fmt"
	"math"

	"grove/internal/compute"
	"grove/internal/compute/weight"
	"grove/internal/model"
)

func init() { model.Register("diffusion-gemma", openDiffusionGemma) }

// openDiffusionGemma opens DiffusionGemma, text only (Google 2026): the layers of Gemma 4 with a mixture. The rows of a canvas, which are those of a block, see each other and all
// that is before them, in layers with a window what the first of them sees; a factor of each layer is another one for them, and their inputs are [canvasInput]'s.
func openDiffusionGemma(l *model.Loader) model.Model {
	for _, name := range []string{"embedding_length_per_layer_input", "attention.shared_kv_layers"} {
		if n := l.CountOr(name, 0, 0, math.MaxInt32); n > 0 {
			l.Fail("%s.%s is %d; it must be 0, as canvases have no such layers", l.Info().Arch, name, n)
		}
	}
	m := loadGemma4(l)
	if m == nil || !l.OK() {
		return nil
	}
	l.RenoisedDiffusion()
	for i := range m.layers {
		one := &m.layers[i]
		one.attn.wide = true
		l.Need(fmt.Sprintf("blk.%d.layer_output_scale.weight", i))
		one.text = l.Vector(fmt.Sprintf("blk.%d.enc_layer_output_scale.weight", i), 1)
	}
	m.canvas = loadCanvasInput(l, m)
	return m
}

// canvasInput makes the inputs of a canvas: the norm, without weights, of the embedding and of what a gated block gives for the embedding that the pass before
// expected in its place (self-conditioning).
type canvasInput struct {
	table      *compute.Matrix
	norm, unit compute.Vector
	mlp        model.MLP
	scale, eps float32
}

func loadCanvasInput(l *model.Loader, m *gemma4) *canvasInput {
	s, inner := m.hparams, l.Rows("self_cond_gate.weight")
	l.Need("self_cond_gate.weight")
	return &canvasInput{
		table: m.head.Embed, norm: l.Vector("self_cond_pre_norm.weight", s.Width), unit: weight.Ones(s.Width),
		mlp: model.MLP{
			GateUp: []compute.Projection{l.Projection("self_cond_gate", inner, s.Width), l.Projection("self_cond_up", inner, s.Width)},
			Down:   l.Projection("self_cond_down", s.Width, inner),
		},
		scale: float32(math.Sqrt(float64(s.Width))), eps: s.Eps,
	}
}

// begin makes the inputs of the step's rows that are of a canvas.
func (c *canvasInput) begin(x *compute.Exec) {
	if c == nil {
		return
	}
	h, ok := x.BeginBlocks()
	if !ok {
		return
	}
	given := c.mlp.Gelu(x, x.RMSNorm(x.Expected(c.table, c.scale), c.norm, c.eps))
	x.Leave(x.NormHeads(x.Add(h, given), 1, c.unit, c.eps)) // in place, as the stream is
}
