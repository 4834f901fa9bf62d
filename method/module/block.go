package module

import (
	"context"

	"grove/internal/forest"
	"grove/method"
)

// Block runs the rows of a text through a draft module, and the block behind it in one pass. It is for one goroutine.
type Block struct {
	*Source
	most  int // rows of a block
	block []method.Row
}

// NewBlock returns a source of a module with blocks of so many rows at most, for a target's vocabulary.
func NewBlock(m *method.Module, rows, vocabulary int) Block {
	return Block{Source: NewSource(m, vocabulary), most: min(rows, m.Block.Size)}
}

// Most implements [Ranked].
func (p *Block) Most() int { return p.most }

// Depths implements [Ranked]: it runs a block, depth drafts at most. The block is dropped: its results are valid until rows grow again. Its rows depend on the masks that they saw, so none is kept.
func (p *Block) Depths(ctx context.Context, depth int) (first, drafts int, err error) {
	of := p.module.Block
	if of.Follows {
		return p.follows(ctx, depth)
	}
	ok, err := p.Source.Root(ctx)
	if !ok || err != nil {
		return 0, 0, err
	}
	if of.Own {
		first = 1
	}
	room, behind := p.Room()
	n := min(p.most, room, behind, depth+first)
	if n <= first {
		return 0, 0, nil
	}
	p.block = p.block[:0]
	for i := range n {
		row := forest.Row{ID: of.Mask}
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

// follows is Depths of a module whose block begins with the text's last row: one pass reads what is new of the text and gives all drafts.
func (p *Block) follows(ctx context.Context, depth int) (first, drafts int, err error) {
	masks := min(p.most, depth, p.Size.Rows, p.Size.Context/2, p.Size.MostLive()) - 1
	p.behind = p.behind[:0]
	for range masks {
		p.behind = append(p.behind, method.Row{Row: forest.Row{ID: p.module.Block.Mask, Want: forest.Want{Logits: true}}})
	}
	if ok, err := p.Source.Root(ctx); !ok || err != nil {
		return 0, 0, err
	}
	return 0, 1 + len(p.behind), p.Trunk.Drop()
}
