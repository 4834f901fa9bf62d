package module

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/text/token"
)

// maxLayers bounds the layers of a module.
const maxLayers = 8

func init() {
	model.RegisterModule("eagle", openEagle)
	model.RegisterModule("eagle3", openEagle3)
}

// eagle predicts the target's next final state from the last one and a token (EAGLE, Li et al. 2024, section 3): a product joins the embedding of
// the token and the state, layers of Llama's kind follow, and the target's head gives logits of what they give. EAGLE-2 is the same module with another tree.
type eagle struct {
	info   *model.Info
	hp     model.Hyperparameters
	lent   model.Lent
	join   compute.Projection // [width, 2 width], of the embedding and then the state
	layers []moduleLayer
	norm   compute.Vector      // empty: none
	own    *compute.Projection // nil: the target's head is lent
}

// moduleLayer is a layer of Llama's kind.
type moduleLayer struct {
	attnNorm compute.Vector // empty: none, as in the first layer of EAGLE
	attn     model.Attention
	ffnNorm  compute.Vector
	mlp      model.MLP
}

func openEagle(l *model.Loader) model.Model {
	m := &eagle{}
	m.open(l, maxLayers)
	m.info.Module = &forest.Module{Family: "eagle", FeedsState: true}
	return m
}

// open loads a module of so many layers at most.
func (m *eagle) open(l *model.Loader, most int) {
	s := l.ModuleHyperparameters(l.Count("block_count", 1, most), true)
	*m = eagle{info: l.Info(), hp: s, lent: l.Lent(), join: l.Projection("fc", s.Width, 2*s.Width)}
	rope := l.Rope(s, l.BoolOr("rope.neox", true))
	for i := 0; i < s.Layers && l.OK(); i++ {
		m.layers = append(m.layers, openLayer(l, s, i, s.Width, rope))
	}
	m.norm, m.own = l.VectorIf("output_norm.weight", s.Width), ownHead(l, s, nil)
}

// openLayer loads layer i, which attends by rows of width values.
func openLayer(l *model.Loader, s model.Hyperparameters, i, width int, rope *compute.Rope) moduleLayer {
	l.KeepsKeys(s, i)
	layer := moduleLayer{
		attnNorm: l.VectorIf(fmt.Sprintf("blk.%d.attn_norm.weight", i), s.Width), attn: l.AttentionOf(s, i, width, rope),
		ffnNorm: l.Vector(fmt.Sprintf("blk.%d.ffn_norm.weight", i), s.Width), mlp: l.MLP(s, i),
	}
	if l.Has(fmt.Sprintf("blk.%d.attn_q_norm.weight", i)) {
		l.HeadNorms(&layer.attn)
	}
	return layer
}

// ownHead loads the module's own head, of the tokens that it drafts; nil: it has none, and the target's is lent.
func ownHead(l *model.Loader, s model.Hyperparameters, vocabulary []token.ID) *compute.Projection {
	out := l.Info().Vocabulary
	if vocabulary != nil {
		out = len(vocabulary)
	}
	p, ok := l.ProjectionIf("output", out, s.Width)
	if !ok {
		if vocabulary != nil {
			l.Fail("%s.draft_vocabulary is there and tensor %q is not; a module that drafts some tokens has a head of its own", l.Info().Arch, "output.weight")
		}
		return nil
	}
	return &p
}

// Info implements [model.Model].
func (m *eagle) Info() *model.Info { return m.info }

// Forward implements [model.Model].
func (m *eagle) Forward(x *compute.Exec) {
	width := m.info.Width
	x.EmbedPairs(m.lent.Embed, m.lent.EmbedScale, width, 0)
	for i := range m.layers {
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		if i == 0 {
			joined := x.Join(stream, x.Carried(0, width))
			x.CopyHeads(stream, 0, x.Linear(m.join, joined), 0, width, 1)
		}
		x.Leave(m.layers[i].forward(x, stream, m.hp.Eps))
	}
	headOf(x, &m.lent, m.norm, m.own, m.hp.Eps)
}

// forward returns the stream behind a layer.
func (d *moduleLayer) forward(x *compute.Exec, stream compute.Buf, eps float32) compute.Buf {
	h := stream
	if d.attnNorm.Len() > 0 {
		h = x.RMSNorm(stream, d.attnNorm, eps)
	}
	return d.feed(x, x.Add(stream, d.attn.Forward(x, h)), eps)
}

