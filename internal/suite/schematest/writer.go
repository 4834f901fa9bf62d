package schematest

import (
	"math/rand/v2"

	"grove/constrain/grammar"
	"grove/constrain/regex"
)

// Writer writes random texts of a grammar. It meets only what Edges gives, so that a text that is not valid, or a place
// without a way on, is a fault of the grammar.
type Writer struct {
	*Walker
	rng  *rand.Rand
	text []byte
	most int // bytes; beyond it the Writer takes the shortest way it sees
	fail string
}

// NewWriter returns a writer of texts of about most bytes. The grammar belongs to it from now on.
func NewWriter(src grammar.Source, rng *rand.Rand, most int) *Writer {
	return &Writer{Walker: NewWalker(src), rng: rng, most: most}
}

// Written returns the bytes of the text that Random wrote, or began, last.
func (w *Writer) Written() []byte { return w.text }

// Random returns a text, or why there is none: "" for a text that became too long.
func (w *Writer) Random() (text, fail string) {
	w.text, w.fail = w.text[:0], ""
	if !w.rule(w.src.Start(), 0) {
		return "", w.fail
	}
	return string(w.text), ""
}

// rule writes a text of a rule.
func (w *Writer) rule(n grammar.Node, depth int) bool {
	for {
		edges := w.of(n)
		if w.Err != nil {
			w.fail = w.Err.Error()
			return false
		}
		final := w.src.Final(n)
		if len(edges) == 0 && !final {
			w.fail = "a place without a way on"
			return false
		}
		if final && (len(edges) == 0 || w.rng.IntN(2) == 0) {
			return true
		}
		if len(w.text) > 20*w.most || depth > 60 {
			return false
		}
		e := w.choose(edges, depth)
		if e.Lexeme == regex.Nothing {
			if !w.rule(e.Call, depth+1) {
				return false
			}
			n = e.To
			continue
		}
		start := len(w.text)
		if !w.lexeme(e.Lexeme) {
			return false
		}
		if n = e.To; e.Read != nil {
			var err error
			if n, err = e.Read(w.text[start:]); err != nil {
				w.fail = err.Error()
				return false
			}
		}
	}
}

// choose draws an edge; in long or deep texts one that closes, or that calls nothing, if there is one.
func (w *Writer) choose(edges []grammar.Edge, depth int) grammar.Edge {
	if len(w.text) > w.most || depth > 12 {
		for _, closing := range []bool{true, false} {
			for _, e := range edges {
				if e.Lexeme != regex.Nothing && e.Read == nil && (!closing || w.src.Final(e.To)) {
					return e
				}
			}
		}
	}
	return edges[w.rng.IntN(len(edges))]
}

// lexeme writes a random text of a lexeme.
func (w *Writer) lexeme(id regex.ID) bool {
	r := w.src.Store()
	r.Refuel()
	var letters regex.Set
	letters.Add('0', '9')
	letters.Add('a', 'z')
	letters.Add(' ', '"')
	letters.Add('{', '}')
	for steps := 0; ; steps++ {
		first := r.First(id)
		if r.Nullable(id) && (first.Len() == 0 || w.rng.IntN(3) == 0) {
			return true
		}
		if steps > 3000 || r.Err() != nil {
			return false
		}
		if plain := first.And(letters); plain.Len() > 0 && w.rng.IntN(8) > 0 {
			first = plain
		}
		k := w.rng.IntN(first.Len())
		if first.Has('"') && w.rng.IntN(4) == 0 {
			k = 0
			for b := range byte('"') {
				if first.Has(b) {
					k++
				}
			}
		}
		for b := 0; b < 256; b++ {
			if first.Has(byte(b)) {
				if k == 0 {
					w.text = append(w.text, byte(b))
					id = r.Derive(id, byte(b))
					break
				}
				k--
			}
		}
		if id == regex.Nothing {
			w.fail = "a lexeme without a way on"
			return false
		}
	}
}
