package lark

import (
	"fmt"
	"testing"

	"grove/constrain/earley"
	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// A state is a place in a rule, and where the rule began.
type state struct {
	node, rule grammar.Node
	from       int
}

// A reader reads a text by a greedy source, lexeme by lexeme, as Earley's algorithm says and no faster. It is the slow reference
// of these tests: it keeps all rows and looks at every state of a row until nothing new comes.
type reader struct {
	source grammar.Source
	rows   map[int]map[state]bool // by place; places within lexemes have none
	edges  map[grammar.Node][]grammar.Edge
}

// newReader returns a reader at the beginning of a text.
func newReader(source grammar.Source) *reader {
	start := source.Start()
	r := &reader{source, map[int]map[state]bool{0: {{start, start, 0}: true}}, map[grammar.Node][]grammar.Edge{}}
	return r
}

// from returns the edges of a node.
func (r *reader) from(n grammar.Node) []grammar.Edge {
	if _, ok := r.edges[n]; !ok {
		edges, err := r.source.Edges(nil, n)
		if err != nil {
			panic(err)
		}
		r.edges[n] = edges
	}
	return r.edges[n]
}

// close adds the states that calls and ends of rules lead to.
func (r *reader) close(at int) {
	row := r.rows[at]
	for before := -1; before != len(row); {
		before = len(row)
		for s := range row {
			for _, e := range r.from(s.node) {
				if e.Lexeme == regex.Nothing {
					row[state{e.Call, e.Call, at}] = true
				}
			}
			if !r.source.Final(s.node) {
				continue
			}
			for caller := range r.rows[s.from] {
				for _, e := range r.from(caller.node) {
					if e.Lexeme == regex.Nothing && e.Call == s.rule {
						row[state{e.To, caller.rule, caller.from}] = true
					}
				}
			}
		}
	}
}

// read reads a text. It returns how many bytes may stand at the beginning of a text of the language, and whether the text is one.
func (r *reader) read(text string) (n int, ends bool) {
	store := r.source.Store()
	for at := 0; ; {
		r.close(at)
		if at == len(text) {
			break
		}
		live := map[regex.ID]regex.ID{} // what is left of a lexeme, by lexeme
		if id := r.source.Ignored(); id != regex.Nothing {
			live[id] = id
		}
		for s := range r.rows[at] {
			for _, e := range r.from(s.node) {
				if e.Lexeme != regex.Nothing {
					live[e.Lexeme] = e.Lexeme
				}
			}
		}
		i := at
		for ; i < len(text); i++ {
			next := map[regex.ID]regex.ID{}
			for lexeme, rest := range live {
				if d := store.Derive(rest, text[i]); d != regex.Nothing {
					next[lexeme] = d
				}
			}
			if len(next) == 0 {
				break
			}
			live = next
		}
		row := map[state]bool{}
		for s := range r.rows[at] {
			if rest, ok := live[r.source.Ignored()]; ok && store.Nullable(rest) {
				row[s] = true
			}
			for _, e := range r.from(s.node) {
				if rest, ok := live[e.Lexeme]; ok && e.Lexeme != regex.Nothing && store.Nullable(rest) {
					to := e.To
					if e.Read != nil {
						var err error
						if to, err = e.Read([]byte(text[at:i])); err != nil {
							continue
						}
					}
					row[state{to, s.rule, s.from}] = true
				}
			}
		}
		if i == at || len(row) == 0 {
			return i, false
		}
		if r.rows[i] = row; i < len(text) {
			at = i
			continue
		}
		at = i
	}
	for s := range r.rows[len(text)] {
		if s.from == 0 && s.rule == r.source.Start() && r.source.Final(s.node) {
			return len(text), true
		}
	}
	return len(text), false
}

// read reads a text by a source.
func read(source grammar.Source, text string) (n int, ends bool) {
	return newReader(source).read(text)
}

// parse returns the source of a text.
func parse(t testing.TB, text string) grammar.Source {
	t.Helper()
	source, err := Parse([]byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// shipped returns a grammar that comes with grove.
func shipped(t testing.TB, name string) grammar.Source {
	t.Helper()
	text, err := Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// around returns a text with a mark where it stops being legal.
func around(text string, n int) string {
	return fmt.Sprintf("%q here %q", text[max(0, n-60):n], text[n:min(len(text), n+30)])
}

// byBytes returns an engine whose tokens are single bytes, and an end.
func byBytes(t testing.TB, source grammar.Source) *earley.Engine {
	t.Helper()
	tokens := []vocab.Token{{ID: 256, Kind: vocab.End}}
	for b := range 256 {
		tokens = append(tokens, vocab.Token{ID: token.ID(b), Bytes: []byte{byte(b)}})
	}
	words, err := vocab.New(tokens, 257)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := earley.New(source, words, earley.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}
