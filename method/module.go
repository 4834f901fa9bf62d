package method

import (
	"fmt"

	"grove/forest"
	"grove/text/token"
)

// Module is a draft module that is open beside the target: a small model of trained weights that reads the target's states. Its rows take
// tokens and states, see [compute.Exec.EmbedPairs]. It is safe for concurrent use.
type Module struct {
	Model
	Family     string       // the kind of module
	Taps       []int        // places of the target's stream of which a feature consists, k behind the first k layers; nil: the final state
	Heads      int          // heads, each of which is a layer that a row runs alone; 0: the module drafts token by token
	Prefix     int          // the first so many layers, which keep keys, read the features of the text before the heads do
	FeedsState bool         // a draft's own feature is the state that its row gives, and else the stream behind the last layer
	LayerCost  float64      // layers of the target that take as long as one of the module
	Vocabulary []token.ID   // the target's id of each token that it drafts, ascending; nil: all of them
	Rows       []forest.Row // rows of the target itself that stand behind a token in a path, of a module that consists of these and runs none: vectors, or products of the token's own
	Next       []*Module    // the predictors of the same file behind it: the k-th draft behind a text is that of the k-th, further ones that of the last
	Chained    bool         // each of Next reads what the one before it gives, in place of the target's feature
	Block      *Block       // how it drafts a block of tokens in one pass; nil: it does not
}

// Block describes the passes of a module that drafts a block of tokens at a time. Rows with a feature and no output, the context, are the text's. Behind them
// hangs a path of rows without a feature: the text's last token and mask tokens. Each gives the logits of one token. Or rows are pairs (Pairs), of which
// the text's last ones are the block. The fields are those of package model's type.
type Block struct {
	Size    int   // rows of a block, the text's last token among them
	Mask    int32 // the mask token
	Own     bool  // a row gives the logits of the token at its own place, so that the first row gives none; else of the one behind it
	Follows bool  // the first row is the text's last one with a feature, which is kept; the others are mask tokens
	Sees    bool  // rows of a block see its later ones
	Order   bool  // the last layer is for rows of a token that run it alone and give what the token adds to the logits behind it
	Trust   int   // the place of their state that has, as a logit, how likely the next draft is to be accepted; 0: none
	Pairs   int   // pairs that each row carries, its own and those before it, see package model's type; 0: rows are not pairs

	Rank [4][]float32 // the rank head of a module of slots: two matrices by rows, each with its biases behind it; empty: it has no slots
}

// Wants lists the outputs of the target's rows that the module reads as features.
func (m *Module) Wants() Wants {
	var w Wants
	if m.Taps == nil {
		w.Rows.State = true
	}
	for _, t := range m.Taps {
		w.Rows.Hidden = w.Rows.Hidden.With(t - 1)
	}
	w.Prompt, w.Last = w.Rows, m.Window()
	return w
}

// longest is for how many tokens published modules were trained; they are not known to use what lies further back.
const longest = 2048

// Window returns how many of the last tokens of a text the module reads at most where it begins with it.
func (m *Module) Window() int { return min(m.Size().Context, longest) }

// Feature appends to dst the feature of a row that gave what Wants asks for, and reports whether it did.
func (m *Module) Feature(dst []float32, r *RowResult) ([]float32, bool) {
	if m.Taps == nil {
		return append(dst, r.State...), r.State != nil
	}
	if len(r.Hidden) != len(m.Taps) {
		return dst, false
	}
	for _, t := range m.Taps {
		below := 0 // taps that come before it: outputs ascend
		for _, other := range m.Taps {
			if other < t {
				below++
			}
		}
		dst = append(dst, r.Hidden[below]...)
	}
	return dst, true
}

// FeatureWidth returns the values of a feature.
func (m *Module) FeatureWidth() int { return max(1, len(m.Taps)) * m.Size().Width }

// Module returns the draft module of a family, or nil where none is open.
func (e Env) Module(family string) *Module {
	for _, m := range e.Modules {
		if m.Family == family {
			return m
		}
	}
	return nil
}

// MeetsModule returns the check of a method's needs that it has a draft module of a family.
func MeetsModule(family string) func(Env) error {
	return func(e Env) error {
		switch {
		case e.Module(family) != nil:
			return nil
		case len(e.Modules) > 0:
			return fmt.Errorf("%w; the heads that are open are of the family %s", ErrNeeds, e.Modules[0].Family)
		}
		return ErrNeeds
	}
}
