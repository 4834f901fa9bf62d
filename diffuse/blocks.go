package diffuse

import (
	"cmp"
	"context"
	"fmt"

	"grove/internal/forest"
	"grove/internal/options"
)

// A model of blocks (BD3-LM, Arriola et al. 2025; SDAR, Cheng et al. 2025) sees no later block, so that the keys of a finished block are those of any later pass. Its blocks
// begin at the text's beginning: one that the prompt fills in part begins the answer, with the prompt's tokens in their places. The rows of a finished block run once more,
// with all its tokens known, in the first pass of the next block, and are kept.

// blocks is the name of the cache of finished blocks.
const blocks = "blocks"

// openKeys opens the cache that the settings name.
func (s *Settings) openKeys() (cache, error) {
	const whole = "models whose rows all see each other"
	c, err := openCache(s.Cache)
	_, finished := c.(*blockKeys)
	switch {
	case err != nil:
		return nil, &SettingError{"cache", err}
	case s.Native == 0 && finished:
		return nil, s.fault("cache", "cache blocks: finished blocks stay as they are in models of blocks alone; choose another")
	case s.Native == 0:
		return c, nil
	case s.Block < 1 || s.Block > s.Native:
		return nil, s.fault("block", "blocks of %d tokens; those of the model have %d, and may have fewer", s.Block, s.Native)
	case s.Blocks != "":
		return nil, s.fault("blocks", "adaptive blocks are of %s; leave them out for a model of blocks", whole)
	case s.Early != "":
		return nil, s.fault("early", "early ends are of %s; leave them out for a model of blocks", whole)
	case s.Cache == "":
		return &blockKeys{}, nil
	case !finished && c != (plain{}):
		return nil, s.fault("cache", "cache %s is of %s; a model of blocks has blocks, which is exact, and none", s.Cache, whole)
	}
	return c, nil
}

// usualCanvas is the tokens of a canvas where nothing bounds them.
const usualCanvas = 128

// Room returns how many tokens an answer behind a prompt has where nothing bounds them, and how many it may have in a context. That of a model of blocks ends with a block, or
// within one that fits.
func (s *Settings) Room(context, prompt int) (usual, most int) {
	if s.Native == 0 {
		most = context - prompt
		return min(usualCanvas, most), most
	}
	block := max(1, cmp.Or(s.Block, s.Native))
	most = context/block*block - prompt
	return min(MostLength, most), most
}

// Lasts reports whether keys of finished blocks serve later texts that begin as this one: those of settings that were checked, of blocks that end where pages of the cache do.
func (s *Settings) Lasts() bool {
	return s.Native > 0 && s.Cache != "none" && forest.SlotsPerPage%s.Block == 0
}

// Exact reports whether the cache changes nothing that rows see.
func (s *Settings) Exact() bool { return s.Cache == "" || s.Cache == "none" || s.Cache == blocks }

// Places returns how long the canvas behind a prompt is, of settings that were checked: what a model of blocks fills ends with a block.
func (s *Settings) Places(prompt int) int {
	if s.Native == 0 {
		return s.Length
	}
	return (prompt+s.Length+s.Block-1)/s.Block*s.Block - prompt
}

// blockStart returns the place of the text at which the block begins, of a model of blocks.
func (g *Generator) blockStart() int { return (len(g.prompt) + g.first) / g.s.Block * g.s.Block }

// blockEnd returns the end of the block in the canvas.
func (g *Generator) blockEnd() int {
	if g.s.Native == 0 {
		return min(g.first+g.s.Block, len(g.canvas))
	}
	return g.blockStart() + g.s.Block - len(g.prompt)
}

// blockOf returns the number of the block whose rows a row sees.
func (g *Generator) blockOf(place int) int {
	if g.s.Native == 0 {
		return 0
	}
	return place / g.s.Block
}

// blockKeys keeps the rows of finished blocks. Where heads are shifted the last row before the block gives the block's first token: it runs with the block, and is kept with it.
type blockKeys struct{ kept int } // places of the text

func (*blockKeys) reach() reach { return runsBlock }

func (c *blockKeys) plan(g *Generator, entry bool, uses []use) int {
	first, end := g.bounds()
	mark(uses, 0, c.kept, seen)
	mark(uses, end, len(uses), hidden)
	if entry {
		c.kept = first
	}
	return c.kept
}

// reuse keeps what earlier texts have left of the prompt's full blocks.
func (g *Generator) reuse(ctx context.Context, c *blockKeys) (err error) {
	first, _ := g.bounds()
	c.kept, err = g.board.Reuse(ctx, g.prompt[:min(first+1, len(g.prompt))])
	for place := range c.kept {
		g.kept[place] = true
	}
	return err
}

// readPrompt keeps as many finished blocks, in passes of their own, as do not fit into the pass that begins a block.
func (g *Generator) readPrompt(ctx context.Context, entry bool) error {
	c, ok := g.cache.(*blockKeys)
	if !ok || !entry {
		return nil
	}
	if g.pass == 0 {
		if err := g.reuse(ctx, c); err != nil {
			return err
		}
	}
	first, end := g.bounds()
	for most := g.board.Rows(); end-c.kept > most; {
		to := min(g.blockStart(), (c.kept+most)/g.s.Block*g.s.Block)
		keep := min(to, first)
		if keep <= c.kept {
			return fmt.Errorf("diffuse: a pass has %d rows at most; a block of %d tokens does not fit", most, g.s.Block)
		}
		g.clearUses()
		mark(g.uses, 0, c.kept, seen)
		mark(g.uses, to, len(g.uses), hidden)
		g.list()
		if err := g.run(ctx, keep, [][]Place{g.canvas}); err != nil {
			return err
		}
		c.kept = keep
		g.pass++
	}
	return nil
}

func init() {
	Register(Info{
		Name: "first-hitting", Paper: "BD3-LM, Arriola et al. 2025: one place in each pass, which a random number chooses", Options: "",
		Open: func(*options.Options) Policy {
			return chooser{choose: func(d *Decision, v *View) { d.Fix = append(d.Fix, best(v, 1, v.Number)...) }}
		},
	})
}
