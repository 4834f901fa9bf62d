// Package schematest helps the tests of JSON Schema: it reads and writes texts along a grammar slowly and plainly, changes
// texts, and makes random schemas.
package schematest

import (
	"errors"

	"grove/constrain/grammar"
	"grove/constrain/regex"
)

// Walker reads texts along a grammar, one byte after the other, with all stacks of calls side by side. It is the slow
// reference of tests. It is for one goroutine.
type Walker struct {
	src   grammar.Source
	edges map[grammar.Node][]grammar.Edge
	top   map[frame]*frame
	Err   error // why the grammar could not be read on; nil: it could
}

// A frame is a call that is open: where it goes on, and the call around it.
type frame struct {
	to grammar.Node
	up *frame
}

// An at is a place in a text: a lexeme that is being read, and where it leads.
type at struct {
	lexeme regex.ID // what is left of it
	node   grammar.Node
	edge   int
	text   string // of edges with Read
	up     *frame
}

// A step is a place between lexemes.
type step struct {
	node grammar.Node
	up   *frame
}

// NewWalker returns a walker of a grammar, which belongs to it from now on.
func NewWalker(src grammar.Source) *Walker {
	return &Walker{src: src, edges: map[grammar.Node][]grammar.Edge{}, top: map[frame]*frame{}}
}

func (w *Walker) of(n grammar.Node) []grammar.Edge {
	e, ok := w.edges[n]
	if !ok {
		var err error
		if e, err = w.src.Edges(nil, n); err != nil {
			w.Err = err
			return nil
		}
		w.edges[n] = e
	}
	return e
}

// open adds all lexemes that may stand at places, and reports whether the text may end.
func (w *Walker) open(from []step) (all []at, ends bool) {
	seen := map[step]bool{}
	for len(from) > 0 && w.Err == nil {
		s := from[len(from)-1]
		from = from[:len(from)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		if w.src.Final(s.node) {
			if s.up == nil {
				ends = true
			} else {
				from = append(from, step{s.up.to, s.up.up})
			}
		}
		for i, e := range w.of(s.node) {
			if e.Lexeme != regex.Nothing {
				all = append(all, at{lexeme: e.Lexeme, node: s.node, edge: i, up: s.up})
				continue
			}
			f := frame{e.To, s.up}
			if w.top[f] == nil {
				w.top[f] = &f
			}
			from = append(from, step{e.Call, w.top[f]})
		}
	}
	return all, ends
}

// Read returns how many bytes of a text are legal, and whether it may end behind them.
func (w *Walker) Read(text string) (n int, ends bool) {
	r := w.src.Store()
	r.Refuel()
	now, ends := w.open([]step{{node: w.src.Start()}})
	for n = range len(text) {
		var next []at
		var done []step
		seen := map[at]bool{}
		for _, a := range now {
			if a.lexeme = r.Derive(a.lexeme, text[n]); a.lexeme == regex.Nothing {
				continue
			}
			e := w.of(a.node)[a.edge]
			if e.Read != nil {
				a.text += text[n : n+1]
			}
			if seen[a] {
				continue
			}
			seen[a] = true
			next = append(next, a)
			if r.Nullable(a.lexeme) {
				to := e.To
				if e.Read != nil {
					var err error
					if to, err = e.Read([]byte(a.text)); errors.Is(err, grammar.ErrRefused) {
						continue
					} else if err != nil {
						w.Err = err
					}
				}
				done = append(done, step{to, a.up})
			}
		}
		opened, end := w.open(done)
		if next = append(next, opened...); len(next) == 0 && !end || w.Err != nil {
			return n, false
		}
		now, ends = next, end
	}
	return len(text), ends
}
