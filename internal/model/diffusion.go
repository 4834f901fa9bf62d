package model

import (
	"math"

	"grove/internal/text/token"
)

// Diffusion describes a diffusion model: rows of a text, or of a block of it, see each other, and each row that is a mask gives a distribution of the token in its
// place. Or there are no masks: see Renoise. It is read-only.
type Diffusion struct {
	Mask  token.ID // the mask token; [token.None]: the file names none, so that no text can be generated
	Shift bool     // a row gives the token behind its own place
	// Filter is what the policy learned goes by; nil: the file has none.
	Filter *CanvasFilter
	// Block is the tokens of a block of a model whose rows see the blocks before them and all of their own; 0: all rows of a text see each other.
	Block   int
	Renoise *Renoise // canvases begin as random tokens; nil: as masks
}

// Instead returns how a text is decoded token by token, to end an error with; "": it is not.
func (d *Diffusion) Instead() string {
	if d.Block == 0 {
		return ""
	}
	return "; with blocks of one token (block 1) texts are decoded token by token"
}

// MaskedDiffusion says that the model is one of masked diffusion, by the keys tokenizer.ggml.mask_token_id and diffusion.shift_logits, which is true where
// it is missing. A file that says that its tokens see earlier ones alone is refused.
func (l *Loader) MaskedDiffusion() {
	if l.BoolOr("attention.causal", false) {
		l.fail("%s is true; the tokens of a diffusion model see each other", l.key("attention.causal"))
	}
	d := &Diffusion{Mask: token.None, Shift: true}
	if shift, ok, err := l.file.Bool("diffusion.shift_logits"); err != nil {
		l.wrap(err)
	} else if ok {
		d.Shift = shift
	}
	switch id, ok, err := l.file.Uint("tokenizer.ggml.mask_token_id"); {
	case err != nil:
		l.wrap(err)
	case ok && uint64(id) >= uint64(min(l.info.Vocabulary, math.MaxInt32)):
		l.fail("tokenizer.ggml.mask_token_id is %d; the vocabulary has %d tokens", id, l.info.Vocabulary)
	case ok:
		d.Mask = token.ID(id)
	}
	d.Filter = l.filter()
	l.info.Diffusion, l.info.Encoder = d, false
}

// MostBlock is the longest block of a model of blocks.
const MostBlock = 1 << 10

// BlockDiffusion is [Loader.MaskedDiffusion] of a model of blocks (BD3-LM, 2025), whose length diffusion.block_length gives.
func (l *Loader) BlockDiffusion() {
	l.MaskedDiffusion()
	switch n, ok, err := l.file.Uint("diffusion.block_length"); {
	case err != nil:
		l.wrap(err)
	case !ok || n < 1 || n > MostBlock:
		l.fail("diffusion.block_length is %d; a model of blocks says how many tokens a block has, 1 to %d", n, MostBlock)
	default:
		l.info.Diffusion.Block = int(n)
	}
}
