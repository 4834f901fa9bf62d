package module

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
)

func init() { model.RegisterModule("specblock", openSpecBlock) }

// Of the rank head of SpecBlock: what it reads of a slot's logits, its hidden values at most, its classes, and the tokens that a module must draft for it.
const (
	rankFeatures = 15
	maxRank      = 1 << 12
	rankClasses  = 4
	rankTop      = 20
)

// specblock drafts a block of K tokens in one pass, and further blocks behind slots of it (SpecBlock, 2026). Behind each token of the text stands a block of K rows, its
// slots. The first slot's row has the token and the target's stream at three places before it, or, in a block behind a slot of another one, what that slot's row gave;
// the others follow it in its step, have their number in place of a token, and no vector. All read the first one's inputs and a query of their own. Before each layer but the first a product joins
// a slot's stream and that of the slot before it. Slot k gives the draft k behind the first.
//
// The text's rows are K a token: slots see all slots of the tokens before. [forest.Row.Shift] makes the place of slot k that of the token it drafts.
//
// Keys of a file, behind its architecture: block_count, block_size (K), taps, draft_vocabulary, and those of attention. Tensors: fc [width, 3 width] (condition_proj), fc_norm, token_norm, queries [K, width],
// query_norm, fuse [width, 3 width], blk.N.* as of Llama's layers, blk.N.shift [width, 2 width] of each layer but the first, output_norm; rank_in [hidden, width + 15] and rank_out [4, hidden] with biases; token_embd and output, which else are the target's.
type specblock struct {
	eagle                    // join is condition_proj
	conditionNorm, tokenNorm compute.Vector
	queryNorm, first         compute.Vector
	queries                  *compute.Matrix
	fuse                     compute.Projection
	shift                    []compute.Projection // of each layer; none before the first
	embed                    *compute.Matrix
	embedScale               float32
}

func openSpecBlock(l *model.Loader) model.Model {
	s := l.ModuleHyperparameters(l.Count("block_count", 1, maxLayers), true)
	width, slots := s.Width, l.Count("block_size", 1, maxBlock)
	m := &specblock{eagle: eagle{info: l.Info(), hp: s, lent: l.Lent(), join: l.Projection("fc", width, featureTaps*width)}}
	layers := len(l.Target().Layers)
	vocabulary := draftVocabulary(l)
	b := &forest.Block{Size: slots, Rank: rankHead(l, width)}
	m.info.Module = &forest.Module{Family: "specblock", Taps: readTaps(l, featureTaps, []int{2, layers / 2, layers - 3}), Vocabulary: vocabulary, Block: b}
	if vocabulary != nil && len(vocabulary) < rankTop || m.info.Vocabulary < rankTop {
		l.Fail("the module drafts %d tokens; its rank head reads the %d largest logits", len(vocabulary), rankTop)
	}
	m.conditionNorm, m.tokenNorm, m.queryNorm = l.Vector("fc_norm.weight", width), l.Vector("token_norm.weight", width), l.Vector("query_norm.weight", width)
	m.queries, m.first = l.LookupTable("queries.weight", slots, width), l.FirstRowIf("queries.weight", width)
	m.fuse = l.Projection("fuse", width, 3*width)
	rope := l.Rope(s, l.BoolOr("rope.neox", true))
	for i := 0; i < s.Layers && l.OK(); i++ {
		l.Need(fmt.Sprintf("blk.%d.attn_norm.weight", i))
		m.layers = append(m.layers, openLayer(l, s, i, width, rope))
		shift := compute.Projection{}
		if i > 0 {
			shift = l.Projection(fmt.Sprintf("blk.%d.shift", i), width, 2*width)
		}
		m.shift = append(m.shift, shift)
	}
	m.norm, m.own = l.Vector("output_norm.weight", width), ownHead(l, s, vocabulary)
	m.embed, m.embedScale = m.lent.Embed, m.lent.EmbedScale
	if l.Has("token_embd.weight") {
		m.embed, m.embedScale = l.LookupTable("token_embd.weight", m.info.Vocabulary, width), 1
	}
	m.info.Context *= slots // of rows
	return m
}

// rankHead loads the rank head.
func rankHead(l *model.Loader, width int) (head [4][]float32) {
	hidden := l.Columns("rank_out.weight", maxRank)
	for i, t := range []struct {
		name    string
		out, in int
	}{{"rank_in", hidden, width + rankFeatures}, {"rank_out", rankClasses, hidden}} {
		head[2*i], head[2*i+1] = l.Table(t.name+".weight", t.out, t.in).F, l.Vector(t.name+".bias", t.out).F
	}
	return head
}

// Forward implements [model.Model].
func (m *specblock) Forward(x *compute.Exec) {
	width := m.info.Width
	x.EmbedPairs(m.embed, m.embedScale, (featureTaps+1)*width, 0) // the last part is each slot's query
	m.begin(x)
	for i := range m.layers {
		stream, ok := x.Enter(i)
		if !ok {
			continue
		}
		if i > 0 {
			x.CopyHeads(stream, 0, x.Linear(m.shift[i], x.Join(stream, x.Behind(stream, false))), 0, width, 1)
		}
		x.Leave(m.layers[i].forward(x, stream, m.hp.Eps))
	}
	headOf(x, &m.lent, m.norm, m.own, m.hp.Eps)
}

// begin makes the streams of slots before the first layer.
func (m *specblock) begin(x *compute.Exec) {
	const query = featureTaps
	width, eps := m.info.Width, m.hp.Eps
	if _, ok := x.Only(0, false); ok {
		x.SetCarried(query*width, x.RMSNorm(x.Lookup(m.queries, 1), m.queryNorm, eps))
	}
	if stream, ok := x.Only(0, true); ok {
		condition := x.TakeVectors(x.Linear(m.join, x.Carried(0, featureTaps*width)))
		first := x.AddVector(x.Carried(query*width, width), m.first)
		x.SetCarried(0, x.RMSNorm(condition, m.conditionNorm, eps))
		x.SetCarried(width, x.RMSNorm(stream, m.tokenNorm, eps))
		x.SetCarried(query*width, x.RMSNorm(first, m.queryNorm, eps))
	}
	if stream, ok := x.Begin(); ok {
		inputs := x.Join(x.Behind(x.Carried(0, 2*width), true), x.Carried(query*width, width))
		x.CopyHeads(stream, 0, x.Linear(m.fuse, inputs), 0, width, 1)
		x.Leave(stream)
	}
}
