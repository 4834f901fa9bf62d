package forest

import "grove/internal/text/token"

// Module describes a draft module: a small model of trained weights that reads a target's states and drafts for it. It says which rows the module takes, of tokens and
// features, and what these give. It is read-only.
type Module struct {
	Family     string     // the kind of module, the architecture of its file
	Taps       []int      // places of the target's stream of which a feature consists, in order: k is the stream behind the first k layers; nil: the state behind the final norm
	Heads      int        // heads, each of which is a layer that a row runs alone; 0: the module drafts token by token
	Prefix     int        // the first so many layers, which keep keys, read the features of the text before the heads do
	FeedsState bool       // a draft's own feature is the state that its row gives, and else the stream behind the last layer
	Chained    bool       // of a predictor: each of those behind it reads what the one before it gives, in place of the target's state
	LayerCost  float64    // layers of the target that have as many weights as one of the module, heads aside
	Vocabulary []token.ID // the target's id of each token that it drafts, ascending; nil: all of them
	Rows       []Row      // rows of the target itself that stand behind a token in a path, of a module that consists of these and runs none: vectors, or products of the token's own row
	Block      *Block     // how it drafts a block of tokens in one pass; nil: it does not
}

// Block describes the passes of a module that drafts a block of tokens at a time. Rows with a feature and no output, the context, are the text's. Behind them
// hangs a path of rows without a feature: the text's last token and mask tokens. Each gives the logits of one token.
//
// Or rows are pairs of a token and a feature (Pairs): the block is the last Size pairs of the text, each of which gives the logits of the token Size places behind its own.
type Block struct {
	Size    int      // rows of a block, the text's last token among them
	Mask    token.ID // the mask token
	Own     bool     // a row gives the logits of the token at its own place, so that the first row gives none; else of the one behind it
	Follows bool     // the first row is the text's last one with a feature, which is kept; the others are mask tokens
	Sees    bool     // rows of a block see its later ones
	Order   bool     // the last layer is for rows that run it alone: one of a token gives what it adds to the logits behind it
	// Trust is the place of the state of such a row, with that of the block's row as its vector, that has, as a logit, how likely the next draft is to be accepted; 0: none has.
	Trust int
	// Pairs is the number of pairs that each row carries: its own and those before it, whose features follow its own in its vector and whose tokens are in its Mix, the nearest
	// first; 0: rows are not pairs.
	Pairs int
	// Rank is the rank head of a module whose rows of a token are a block of slots: two matrices by rows, each with its biases behind it. It reads a slot's state and
	// 15 values of its logits, and gives the scores of four classes of ranks. Empty: the module has no slots.
	Rank [4][]float32
}

// FeatureWidth returns the values of a feature of a target of a width.
func (m *Module) FeatureWidth(width int) int { return max(1, len(m.Taps)) * width }
