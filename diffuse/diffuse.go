// Package diffuse generates text by masked diffusion: a canvas behind the prompt begins as masks, and in each pass of the model a policy chooses the masks
// that become tokens, until none is left (LLaDA, Nie et al. 2025).
//
// A [Generator] runs the passes. A [Policy] chooses what it fixes where; a cache ([Caches]) says which rows a pass runs, and which keys of earlier passes they see; the
// [Settings] say how long blocks are. Rows of a text see each other; those of a model of blocks ([Settings.Native]) see no later block, so that keys of finished blocks stay as they
// are (BD3-LM, Arriola et al. 2025). Random numbers depend on seed, sample, place and pass alone, so an answer depends on the request and not on what runs beside it.
package diffuse

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// Row is a row of a pass: a token at a place of the text.
type Row struct {
	Place int // from 0, of the prompt and the canvas
	ID    token.ID
	Want  bool // its logits
	Block int  // rows of a branch with the same number follow each other and see each other

	Prior *forest.Prior // of a canvas that begins as random tokens: what the last pass gave in its place; nil: none
}

// Board runs the passes. It is for one goroutine.
type Board interface {
	// Pass runs branches of rows. A row sees all that is kept, the rows before it in its branch, and all of its block, in this order. The first keep rows of the first
	// branch are kept for later passes, and the others dropped.
	Pass(ctx context.Context, branches [][]Row, keep int) error
	// Logits returns what the i-th row of a branch of the last pass gave, valid until the next pass has run; they may be changed.
	Logits(branch, i int) []float32
	// Drop drops the kept rows of some places; the others stay in their order.
	Drop(gone func(place int) bool) error
	// Reuse keeps what earlier texts of blocks have left of a text's first tokens, before anything else is kept, and returns how many are kept: fewer than there are.
	Reuse(ctx context.Context, ids []token.ID) (kept int, err error)
	// Rows returns the most rows of a pass.
	Rows() int
}

// Sampler turns logits into proposals. It is for one goroutine.
type Sampler interface {
	// Draw returns the token that the random numbers of an index of the answer and a pass draw from logits, which it does not change; greedy, the likeliest.
	Draw(logits []float32, index, pass int) (token.ID, error)
	// Number returns a number above 0 and below 1 for an index of the answer and a pass.
	Number(index, pass int) float64
}

// Settings say how a canvas is filled.
type Settings struct {
	Length int // places of the canvas
	Block  int // places of a block; 0: Length, or Native. Blocks are filled one after the other
	// Native is the tokens of a block of a model whose rows see the blocks before them and all of their own. Its blocks begin at the text's beginning; 0: all rows see each other.
	Native int
	Passes int // that all blocks take together, where the policy counts them; 0: Length
	Policy string
	Cache  string
	Drafts int // of FreeDave, that a pass verifies; 0: none

	// Blocks is "adaptive" or "adaptive:P" for blocks that end behind a delimiter, such as the end of a line, of at least the probability P, in place of Block.
	Blocks     string
	Delimiters []token.ID
	// Early is "prophet" where all masks become tokens once the two likeliest tokens of each are far apart, "end" where the canvas ends with the text, and "" for neither.
	Early string
	Ends  func(token.ID) bool // reports whether a token ends the text; nil: none does

	Filter Filter // of the policy learned; nil: the model has none
	// Left fills the canvas from the left, by a [Follower]: a pass fixes a run of places from the first mask on, each behind the text before it.
	Left bool
	// Likely asks for what a [Judge] tells of each token.
	Likely bool
	// Watch is told of the canvas behind the places that stay as they are, before each pass, by [Generator.Next]; nil: nobody is. It needs Piece, which appends a token's bytes.
	Watch func([]Run)
	Piece func(dst []byte, id token.ID) ([]byte, error)

	Mask  token.ID
	Shift bool // a row gives the token behind its own place
}

// Place is a place of the canvas with what is known of it.
type Place struct {
	ID   token.ID // the mask, as long as it is one
	P    float64  // the probability of ID, at temperature 1, in the pass that fixed it
	Pass int      // that fixed it

	Likely *Likely // what [Settings.Likely] asks for; nil: nothing
}

