package lark

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"grove/sample/constrain/grammar"
	"grove/sample/constrain/regex"
)

// A walker makes random texts of a source that has finitely many nodes.
type walker struct {
	*reader
	rand   *rand.Rand
	costs  map[grammar.Node]int // the least number of lexemes from a node to the end of its rule
	blanks []string             // what may stand between lexemes
	b      strings.Builder
	budget int // of lexemes: behind it the walk takes the shortest way
}

// newWalker returns a walker with a seed.
func newWalker(source grammar.Source, seed uint64, blanks ...string) *walker {
	w := &walker{reader: newReader(source), rand: rand.New(rand.NewPCG(seed, 1)), costs: map[grammar.Node]int{}, blanks: blanks}
	nodes := []grammar.Node{source.Start()}
	seen := map[grammar.Node]bool{source.Start(): true}
	for i := 0; i < len(nodes); i++ {
		for _, e := range w.from(nodes[i]) {
			next := []grammar.Node{e.To}
			if e.Lexeme == regex.Nothing {
				next = append(next, e.Call)
			}
			for _, n := range next {
				if !seen[n] {
					seen[n], nodes = true, append(nodes, n)
				}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range nodes {
			best := w.cost(n)
			if source.Final(n) {
				best = 0
			}
			for _, e := range w.from(n) {
				best = min(best, w.edge(e))
			}
			if best < w.cost(n) {
				w.costs[n], changed = best, true
			}
		}
	}
	return w
}

// cost returns the least number of lexemes to the end of a rule as far as it is known.
func (w *walker) cost(n grammar.Node) int {
	if c, ok := w.costs[n]; ok {
		return c
	}
	return math.MaxInt32
}

// edge returns the least number of lexemes over an edge to the end of a rule.
func (w *walker) edge(e grammar.Edge) int {
	if e.Lexeme != regex.Nothing {
		return 1 + w.cost(e.To)
	}
	return 1 + w.cost(e.Call) + w.cost(e.To)
}

// text returns a random text of about as many lexemes as the budget.
func (w *walker) text(budget int) string {
	w.b.Reset()
	w.budget = budget
	w.walk(w.source.Start())
	return w.b.String()
}

// walk writes a text that leads from a node to the end of its rule.
func (w *walker) walk(n grammar.Node) {
	for {
		edges := w.from(n)
		pick := w.rand.IntN(len(edges) + 1)
		if w.budget <= 0 {
			pick = len(edges)
		}
		if pick == len(edges) {
			if w.source.Final(n) {
				return
			}
			pick = w.rand.IntN(len(edges))
			for i, e := range edges {
				if w.budget <= 0 && w.edge(e) < w.edge(edges[pick]) {
					pick = i
				}
			}
		}
		e := edges[pick]
		if n = e.To; e.Lexeme == regex.Nothing {
			w.walk(e.Call)
			continue
		}
		w.budget--
		w.lexeme(e.Lexeme)
	}
}

// lexeme writes a text of a lexeme, and something between it and the next one.
func (w *walker) lexeme(id regex.ID) {
	store := w.source.Store()
	for n := 0; ; n++ {
		first := store.First(id)
		if store.Nullable(id) && (first == regex.Set{} || w.rand.IntN(3) == 0 || n > 12) {
			break
		}
		var bytes []byte
		for b := range 256 {
			if first[b>>6]>>(b&63)&1 != 0 {
				bytes = append(bytes, byte(b))
			}
		}
		b := bytes[w.rand.IntN(len(bytes))]
		if n > 8 { // towards the end
			for _, c := range bytes {
				if store.Nullable(store.Derive(id, c)) {
					b = c
				}
			}
		}
		w.b.WriteByte(b)
		id = store.Derive(id, b)
	}
	w.b.WriteString(w.blanks[w.rand.IntN(len(w.blanks))])
}

// TestWalks reads random texts of each grammar that comes with grove: all of them are legal but those whose lexemes run into each
// other.
func TestWalks(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			source := shipped(t, name)
			legal := 0
			for seed := range uint64(50) {
				text := newWalker(source, seed, " ", " ", "").text(20)
				if n, ok := read(source, text); ok {
					legal++
				} else if seed == 0 {
					t.Logf("not legal: %s", around(text, n))
				}
			}
			if legal < 25 {
				t.Errorf("%d of 50 texts are legal", legal)
			}
		})
	}
}
