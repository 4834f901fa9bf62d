package module

import (
	"grove/internal/compute"
	"grove/internal/forest"
	"grove/internal/model"
	"grove/internal/text/token"
)

func init() { model.RegisterModule("peagle", openPEagle) }

// peagle drafts a block of tokens in one pass (P-EAGLE, Hui et al. 2026), by layers of EAGLE-3. A row of the text has a token and the target's stream at three
// places before it, as in EAGLE-3; that of the text's last token gives the first draft. Behind it hang rows of the mask token, without a vector: a learned one,
// mask_hidden, stands for the target's. Each sees the text and the mask rows before it, and gives the draft of its own place.
//
// Keys and tensors of a file are those of EAGLE-3 and block_size (the drafts of a pass), mask_token_id and mask_hidden [3 width]; token_embd, the embeddings that were
// trained with it, if it has any.
type peagle struct {
	eagle3
	hidden     compute.Vector
	embed      *compute.Matrix
	embedScale float32
}

func openPEagle(l *model.Loader) model.Model {
	m := &peagle{}
	m.open(l)
	b, width := m.info.Module, m.hp.Width
	b.Family = "peagle"
	b.Block = &forest.Block{Size: l.Count("block_size", 2, maxBlock), Mask: token.ID(l.Count("mask_token_id", 0, m.info.Vocabulary-1)), Follows: true}
	m.hidden = l.Vector("mask_hidden.weight", featureTaps*width)
	m.embed, m.embedScale = m.lent.Embed, m.lent.EmbedScale
	if l.Has("token_embd.weight") {
		m.embed, m.embedScale = l.LookupTable("token_embd.weight", m.info.Vocabulary, width), 1
	}
	return m
}

// Forward implements [model.Model].
func (m *peagle) Forward(x *compute.Exec) {
	const taps = featureTaps
	x.EmbedPairs(m.embed, m.embedScale, taps*m.info.Width, 0)
	if _, ok := x.Only(0, false); ok {
		x.SetCarried(0, x.AddVector(x.Carried(0, taps*m.info.Width), m.hidden))
	}
	m.layersOf(x)
}
