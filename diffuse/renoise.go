package diffuse

import (
	"context"
	"slices"

	"grove/internal/forest"
	"grove/internal/text/token"
)

// TextBoard is a board whose canvases stand behind a text of which each token sees the earlier ones alone.
type TextBoard interface {
	Board
	// Read appends tokens to the text, which is kept, and returns how many rows ran.
	Read(ctx context.Context, ids []token.ID) (rows int, err error)
}

// Shaper is a [Sampler] that draws from what it made of a model's logits.
type Shaper interface {
	Sampler
	// Shape returns logits with the request's biases: the argument, or room that is valid until the next call.
	Shape(logits []float32) []float32
}

// Renoiser fills one canvas after the other (DiffusionGemma, Google 2026; Ben-Hamu et al. 2025). A canvas begins as random tokens. A pass gives for each place the
// likeliest token, a drawn one, and an entropy; the places of the lowest entropies take what was drawn, and all others a random token again. The next pass reads beside
// them what this one gave. Where the likeliest tokens stay the same and the entropies are low, or no pass is left, the likeliest tokens are the text. A Renoiser is for one
// goroutine.
type Renoiser struct {
	s       RenoiseSettings
	board   TextBoard
	sampler Shaper

	read   []token.ID // what the board is to read before the next canvas
	behind int        // tokens that it has read
	done   []Place    // of the answer
	given  int        // places that Next gave
	ended  bool

	canvas          []token.ID // what the pass runs
	likely, earlier []token.ID // the likeliest tokens of the last pass, and of the one before
	drawn           []token.ID
	entropies       []float64
	order           []int // of the places, by entropies
	priors          []forest.Prior
	branches        [][]Row // one
	tempered        []float32
	step            int // of the canvas
	same            int // passes for which the likeliest tokens have stayed the same
	passes, rows    int
}

// NewRenoiser returns a renoiser of an answer behind a prompt. Errors: those of [RenoiseSettings.Check].
func NewRenoiser(prompt []token.ID, s RenoiseSettings, b TextBoard, sampler Shaper) (*Renoiser, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	n := s.Canvas
	return &Renoiser{
		s: s, board: b, sampler: sampler, read: prompt, order: make([]int, n), canvas: make([]token.ID, n), likely: make([]token.ID, n), earlier: make([]token.ID, n),
		drawn: make([]token.ID, n), entropies: make([]float64, n), priors: make([]forest.Prior, n), branches: [][]Row{make([]Row, n)}, tempered: make([]float32, s.Vocabulary),
	}, nil
}

// Done reports whether the answer has ended, or has all its tokens.
func (g *Renoiser) Done() bool { return g.ended }

// Finished returns the places of the canvases that are finished.
func (g *Renoiser) Finished() []Place { return g.done }

// Stats returns how the canvases were filled so far. Rows of the text are among the rows.
func (g *Renoiser) Stats() Stats {
	s := Stats{Passes: g.passes, Rows: g.rows}
	for _, p := range g.done {
		s.Fixed = append(s.Fixed, p.Pass)
	}
	return s
}

// Next is [Generator.Next].
func (g *Renoiser) Next(ctx context.Context) (p Place, more bool, err error) {
	return next(ctx, g, &g.given)
}

// Ended reports whether Next has given all of an answer that ended, in a loop for instance, before it has all its tokens.
func (g *Renoiser) Ended() bool { return g.ended && g.given == len(g.done) && g.given < g.s.Length }

// Step runs a pass. It does nothing where the answer has ended. Errors: the board's and the sampler's.
func (g *Renoiser) Step(ctx context.Context) error {
	if g.ended {
		return nil
	}
	if g.step == 0 {
		if err := g.begin(ctx); err != nil {
			return err
		}
	}
	g.tell()
	t := g.temperature()
	if err := g.board.Pass(ctx, g.pass(), 0); err != nil {
		return err
	}
	g.passes, g.rows = g.passes+1, g.rows+len(g.canvas)
	mean, err := g.propose(t)
	if err != nil {
		return err
	}
	g.step++
	if g.settled() && mean < g.s.Sure || g.step == g.s.Steps {
		g.commit()
		return nil
	}
	g.renoise()
	return nil
}

// begin reads the text before a canvas and makes the canvas random.
func (g *Renoiser) begin(ctx context.Context) error {
	rows, err := g.board.Read(ctx, g.read)
	if err != nil {
		return err
	}
	g.behind, g.rows = g.behind+len(g.read), g.rows+rows
	n := min(g.s.Canvas, g.s.Room-len(g.done))
	g.canvas, g.likely, g.earlier, g.order = g.canvas[:n], g.likely[:n], g.earlier[:n], g.order[:n]
	for i := range g.canvas {
		g.canvas[i], g.likely[i] = g.random(i), token.None // no token is as before
	}
	g.same = 0
	return nil
}