// feed adds the feed-forward block to a stream.
func (d *moduleLayer) feed(x *compute.Exec, stream compute.Buf, eps float32) compute.Buf {
	return x.Add(stream, d.mlp.Silu(x, x.RMSNorm(stream, d.ffnNorm, eps)))
}

// headOf ends a step: a norm, where there is one, and the module's own head or the target's.
func headOf(x *compute.Exec, lent *model.Lent, norm compute.Vector, own *compute.Projection, eps float32) {
	if h, ok := x.Outputs(); ok {
		logitsOf(x, h, lent, norm, own, eps)
	}
}

// logitsOf is headOf for the states of the rows of outputs.
func logitsOf(x *compute.Exec, h compute.Buf, lent *model.Lent, norm compute.Vector, own *compute.Projection, eps float32) {
	if norm.Len() > 0 {
		h = x.RMSNorm(h, norm, eps)
	}
	if own != nil {
		x.Logits(h, *own, 0)
	} else {
		lent.Logits(x, h)
	}
}

// eagle3 is EAGLE-3 (Li et al. 2025, section 3): a feature is the target's stream at three places, which a product makes one vector. The first layer
// attends by the embedding and that vector, each behind a norm. What a draft's row gives is the feature of the next draft as it is.
type eagle3 struct {
	eagle
	embedNorm compute.Vector
	normed    bool // the residual of the first layer is the feature behind its norm
}

// featureTaps is the number of places that EAGLE-3 reads.
const featureTaps = 3

func openEagle3(l *model.Loader) model.Model {
	m := &eagle3{}
	m.open(l)
	return m
}

// open loads the module.
func (m *eagle3) open(l *model.Loader) {
	s := l.ModuleHyperparameters(l.Count("block_count", 1, maxLayers), true)
	*m = eagle3{eagle: eagle{info: l.Info(), hp: s, lent: l.Lent(), join: l.Projection("fc", s.Width, featureTaps*s.Width)}}
	m.normed = l.BoolOr("norm_before_residual", false)
	layers := len(l.Target().Layers)
	taps := readTaps(l, featureTaps, []int{2, layers / 2, layers - 3})
	vocabulary := draftVocabulary(l)
	m.info.Module = &forest.Module{Family: "eagle3", Taps: taps, Vocabulary: vocabulary}
	m.embedNorm = l.Vector("blk.0.embd_norm.weight", s.Width)
	rope, width := l.Rope(s, l.BoolOr("rope.neox", true)), 2*s.Width
	for i := 0; i < s.Layers && l.OK(); i++ {
		l.Need(fmt.Sprintf("blk.%d.attn_norm.weight", i))
		m.layers, width = append(m.layers, openLayer(l, s, i, width, rope)), s.Width
	}
	m.norm, m.own = l.Vector("output_norm.weight", s.Width), ownHead(l, s, vocabulary)
}

// Forward implements [model.Model].
func (m *eagle3) Forward(x *compute.Exec) {
	x.EmbedPairs(m.lent.Embed, m.lent.EmbedScale, featureTaps*m.info.Width, 0)
	m.layersOf(x)
}

// layersOf runs the layers and the head behind what rows carry.
func (m *eagle3) layersOf(x *compute.Exec) {
	eps := m.hp.Eps
	for i := range m.layers {
		stream, ok := x.Enter(i)
		switch {
		case !ok:
		case i > 0:
			x.Leave(m.layers[i].forward(x, stream, eps))
		default:
			x.Leave(m.first(x, stream))
		}
	}
	headOf(x, &m.lent, m.norm, m.own, eps)
}

// first returns the stream behind the first layer, which reads a token's embedding and a feature.
func (m *eagle3) first(x *compute.Exec, stream compute.Buf) compute.Buf {
	d, width, eps := &m.layers[0], m.info.Width, m.hp.Eps
	embed := x.RMSNorm(stream, m.embedNorm, eps)
	feature := x.TakeVectors(x.Linear(m.join, x.Carried(0, featureTaps*width)))
	normed := x.RMSNorm(feature, d.attnNorm, eps)
	if m.normed {
		feature = normed
	}
	x.CopyHeads(stream, 0, feature, 0, width, 1)
	return d.feed(x, x.Add(stream, d.attn.Forward(x, x.Join(embed, normed))), eps)
}