// Generator fills one canvas, or block after block behind the prompt. It is for one goroutine.
type Generator struct {
	s       Settings
	board   Board
	sampler Sampler
	policy  Policy
	cache   cache
	read    reader
	ahead   ahead

	readsTokens bool // proposals of the block's tokens are wanted
	conditions  Conditioner
	following   following
	given       int   // places that Next gave
	judging     Judge // nil: nothing is asked for
	failed      error // by which judging did

	prompt    []token.ID
	canvas    []Place
	masks     int
	first     int // of the block
	end       int
	to        int // end of the places whose proposals a pass gives
	view      View
	decision  Decision
	pass      int    // that were run
	step      int    // by which random numbers are drawn: passes, but for those that FreeDave saves
	rows      int    // that have run
	uses      []use  // by place of the text: what the pass does with it
	kept      []bool // by place of the text: the board has its row
	order     []int  // places whose rows the pass runs, rising
	branches  [][]Row
	at        [][]int // by branch and place of the text: the row that gives its token, or -1
	proposals []Proposal
}

// MostLength is the longest canvas.
const MostLength = 1 << 16

// Check completes the settings, and returns an error that names one that is none.
func (s *Settings) Check() error {
	g := Generator{s: *s}
	err := g.open()
	*s = g.s
	return err
}

// open completes the generator's settings, checks them, and opens what they name.
func (g *Generator) open() (err error) {
	s := &g.s
	if s.Native > 0 {
		s.Policy = cmp.Or(s.Policy, "dynamic") // as SDAR is used
	}
	if g.policy, err = OpenPolicy(s.Policy); err != nil {
		return &SettingError{"policy", err}
	}
	if s.Block == 0 {
		s.Block = cmp.Or(s.Native, s.Length)
		if _, learns := g.policy.(*learned); learns && s.Filter != nil {
			s.Block = min(s.Block, s.Filter.Block())
		}
	}
	if s.Passes == 0 {
		s.Passes = s.Length
	}
	switch {
	case s.Mask == token.None:
		return s.fault("", "the model names no mask token (tokenizer.ggml.mask_token_id), without which there is no canvas")
	case s.Length < 1 || s.Length > MostLength:
		return s.fault("length", "a canvas of %d tokens; it must have 1 to %d", s.Length, MostLength)
	case s.Native == 0 && (s.Block < 1 || s.Block > s.Length):
		return s.fault("block", "blocks of %d tokens; they must have 1 to %d, the canvas", s.Block, s.Length)
	case s.Passes < 1 || s.Passes > s.Length:
		return s.fault("steps", "%d steps; there must be 1 to %d, the tokens of the canvas", s.Passes, s.Length)
	}
	if g.cache, err = s.openKeys(); err != nil {
		return err
	}
	if err = cmp.Or(s.draftable(g.policy, g.cache), s.followable(g.policy, g.cache), s.fits(g.policy, g.cache)); err != nil {
		return err
	}
	_, g.readsTokens = g.policy.(*learned)
	g.readsTokens = g.readsTokens || g.policy.Revises()
	g.conditions, _ = g.policy.(Conditioner)
	g.ahead, err = s.look(g.cache)
	return err
}

// New returns a generator of a canvas behind a prompt. Errors are those of [Settings.Check].
func New(prompt []token.ID, s Settings, b Board, sampler Sampler) (*Generator, error) {
	g := &Generator{s: s, board: b, sampler: sampler, prompt: prompt}
	if err := g.open(); err != nil {
		return nil, err
	}
	if err := g.lookUp(); err != nil {
		return nil, err
	}
	g.masks = g.s.Places(len(prompt))
	g.canvas = slices.Repeat([]Place{{ID: s.Mask, Pass: -1}}, g.masks)
	if g.s.Ends == nil {
		g.s.Ends = func(token.ID) bool { return false }
	}
	g.proposals, g.read, g.kept = make([]Proposal, g.masks), readWith(sampler, s.Mask), make([]bool, len(prompt)+g.masks)
	return g, nil
}

// Done reports whether no mask is left that a pass could fix.
func (g *Generator) Done() bool { return g.masks == 0 || g.following.over }

// Finished returns the places from the beginning that are tokens and stay so.
func (g *Generator) Finished() []Place {
	n := min(g.given, len(g.canvas))
	for n < min(len(g.canvas), g.s.Length) && g.canvas[n].ID != g.s.Mask && (n < g.first || !g.policy.Revises() || g.Done()) {
		n++
	}
	return g.canvas[:n]
}

// Next returns the next place from the beginning that stays as it is, and runs the passes that it takes; more is false where the canvas has none. Errors are those of [Generator.Step].
func (g *Generator) Next(ctx context.Context) (p Place, more bool, err error) {
	if g.given == g.s.Length {
		return p, false, nil // the rest of a block
	}
	return next(ctx, g, &g.given)
}