// random returns the random token of a place before the next pass.
func (g *Renoiser) random(place int) token.ID {
	n := g.s.Vocabulary
	return token.ID(min(n-1, int(g.sampler.Number(len(g.done)+place, g.passes)*float64(n))))
}

// temperature returns that of the pass that is next.
func (g *Renoiser) temperature() float64 {
	return g.s.Coldest + (g.s.Hottest-g.s.Coldest)*float64(g.s.Steps-g.step)/float64(g.s.Steps)
}

// pass returns the rows of the canvas, with what the pass before gave.
func (g *Renoiser) pass() [][]Row {
	rows := g.branches[0][:len(g.canvas)]
	for i, id := range g.canvas {
		rows[i] = Row{Place: g.behind + i, ID: id, Want: true}
		if g.step > 0 {
			rows[i].Prior = &g.priors[i]
		}
	}
	g.branches[0] = rows
	return g.branches
}

// propose reads what a pass of a temperature gave, and returns the mean entropy.
func (g *Renoiser) propose(t float64) (mean float64, err error) {
	var p Proposal
	inverse := float32(1 / t)
	g.likely, g.earlier = g.earlier, g.likely
	for i := range g.canvas {
		logits := g.board.Logits(0, i)
		g.priors[i] = forest.Prior{Logits: logits, Temperature: float32(t)}
		for id, l := range g.sampler.Shape(logits) {
			g.tempered[id] = l * inverse
		}
		if g.drawn[i], err = g.sampler.Draw(g.tempered, len(g.done)+i, g.passes-1); err != nil {
			return 0, err
		}
		p.read(g.tempered)
		g.likely[i], g.entropies[i] = p.ID, p.Entropy
		mean += p.Entropy
	}
	return mean / float64(len(g.canvas)), nil
}

// settled reports whether the likeliest tokens have stayed the same for long enough.
func (g *Renoiser) settled() bool {
	if g.same++; !slices.Equal(g.likely, g.earlier) {
		g.same = 0
	}
	return g.same >= g.s.Stable
}

// renoise gives the places of the lowest entropies what was drawn, and all others a random token.
func (g *Renoiser) renoise() {
	for i := range g.canvas {
		g.canvas[i], g.order[i] = g.random(i), i
	}
	rank(g.order, func(i int) float64 { return -g.entropies[i] })
	for _, i := range withinBound(g.order, g.s.Bound, func(i int) float64 { return g.entropies[i] }) {
		g.canvas[i] = g.drawn[i]
	}
}

// withinBound returns the first of some places, which are sorted by their rising entropies: those before which the sum of the entropies is at most a bound
// (Ben-Hamu et al. 2025).
func withinBound(ranked []int, bound float64, entropy func(at int) float64) []int {
	sum := 0.0
	for n, at := range ranked {
		if sum > bound {
			return ranked[:n]
		}
		sum += entropy(at)
	}
	return ranked
}

// commit makes the likeliest tokens part of the answer, as far as that goes.
func (g *Renoiser) commit() {
	n, ended := len(g.canvas), false
	if g.s.Ends != nil {
		n, ended = trim(g.likely, g.s.Ends)
	}
	n = min(n, g.s.Length-len(g.done))
	var p Proposal
	for i, id := range g.likely[:n] {
		p.read(g.priors[i].Logits)
		g.done = append(g.done, Place{ID: id, P: p.probabilityOf(id), Pass: g.passes - 1})
	}
	g.read = append(g.read[:0:0], g.likely[:n]...)
	g.ended = ended || len(g.done) == g.s.Length
	g.step = 0
}

// loop is how many times a token, or two, follow themselves in what is cut as a loop.
const loop = 6

// trim returns how many tokens of a canvas are text: up to the first that ends it, which is text, or to the end of the first round of a loop of one or two tokens. ended says
// that the text ends there.
func trim(ids []token.ID, ends func(token.ID) bool) (n int, ended bool) {
	runs := [3]int{} // by period: tokens up to this one that are equal to the one a period before
	for i, id := range ids {
		for period := 1; period <= 2; period++ {
			if runs[period]++; i < period || ids[i-period] != id {
				runs[period] = 0
			}
			if runs[period] == (loop-1)*period {
				return i + 1 - (loop-1)*period, true
			}
		}
		if ends(id) {
			return i + 1, true
		}
	}
	return len(ids), false
}
