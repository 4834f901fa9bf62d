package lark

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/internal/text/token"
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

// newWalker returns a walker.
func newWalker(source grammar.Source, blanks ...string) *walker {
	w := &walker{reader: newReader(source), costs: map[grammar.Node]int{}, blanks: blanks}
	nodes := []grammar.Node{source.Start()}
	seen := map[grammar.Node]bool{source.Start(): true}
	for i := 0; i < len(nodes); i++ {
		for _, e := range w.from(nodes[i]) {
			next := []grammar.Node{w.to(e)}
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
		return 1 + w.cost(w.to(e))
	}
	return 1 + w.cost(e.Call) + w.cost(e.To)
}

// to returns where an edge leads. One that depends on the text leads to where the shortest text does.
func (w *walker) to(e grammar.Edge) grammar.Node {
	if e.Read == nil {
		return e.To
	}
	n, err := e.Read([]byte(w.shortest(e.Lexeme)))
	if err != nil {
		panic(err)
	}
	return n
}

// shortest returns a text of a lexeme that needs no choice but the last byte that can come.
func (w *walker) shortest(id regex.ID) (text string) {
	store := w.source.Store()
	for !store.Nullable(id) {
		first := store.First(id)
		for b := range 256 {
			if first[b>>6]>>(b&63)&1 != 0 && (b == '\n' && text == "" || b == ' ') {
				text, id = text+string(rune(b)), store.Derive(id, byte(b))
				break
			}
		}
	}
	return text
}

// text returns the random text of a seed, of about as many lexemes as the budget.
func (w *walker) text(seed uint64, budget int) string {
	w.rand = rand.New(rand.NewPCG(seed, 1))
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
		n = w.to(e)
		if e.Read != nil {
			w.b.WriteString(w.shortest(e.Lexeme))
			continue
		}
		if e.Lexeme == regex.Nothing {
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
		if n > 12 {
			w.b.WriteString(w.finish(id))
			break
		}
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

// finish returns a shortest text that ends a lexeme.
func (w *walker) finish(id regex.ID) string {
	store := w.source.Store()
	texts, open := map[regex.ID]string{id: ""}, []regex.ID{id}
	for {
		id, open = open[0], open[1:]
		if store.Nullable(id) {
			return texts[id]
		}
		first := store.First(id)
		for b := range 256 {
			if first[b>>6]>>(b&63)&1 == 0 {
				continue
			}
			next := store.Derive(id, byte(b))
			if _, ok := texts[next]; !ok {
				texts[next], open = texts[id]+string([]byte{byte(b)}), append(open, next)
			}
		}
	}
}

// TestWalks reads random texts of each grammar that comes with grove: all of them are legal but those whose lexemes run into each
// other.
func TestWalks(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			source := shipped(t, name)
			legal, blanks := 0, []string{" ", " "}
			if name == "python" {
				blanks = []string{"", ""} // a blank behind the end of a line is an indentation
			}
			w := newWalker(source, append(blanks, "")...)
			for seed := range uint64(50) {
				text := w.text(seed, 20)
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

// TestMasks draws random texts by the masks of each grammar that comes with grove: all of them can go on, and end where the mask
// says so.
func TestMasks(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			source := shipped(t, name)
			engine := byBytes(t, shipped(t, name))
			rand := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				state, err := engine.Start()
				if err != nil {
					t.Fatal(err)
				}
				var text []byte
				ends := false
				for len(text) < 60 {
					mask, err := engine.Mask(state)
					if err != nil {
						t.Fatal(err)
					}
					var legal []token.ID
					for id := range token.ID(256) {
						if mask.Has(id) {
							legal = append(legal, id)
						}
					}
					if ends = mask.Has(256); len(legal) == 0 {
						break
					}
					id := legal[rand.IntN(len(legal))]
					if state, err = engine.Next(state, id); err != nil {
						t.Fatal(err)
					}
					text, ends = append(text, byte(id)), engine.Ends(state)
				}
				if n, ok := read(source, string(text)); n != len(text) || ok != ends {
					t.Errorf("ends %v, want %v: %s", ends, ok, around(string(text), n))
				}
			}
		})
	}
}