// filler is a [Generator] or a [Renoiser].
type filler interface {
	Done() bool
	Finished() []Place
	Step(ctx context.Context) error
}

// next returns the place behind those that were given, and counts it.
func next(ctx context.Context, f filler, given *int) (p Place, more bool, err error) {
	for len(f.Finished()) == *given {
		if f.Done() {
			return p, false, nil
		}
		if err := f.Step(ctx); err != nil {
			return p, false, err
		}
	}
	*given++
	return f.Finished()[*given-1], true, nil
}

// Step runs a pass and fixes what the policy chooses. It does nothing where the canvas is full. Errors are the board's, the sampler's, and one that says that a policy fixed nothing.
func (g *Generator) Step(ctx context.Context) error {
	if g.Done() {
		return nil
	}
	if g.s.Watch != nil {
		g.s.Watch(g.unfinished())
	}
	entry := g.first == g.end || g.left() == 0
	if entry {
		g.enter()
	}
	switch {
	case g.s.Drafts > 0 && !entry:
		return g.stepDrafts(ctx)
	case len(g.decision.Try) > 0 && !entry:
		return g.stepTrials(ctx)
	}
	g.to = g.readTo(entry)
	if err := g.readPrompt(ctx, entry); err != nil {
		return err
	}
	keep := g.arrange(entry)
	if err := g.run(ctx, keep, [][]Place{g.canvas}); err != nil {
		return err
	}
	g.condition()
	if err := g.proposeAt(0, g.step, g.canvas, g.proposals); err != nil {
		return err
	}
	if g.s.Drafts > 0 {
		g.pass++
		return nil // drafts go on from what this pass says
	}
	if entry && g.ahead.delimiter > 0 {
		g.endBlock()
	}
	if g.known() {
		g.finish()
		return g.failed
	}
	err := g.decide()
	if g.ahead.cut && err == nil {
		g.cut(g.cutAt())
	}
	return err
}

// condition tells the policy what the pass gave, where it reads that again.
func (g *Generator) condition() {
	for place := range g.canvas {
		if row := g.at[0][len(g.prompt)+place]; g.conditions != nil && row >= 0 && g.masked(len(g.prompt)+place) {
			g.conditions.Gave(place, g.board.Logits(0, row))
		}
	}
}

// left returns the masks of the block.
func (g *Generator) left() (n int) {
	for _, p := range g.canvas[g.first:g.end] {
		if p.ID == g.s.Mask {
			n++
		}
	}
	return n
}

// enter begins the next block.
func (g *Generator) enter() {
	g.first = g.end
	g.end = g.blockEnd()
	g.to = g.end
	g.begin()
}

// begin tells the policy the block.
func (g *Generator) begin() {
	g.view = View{
		First: g.first, End: g.end, Proposals: g.proposals, Canvas: g.canvas, Mask: g.s.Mask,
		Passes: g.end*g.s.Passes/g.s.Length - g.first*g.s.Passes/g.s.Length, Number: func(place int) float64 { return g.sampler.Number(place, g.step) },
	}
	g.view.Passes = max(1, g.view.Passes)
	if _, explores := g.policy.(explorer); explores {
		g.view.End = len(g.canvas)
	}
	g.policy.Begin(&g.view)
}

// run runs the places of the text in g.order for each of some canvases. It drops rows that were kept and are not to be seen before, and keeps those of its first canvas before the place keep.
func (g *Generator) run(ctx context.Context, keep int, canvases [][]Place) error {
	gone := func(place int) bool { return place >= len(g.uses) || g.uses[place] != seen }
	if err := g.forget(gone); err != nil {
		return err
	}
	g.branches, g.at = g.branches[:0], g.at[:0]
	for _, canvas := range canvases {
		rows, at := g.rowsOf(canvas)
		g.branches, g.at, g.rows = append(g.branches, rows), append(g.at, at), g.rows+len(rows)
	}
	n := 0
	for n < len(g.order) && g.order[n] < keep {
		g.kept[g.order[n]] = true
		n++
	}
	return g.board.Pass(ctx, g.branches, n)
}

// forget drops the kept rows of some places.
func (g *Generator) forget(gone func(place int) bool) error {
	any := false
	for place, kept := range g.kept {
		if kept && gone(place) {
			g.kept[place], any = false, true
		}
	}
	if !any {
		return nil
	}
	return g.board.Drop(gone)
}

