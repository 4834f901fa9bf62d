// masks.go drafts with the target's own masks, of a model of blocks that decodes token by token: a pass runs the text's last token and a block of masks behind it, and what each
// mask gives is drafted (self-speculation of block diffusion by its autoregressive mode).
//
// The rows hang from the text's own trunk and see its keys, which are those of blocks of one token. What a mask gives does not know the drafts before, as that of heads does not.

package self

import (
	"context"

	"grove/internal/forest"
	"grove/method"
	"grove/method/grow"
	"grove/method/module"
)

// ranks and drafts bound the tree: candidates of a depth, and all drafts. most bounds the tokens of a pass.
const ranks, drafts, most = 3, 24, 32

// masksOptions are what a user may choose; the usual one is a block of the model.
var masksOptions = []method.Option{{Name: "tokens", Is: "N, the tokens that a pass drafts", Least: 1, Most: most}}

func init() {
	method.Register(method.Info{
		Name: "masks", Paper: "a model of blocks drafts with its own masks (SDAR, 2025; BD3-LM, 2025)", Kind: method.KindSelf, Grade: method.Exact, RunsRows: true,
		NotAuto: "no trained model of blocks was at hand",
		Needs:   "a model of blocks that decodes token by token (--block 1)", CheckNeeds: meets,
	}.Takes(masksOptions, openMasks))
}

// meets returns an error where the target has no masks.
func meets(e method.Env) error {
	if e.Target != nil && e.Target.Size().Canvas != nil && e.Target.Size().Canvas.Block > 0 {
		return nil
	}
	return method.ErrNeeds
}

// openMasks opens the method with a number of drafts of a pass, or by default those of a block.
func openMasks(e method.Env, n []int) (method.Method, error) {
	m := &masks{size: e.Target.Size(), tokens: n[0]}
	if m.tokens == 0 {
		m.tokens = min(m.size.Canvas.Block, most)
	}
	return m, nil
}

type masks struct {
	size   method.Size
	tokens int
}

// NewDrafter implements [method.Method].
func (m *masks) NewDrafter(own method.Trunk) (method.Drafter, error) {
	if own == nil {
		return nil, method.ErrOnRecord
	}
	s := &source{module.Masked{Size: m.size, Vocabulary: m.size.Vocabulary, Masks: m.tokens, Trunk: own}}
	return module.NewProduct(s, method.Wants{}, ranks, drafts, m.size.Vocabulary), nil
}

// source runs passes over the text's last token and masks. It is a [module.Ranked].
type source struct{ module.Masked }

// Depths implements [module.Ranked]. With a shifted head the text's last token gives the first depth, and else the first mask.
func (s *source) Depths(ctx context.Context, depth int) (first, n int, err error) {
	at := len(s.Text.IDs()) - s.Text.SourceLen
	if !s.Size.Canvas.Shift {
		first = 1
	}
	if n = min(s.Masks, depth, min(s.Size.Rows, s.Size.MostLive(), s.Size.Context-at+1)-first); n < 1 || at == 0 {
		return 0, 0, nil
	}
	s.Rows = append(s.Rows[:0], method.Row{Row: forest.Row{ID: s.Text.Last(0)}})
	for i := 1; i < first+n; i++ {
		s.Rows = append(s.Rows, method.Row{Row: forest.Row{ID: s.Size.Canvas.Mask, Block: 1}, After: i})
	}
	return s.Pass(ctx, first, n)
}

// Memory implements [module.Following].
func (s *source) Memory(rows int) method.Memory { return grow.PassMemory(s.Size, rows+1, false) }

// Close implements [module.Following]: the trunk is the text's.
func (*source) Close() error { return nil }
