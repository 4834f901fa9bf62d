// lookahead.go drafts n-grams that a window of rows makes: each round runs the window beside the drafts, and the model's own
// predictions behind its rows become the window's next rows (Lookahead decoding, Fu et al. 2024). No second model and no earlier text is needed;
// what it costs are the rows.
//
// The window has levels: a chain of tokens behind the text, and levels whose tokens stand behind the same place of the level before. So a
// column is an n-gram that the model wrote in parallel rounds, and a pool keeps the last ones of each first token.

package logits

import (
	"context"
	"slices"

	"grove/internal/forest"
	"grove/internal/text/token"
	"grove/method"
)

func init() {
	method.Register(method.Info{
		Name: "lookahead", Paper: "Lookahead decoding, 2024", Kind: method.KindLogits, Grade: method.Exact, RunsRows: true, Lasting: true,
		NotAuto: "the rows of its window cost more than it gives",
		Open:    func(method.Env) (method.Method, error) { return lookahead{texts: true}, nil },
	})
}

// The sizes of the method: small ones, since every row takes time on a CPU.
const (
	lookaheadWidth = 5 // columns of the window
	ngram          = 4 // tokens of an n-gram, its first one included
	levels         = ngram - 1
	candidates     = 5       // n-grams that are drafted in a round, and kept of a first token
	keys           = 1 << 11 // first tokens that the pool keeps
)

// lookahead says whether the pool has the n-grams of the text too.
type lookahead struct{ texts bool }

// NewDrafter implements [method.Method].
func (l lookahead) NewDrafter(method.Trunk) (method.Drafter, error) {
	return &lookaheadDrafter{texts: l.texts, pool: make([]entry, keys)}, nil
}

// entry is the n-grams of a first token, the one that was seen last at the end.
type entry struct {
	first token.ID
	n     int
	rest  [candidates][levels]token.ID
}

type lookaheadDrafter struct {
	texts   bool
	history *method.History
	read    int // tokens of the text whose n-grams the pool has
	pool    []entry
	window  [levels][lookaheadWidth]token.ID // the first level has no last column
	places  [levels][lookaheadWidth]int      // of the window's rows in the tree of the round; [method.Root]: it has none
	anchor  token.ID                         // of the round; [token.None]: there was none
	said    [128]token.ID                    // what the model finds likeliest behind each row, by place in the tree
}

// Wants implements [method.Wanter].
func (*lookaheadDrafter) Wants() method.Wants { return method.Wants{Rows: forest.Want{Top: 1}} }

// Begin implements [method.Drafter]. The window begins with tokens of the text.
func (d *lookaheadDrafter) Begin(h *method.History) error {
	d.history, d.anchor, d.read = h, token.None, 0
	clear(d.pool)
	d.learn()
	for j := range d.window {
		for i := range d.window[j] {
			d.window[j][i] = max(0, h.Last((j*lookaheadWidth+i)*7%max(1, len(h.IDs()))))
		}
	}
	return nil
}

// learn puts the n-grams of new tokens into the pool.
func (d *lookaheadDrafter) learn() {
	ids := d.history.IDs()
	for ; d.texts && d.read < len(ids); d.read++ {
		if at := d.read - levels; at >= 0 {
			d.keep(ids[at], [levels]token.ID(ids[at+1:]))
		}
	}
}

// Committed implements [method.Drafter]: the n-grams of the columns go into the pool, and the window moves on by one place, whatever was accepted.
func (d *lookaheadDrafter) Committed(r method.Update) {
	if d.anchor != token.None && len(r.Rows) > 0 {
		d.move(r)
	}
	d.learn()
}

// move reads what the window's rows gave, and moves the window on.
func (d *lookaheadDrafter) move(r method.Update) {
	for i := range d.said {
		d.said[i] = token.None
	}
	for _, row := range r.Rows {
		if row.Node >= 0 && int(row.Node) < len(d.said) && len(row.Top) > 0 {
			d.said[row.Node] = row.Top[0].ID
		}
	}
	last := d.window[levels-1]
	for i := range last {
		at := d.places[levels-1][i]
		if at == method.Root || d.said[at] == token.None {
			continue // the row was not run: its token stays
		}
		first := d.anchor
		if i > 0 {
			first = d.window[0][i-1]
		}
		var rest [levels]token.ID
		for j := 1; j < levels; j++ {
			rest[j-1] = d.window[j][i]
		}
		last[i] = d.said[at]
		rest[levels-1] = last[i]
		d.keep(first, rest)
	}
	copy(d.window[0][:], d.window[1][1:])
	copy(d.window[1:], d.window[2:])
	d.window[levels-1] = last
	d.anchor = token.None
}

// keep puts an n-gram at the end of its first token's, whose oldest makes room.
func (d *lookaheadDrafter) keep(first token.ID, rest [levels]token.ID) {
	e := d.entry(first)
	if e.n == 0 || e.first != first {
		e.first, e.n = first, 0
	}
	at := slices.Index(e.rest[:e.n], rest)
	switch {
	case at >= 0:
	case e.n < candidates:
		at, e.n = e.n, e.n+1
	default:
		at = 0
	}
	copy(e.rest[at:e.n], e.rest[at+1:e.n])
	e.rest[e.n-1] = rest
}

// entry returns the place of a first token, which may have another one's n-grams.
func (d *lookaheadDrafter) entry(first token.ID) *entry {
	return &d.pool[uint64(uint32(first))*0x9e3779b97f4a7c15>>40%keys]
}

// Draft implements [method.Drafter]: the n-grams of the text's last token, those seen last first, then the window. All of its rows are run.
func (d *lookaheadDrafter) Draft(_ context.Context, t *method.Tree) error {
	if d.anchor = d.history.Last(0); d.anchor == token.None {
		return nil
	}
	t.RunAll()
	if e := d.entry(d.anchor); e.n > 0 && e.first == d.anchor {
		for k := range e.n {
			at := method.Root
			for depth, id := range e.rest[e.n-1-k] {
				if at = t.Add(at, id, k*levels+depth, guessBelief); at == method.Root {
					break
				}
			}
		}
	}
	chain := [lookaheadWidth]int{method.Root} // where the columns begin: behind the text, then behind the first level
	for i := range lookaheadWidth - 1 {
		d.places[0][i] = d.add(t, chain[i], i > 0, d.window[0][i])
		chain[i+1] = d.places[0][i]
	}
	for i := range lookaheadWidth {
		at, behind := chain[i], i > 0
		for j := 1; j < levels; j++ {
			at = d.add(t, at, behind, d.window[j][i])
			d.places[j][i], behind = at, true
		}
	}
	return nil
}

// add adds a row of the window, or none where the one before it could not be added.
func (d *lookaheadDrafter) add(t *method.Tree, parent int, behind bool, id token.ID) int {
	if behind && parent == method.Root {
		return method.Root
	}
	return t.Add(parent, id, method.Classes-1, windowBelief)
}

// How often drafts are accepted, before anything is known.
const (
	guessBelief  = 0.3
	windowBelief = 0.02
)