// rowsOf returns the rows of a canvas, and by place of the text the row that gives the token there, or -1.
func (g *Generator) rowsOf(canvas []Place) (rows []Row, at []int) {
	at = slices.Repeat([]int{-1}, len(g.prompt)+len(canvas))
	for i, place := range g.order {
		row := Row{Place: place, ID: g.idAt(canvas, place), Block: g.blockOf(place)}
		if g.conditions != nil && g.masked(place) {
			row.Prior = g.conditions.Prior(place - len(g.prompt))
		}
		for _, gives := range g.gives(place) {
			if to := gives - len(g.prompt); to >= 0 && to < len(canvas) && (g.reads(canvas, to) || g.conditions != nil && g.runs(to) && g.masked(gives)) {
				row.Want, at[gives] = true, i
			}
		}
		rows = append(rows, row)
	}
	return rows, at
}

// idAt returns the token at a place of the text.
func (g *Generator) idAt(canvas []Place, place int) token.ID {
	if place < len(g.prompt) {
		return g.prompt[place]
	}
	return canvas[place-len(g.prompt)].ID
}

// gives returns the places whose tokens a row gives: its own, or the next one; behind no prompt the first row gives both.
func (g *Generator) gives(place int) []int {
	switch {
	case !g.s.Shift:
		return []int{place}
	case place == 0:
		return []int{0, 1}
	}
	return []int{place + 1}
}

// reads reports whether the proposal of a place of a canvas is read: of a mask that runs, and of the block's other places where the policy revises them.
func (g *Generator) reads(canvas []Place, place int) bool {
	return place >= g.first && place < g.to && g.runs(place) && (canvas[place].ID == g.s.Mask || g.readsTokens)
}

// runs reports whether the pass runs a place of the canvas.
func (g *Generator) runs(place int) bool {
	return g.uses[len(g.prompt)+place] == run
}

// proposeAt reads what a branch gave of the places whose proposals a pass gives, with the random numbers of a step.
func (g *Generator) proposeAt(branch, step int, canvas []Place, to []Proposal) error {
	clear(to[g.first:g.to])
	for place := g.first; place < g.to; place++ {
		row := g.at[branch][len(g.prompt)+place]
		if row < 0 || !g.reads(canvas, place) {
			continue
		}
		p, err := g.read(g.board.Logits(branch, row), place, step)
		if err != nil {
			return err
		}
		if to[place] = p; g.s.Drafts > 0 {
			g.judge(place, &to[place]) // the pass that fixes it may have other logits
		}
	}
	return g.failed
}

// decide lets the policy choose, and writes what it chose.
func (g *Generator) decide() error {
	v, d := &g.view, &g.decision
	v.Masked = slices.DeleteFunc(v.places(v.Masked[:0], true), func(at int) bool { return !g.runs(at) })
	d.Fix, d.Mask, d.Try = d.Fix[:0], d.Mask[:0], nil
	v.Branches = g.board.Rows() / max(1, len(g.order))
	g.policy.Choose(d, v)
	for _, at := range d.Mask {
		g.unfix(at)
	}
	if err := g.fixChosen(d.Fix); err != nil {
		return err
	}
	v.Pass++
	g.pass++
	g.step++
	if v.Pass > mostPasses(v) {
		return fmt.Errorf("diffuse: policy %s has run %d passes over a block of %d tokens, and %d are masks", g.s.Policy, v.Pass, v.End-v.First, g.left())
	}
	return nil
}

// mostPasses bounds the passes of a block.
func mostPasses(v *View) int { return 4*(v.End-v.First) + v.Passes }

// fixChosen fixes the places that the policy chose, or those of them that a follower can draw.
func (g *Generator) fixChosen(chosen []int) error {
	if g.following.text != nil {
		return cmp.Or(g.fixLeft(chosen), g.failed)
	}
	for _, at := range chosen {
		g.fix(at, &g.proposals[at])
	}
	return g.failed
}

func (g *Generator) fix(at int, p *Proposal) {
	g.judge(at, p)
	if g.canvas[at].ID == g.s.Mask {
		g.masks--
	}
	g.canvas[at] = Place{ID: p.ID, P: p.P, Pass: g.pass, Likely: p.Likely}
}

func (g *Generator) unfix(at int) {
	if g.canvas[at].ID != g.s.Mask {
		g.masks++
		g.canvas[at] = Place{ID: g.s.Mask, Pass: -1}
	}
}
