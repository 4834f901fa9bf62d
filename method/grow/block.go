package grow

import (
	"context"

	"grove/forest"
	"grove/method"
	"grove/text/token"
)

// BlockSource runs the rows of a text through a draft module, and the block behind it in one pass. It is for one goroutine.
type BlockSource struct {
	*ModuleSource
	Most  int // rows of a block
	block []method.Row
	err   error // of an update
}

// NewBlockSource returns a source of a module with blocks of so many rows at most, for a target's vocabulary.
func NewBlockSource(m *method.Module, rows, vocabulary int) BlockSource {
	return BlockSource{ModuleSource: NewModuleSource(m, vocabulary), Most: min(rows, m.Block.Size)}
}

// Wants implements [method.Wanter].
func (p *BlockSource) Wants() method.Wants { return p.module.Wants() }

// Begin begins a text.
func (p *BlockSource) Begin(h *method.History) error {
	p.err = nil
	return p.ModuleSource.Begin(h)
}

// Committed takes the features of the rows that were accepted.
func (p *BlockSource) Committed(r method.Update) { p.err = p.ModuleSource.Committed(r) }

// Run runs a block, depth drafts at most, and returns the number of its rows that give logits, from the result at first on; 0: it drafts nothing
// now. The block is dropped: its results are valid until rows grow again. Its rows depend on the masks that they saw, so none is kept.
func (p *BlockSource) Run(ctx context.Context, depth int) (first, drafts int, err error) {
	if p.err != nil {
		return 0, 0, p.err
	}
	ok, err := p.ModuleSource.Root(ctx)
	if !ok || err != nil {
		return 0, 0, err
	}
	of := p.module.Block
	if of.Own {
		first = 1
	}
	room, behind := p.Room()
	n := min(p.Most, room, behind, depth+first)
	if n <= first {
		return 0, 0, nil
	}
	p.block = p.block[:0]
	for i := range n {
		row := forest.Row{ID: token.ID(of.Mask)}
		if i == 0 {
			row.ID = p.text.Last(0)
		}
		if of.Sees {
			row.Block = 1
		}
		if of.Order { // the last layer is for rows of a token
			row.Skip = row.Skip.With(p.Size.Layers - 1)
		}
		row.Want = forest.Want{Logits: i >= first, State: of.Trust > 0 && i >= first}
		p.block = append(p.block, method.Row{Row: row, After: i})
	}
	if err := p.Grow(ctx, p.block); err != nil {
		return 0, 0, err
	}
	return first, n - first, p.Trunk.Drop()
}
