package earley

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// words returns a vocabulary of texts, and one end token behind them.
func words(t testing.TB, texts ...string) *vocab.Vocabulary {
	t.Helper()
	var all []vocab.Token
	for i, text := range texts {
		all = append(all, vocab.Token{ID: token.ID(i), Bytes: []byte(text), Kind: vocab.Ordinary})
	}
	all = append(all, vocab.Token{ID: token.ID(len(texts)), Kind: vocab.End})
	v, err := vocab.New(all, len(all))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// grammarOf returns a grammar whose rule "s" is built by a function.
func grammarOf(t testing.TB, o grammar.Options, define func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr)) grammar.Source {
	t.Helper()
	s := regex.New(regex.Limits{})
	b := grammar.NewBuilder(s)
	define(b, s, func(text string) grammar.Expr { return b.Lexeme(s.Literal(text)) })
	src, err := b.Source("s", o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func engine(t testing.TB, src grammar.Source, v *vocab.Vocabulary, l Limits) *Engine {
	t.Helper()
	e, err := New(src, v, l)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// behind returns the state behind a text.
func behind(t testing.TB, e *Engine, text string) State {
	t.Helper()
	s, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	s, n, err := e.Push(s, []byte(text))
	if err != nil {
		t.Fatalf("%.40q: %d of %d bytes: %v", text, n, len(text), err)
	}
	return s
}

// allowed returns the texts that a mask allows, and $ for the end.
func allowed(t testing.TB, e *Engine, s State) string {
	t.Helper()
	m, err := e.Mask(s)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for id := range token.ID(e.vocab.Size()) {
		if m.Has(id) {
			all = append(all, string(e.vocab.Bytes(id)))
			if e.vocab.Kind(id) == vocab.End {
				all[len(all)-1] = "$"
			}
		}
	}
	return strings.Join(all, " ")
}

func number(b *grammar.Builder, s *regex.Store) grammar.Expr {
	return b.Lexeme(s.Repeat(s.Runes(regex.Range{Lo: '0', Hi: '9'}), 1, -1))
}

// TestWorked has the worked numbers of Outlines' index and of SynCode's accept sequences.
func TestWorked(t *testing.T) {
	outlines := func(b *grammar.Builder, s *regex.Store, _ func(string) grammar.Expr) {
		b.Define("s", b.Lexeme(s.Or(s.Literal("0"), s.Concat(s.Runes(regex.Range{Lo: '1', Hi: '9'}),
			s.Repeat(s.Runes(regex.Range{Lo: '0', Hi: '9'}), 0, -1)))))
	}
	syncode := func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
		b.Define("s", b.Seq(number(b, s), b.Repeat(b.Seq(lit("+"), number(b, s)), 0, -1)))
	}
	hollow := func(b *grammar.Builder, _ *regex.Store, lit func(string) grammar.Expr) { // the rule in the middle may be empty
		b.Define("n", b.Alt(b.Empty(), b.Seq(lit("("), b.Rule("n"), lit(")"))))
		b.Define("m", b.Alt(b.Seq(b.Rule("n"), lit("c")), b.Seq(lit("["), b.Rule("m"), lit("]"))))
		b.Define("s", b.Seq(b.Rule("m"), lit("!")))
	}
	for _, greedy := range []bool{false, true} {
		for _, c := range []struct {
			define     func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr)
			tokens     string
			text, want string
		}{
			{hollow, "c ( ) c! [ ] c]", "", "c ( c! ["},
			{hollow, "c ( ) c! [ ] c]", "(", "( )"},
			{hollow, "c ( ) c! [ ] c]", "[", "c ( [ c]"},
			{hollow, "c ( ) c! [ ] c]", "[()", "c c]"},
			{outlines, "blah 1a 2 0", "", "2 0"},
			{outlines, "blah 1a 2 0", "0", "$"},
			{outlines, "blah 1a 2 0", "2", "2 0 $"},
			{syncode, "1 2 + +2 +a 1+ a", "1", "1 2 + +2 1+ $"},
			{syncode, "1 2 + +2 +a 1+ a", "1+", "1 2 1+"},
		} {
			e := engine(t, grammarOf(t, grammar.Options{Greedy: greedy}, c.define), words(t, strings.Fields(c.tokens)...), Limits{})
			if got := allowed(t, e, behind(t, e, c.text)); got != c.want {
				t.Errorf("greedy %v, behind %q: got %s, want %s", greedy, c.text, got, c.want)
			}
		}
	}
}

// A list is a grammar of different words of the letters a and b, with commas between them.
type list struct {
	s     *regex.Store
	nodes []string // the words behind, each with a comma; "!" behind the last: a word was read just now
	known map[string]grammar.Node
}

func (l *list) node(text string) grammar.Node {
	n, ok := l.known[text]
	if !ok {
		n = grammar.Node(len(l.nodes))
		l.nodes, l.known[text] = append(l.nodes, text), n
	}
	return n
}

func (l *list) Start() grammar.Node       { return l.node("") }
func (l *list) Ignored() regex.ID         { return regex.Nothing }
func (l *list) Store() *regex.Store       { return l.s }
func (l *list) Final(n grammar.Node) bool { return strings.HasSuffix(l.nodes[n], "!") }
func (l *list) Edges(dst []grammar.Edge, n grammar.Node) ([]grammar.Edge, error) {
	text := l.nodes[n]
	if rest, ok := strings.CutSuffix(text, "!"); ok {
		return append(dst, grammar.Edge{Lexeme: l.s.Literal(","), To: l.node(rest)}), nil
	}
	word := l.s.Repeat(l.s.Runes(regex.Range{Lo: 'a', Hi: 'b'}), 1, -1)
	behind := strings.Split(text, ",")
	for _, w := range behind {
		word = l.s.And(word, l.s.Not(l.s.Literal(w)))
	}
	return append(dst, grammar.Edge{Lexeme: word, Read: func(b []byte) (grammar.Node, error) {
		if slices.Contains(behind, string(b)) {
			return 0, grammar.ErrRefused
		}
		all := append(behind[:len(behind)-1:len(behind)-1], string(b))
		slices.Sort(all)
		return l.node(strings.Join(all, ",") + ",!"), nil
	}}), nil
}

type greedyList struct{ *list }

func (greedyList) Greedy() bool { return true }

type freeList struct{ *list }

func (freeList) Greedy() bool { return false }

// TestRead compares the masks of a grammar whose rows depend on the text of lexemes with the language by its definition.
func TestRead(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	v := words(t, "a", "b", ",", "aa", "ab", "a,", ",a", "a,b", "b,ab,", ",a,b", "ba,b", "a,a", ",,")
	decide := func(text string) (viable, final bool) {
		seen := map[string]bool{}
		all := strings.Split(text, ",")
		for i, w := range all {
			if strings.Trim(w, "ab") != "" || i < len(all)-1 && (w == "" || seen[w]) {
				return false, false
			}
			final = w != "" && !seen[w]
			seen[w] = true
		}
		return true, final
	}
	for _, l := range []Limits{{}, {Bytes: 1}} {
		for _, greedy := range []bool{false, true} {
			words := &list{s: regex.New(regex.Limits{}), known: map[string]grammar.Node{}}
			var src grammar.Source = freeList{words}
			if greedy {
				src = greedyList{words}
			}
			e := engine(t, src, v, l)
			for range 60 {
				s, _ := e.Start()
				text := ""
				for range 6 {
					m, err := e.Mask(s)
					if err != nil {
						t.Fatal(err)
					}
					var legal []token.ID
					for id := range token.ID(v.Size()) {
						viable, _ := decide(text + string(v.Bytes(id)))
						if v.Kind(id) == vocab.End {
							_, viable = decide(text)
						} else if viable {
							legal = append(legal, id)
						}
						if m.Has(id) != viable {
							t.Fatalf("greedy %v: behind %q: token %q: got %v, want %v", greedy, text, v.Bytes(id), m.Has(id), viable)
						}
					}
					id := legal[rng.IntN(len(legal))]
					if s, err = e.Next(s, id); err != nil {
						t.Fatal(err)
					}
					text += string(v.Bytes(id))
				}
			}
		}
	}
}

// TestLists checks that lists of any length keep few rows, by left recursion, right recursion and repetition.
func TestLists(t *testing.T) {
	for name, define := range map[string]func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr){
		"left": func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(b.Rule("e"), b.Seq(b.Rule("s"), lit(","), b.Rule("e"))))
			b.Define("e", b.Alt(lit("a"), b.Seq(lit("("), b.Rule("s"), lit(")"))))
		},
		"right": func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(b.Rule("e"), b.Seq(b.Rule("e"), lit(","), b.Rule("s"))))
			b.Define("e", b.Alt(lit("a"), b.Seq(lit("("), b.Rule("s"), lit(")"))))
		},
		"repeat": func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Seq(b.Rule("e"), b.Repeat(b.Seq(lit(","), b.Rule("e")), 0, -1)))
			b.Define("e", b.Alt(lit("a"), b.Seq(lit("("), b.Rule("s"), lit(")"))))
		},
	} {
		for _, greedy := range []bool{false, true} {
			t.Run(fmt.Sprint(name, greedy), func(t *testing.T) {
				e := engine(t, grammarOf(t, grammar.Options{Greedy: greedy}, define), words(t, "a", ",", "),", "a),(a"), Limits{})
				behind(t, e, "(a,a,a,a")
				rows := len(e.rows)
				s := behind(t, e, "(a,a"+strings.Repeat(",a", 5000))
				if len(e.rows) != rows {
					t.Errorf("%d rows behind 4 elements, %d behind 5,000", rows, len(e.rows))
				}
				if s != behind(t, e, "(a,a,a") {
					t.Error("the state behind 5,000 elements is another one than behind 3")
				}
				if got, want := allowed(t, e, s), ", ),"; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// TestHostile checks grammars that make parsers loop, overflow or stall.
func TestHostile(t *testing.T) {
	type define = func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr)
	for name, c := range map[string]struct {
		define define
		text   string
		want   string // allowed of a ( ) b
		err    error
	}{
		"cycle of empty rules": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(b.Rule("x"), b.Empty(), b.Seq(b.Rule("s"), b.Rule("s"))))
			b.Define("x", b.Alt(b.Rule("s"), b.Seq(b.Rule("y"), b.Rule("y"))))
			b.Define("y", b.Alt(b.Rule("x"), lit("a")))
		}, "aaaaaaaaaa", "a $", nil},
		"hidden left recursion": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(b.Seq(b.Rule("x"), b.Rule("s"), lit("a")), lit("b")))
			b.Define("x", b.Alt(b.Empty(), lit("(")))
		}, "((b", "a", nil},
		"ambiguous": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(b.Seq(b.Rule("s"), b.Rule("s"), b.Rule("s")), b.Seq(b.Rule("s"), b.Rule("s")), lit("a"), b.Empty()))
		}, strings.Repeat("a", 60), "a $", nil},
		"too ambiguous": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(b.Seq(b.Rule("s"), b.Rule("s"), b.Rule("s")), b.Seq(b.Rule("s"), b.Rule("s")), lit("a"), b.Empty()))
		}, strings.Repeat("a", 5000), "", ErrBudget},
		"deep": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Alt(b.Seq(lit("("), b.Rule("s"), lit(")")), b.Repeat(lit("a"), 1, -1)))
		}, strings.Repeat("(", 20_000) + "a", "a )", nil},
		"many options": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			var all []grammar.Expr
			for range 400 {
				all = append(all, b.Repeat(b.Alt(b.Rule("x"), lit("b")), 0, 1))
			}
			b.Define("s", b.Seq(all...))
			b.Define("x", b.Alt(lit("a"), b.Seq(lit("("), b.Rule("x"), lit(")"))))
		}, "ab(a)a", "a ( b $", nil},
		"many options, too many": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			var all []grammar.Expr
			for range 3000 {
				all = append(all, b.Repeat(b.Alt(b.Rule("x"), lit("b")), 0, 1))
			}
			b.Define("s", b.Seq(all...))
			b.Define("x", b.Alt(lit("a"), b.Seq(lit("("), b.Rule("x"), lit(")"))))
		}, "ab", "", ErrRow},
		"counted to a thousand, three times": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			b.Define("s", b.Seq(b.Repeat(b.Repeat(b.Repeat(lit("a"), 0, 1000), 0, 1000), 0, 1000), lit("b")))
		}, strings.Repeat("a", 300), "a b", nil},
		"exponential states": {func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
			ab := s.Or(s.Literal("a"), s.Literal("b"))
			b.Define("s", b.Lexeme(s.Concat(s.Repeat(ab, 0, -1), s.Literal("a"), s.Repeat(ab, 60, 60))))
		}, strings.Repeat("ab", 200) + "b", "a b $", nil},
	} {
		t.Run(name, func(t *testing.T) {
			src := grammarOf(t, grammar.Options{}, c.define)
			e, err := New(src, words(t, "a", "(", ")", "b"), Limits{RowItems: 500})
			if err == nil {
				var s State
				if s, err = e.Start(); err == nil {
					s, _, err = e.Push(s, []byte(c.text))
				}
				if err == nil && c.err == nil {
					if got := allowed(t, e, s); got != c.want {
						t.Errorf("got %q, want %q", got, c.want)
					}
				}
			}
			if !errors.Is(err, c.err) {
				t.Errorf("got error %v, want %v", err, c.err)
			}
		})
	}
}

// TestBudgets checks that each budget is met by an error of its name, and that the engine goes on after it.
func TestBudgets(t *testing.T) {
	define := func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
		b.Define("s", b.Alt(b.Seq(b.Rule("s"), b.Rule("s")), b.Repeat(lit("a"), 1, 2), b.Seq(lit("("), b.Rule("s"), lit(")")), lit("bcdefgh")))
	}
	for _, c := range []struct {
		limits Limits
		want   error
	}{
		{Limits{RowItems: 20}, ErrRow}, {Limits{CallItems: 300}, ErrItems}, {Limits{LexerStates: 4}, ErrLexer}, {Limits{WalkNodes: 4}, ErrWalk},
	} {
		e := engine(t, grammarOf(t, grammar.Options{}, define), words(t, "a", "(", ")", "bcdefgh", strings.Repeat("aa(a", 20)), c.limits)
		s, _ := e.Start()
		_, _, err := e.Push(s, []byte(strings.Repeat("aa(", 50)+strings.Repeat("a", 50)))
		if err == nil {
			_, err = e.Mask(s)
		}
		if !errors.Is(err, c.want) || !errors.Is(err, ErrBudget) {
			t.Errorf("%+v: got %v, want %v", c.limits, err, c.want)
		}
		if _, n, err := e.Push(s, []byte("a")); n != 1 || err != nil {
			t.Errorf("%+v: after the error: %v", c.limits, err)
		}
	}
}

// TestMemory checks that what an engine keeps stays near its bound over a long time, and that old states stay good.
func TestMemory(t *testing.T) {
	define := func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
		b.Define("s", b.Alt(b.Seq(lit("("), b.Rule("s"), lit(")")), b.Seq(lit("["), b.Rule("s"), lit("]")), lit("a")))
	}
	const bound = 200_000
	e := engine(t, grammarOf(t, grammar.Options{Greedy: true}, define), words(t, "a", "(", ")", "[", "]", "])", "(("), Limits{Bytes: bound, MaskBytes: 1000})
	rng := rand.New(rand.NewPCG(1, 1))
	old, _ := e.Start()
	s := old
	most := 0
	for range 20_000 {
		var err error
		if s, err = e.Next(s, token.ID([]int{1, 3}[rng.IntN(2)])); err != nil {
			t.Fatal(err)
		}
		if _, err = e.Mask(s); err != nil {
			t.Fatal(err)
		}
		most = max(most, e.bytes+e.maskBytes)
	}
	if most > 2*bound {
		t.Errorf("up to %d bytes are kept, of %d", most, bound)
	}
	if got, want := allowed(t, e, old), "a ( [ (("; got != want {
		t.Errorf("the first state: got %q, want %q", got, want)
	}
}

// TestConcurrent shares an engine between goroutines.
func TestConcurrent(t *testing.T) {
	e := engine(t, json(t), words(t, `{`, `"`, `name`, `":`, `a`, `",`, ` `), Limits{Bytes: 50_000})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				s, _ := e.Start()
				for _, id := range []token.ID{0, 6, 1, 2, 3, 1, 4, 4, 5} {
					if m, err := e.Mask(s); err != nil || !m.Has(id) {
						t.Errorf("token %d: not allowed, %v", id, err)
						return
					}
					s, _ = e.Next(s, id)
				}
			}
		})
	}
	wg.Wait()
}

func TestForced(t *testing.T) {
	define := func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
		b.Define("s", b.Seq(lit("order"), b.Alt(lit("Id:"), lit("Name:")), number(b, s), b.Repeat(lit(";;"), 0, 1)))
	}
	for _, greedy := range []bool{false, true} {
		e := engine(t, grammarOf(t, grammar.Options{Greedy: greedy}, define), words(t, "a"), Limits{})
		for text, want := range map[string]string{"": "order", "orderI": "d:", "orderName:": "", "orderId:1": "", "orderId:1;": ";", "o": "rde"} {
			if got := string(e.Forced(behind(t, e, text), 5)); got != want && !(text == "o" && got == "rder") {
				t.Errorf("greedy %v, behind %q: got %q, want %q", greedy, text, got, want)
			}
		}
		if got := string(e.Forced(behind(t, e, ""), 2)); got != "or" {
			t.Errorf("at most 2: got %q", got)
		}
	}
}

func TestExpected(t *testing.T) {
	define := func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
		n := s.Repeat(s.Runes(regex.Range{Lo: '0', Hi: '9'}), 1, -1)
		s.Name(n, "a number")
		b.Define("s", b.Seq(lit("{"), b.Lexeme(n), b.Repeat(b.Seq(lit(","), b.Lexeme(n)), 0, -1), lit("}")))
	}
	e := engine(t, grammarOf(t, grammar.Options{Greedy: true}, define), words(t, "a"), Limits{})
	for text, want := range map[string]string{
		"": "'{'", "{": "a number", "{1": "',', '}' or a digit", "{1,2}": "the end of the text",
	} {
		if got := e.Expected(behind(t, e, text)); got != want {
			t.Errorf("behind %q: got %s, want %s", text, got, want)
		}
	}
}

// TestEnd checks what follows an end token.
func TestEnd(t *testing.T) {
	e := engine(t, grammarOf(t, grammar.Options{}, func(b *grammar.Builder, s *regex.Store, lit func(string) grammar.Expr) {
		b.Define("s", lit("a"))
	}), words(t, "a"), Limits{})
	s, _ := e.Start()
	if _, err := e.Next(s, 1); !errors.Is(err, ErrIllegal) {
		t.Errorf("the end before the text: %v", err)
	}
	s, err := e.Next(behind(t, e, "a"), 1)
	if err != nil || allowed(t, e, s) != "$" || !e.Ends(s) {
		t.Errorf("behind the end: %v, %q", err, allowed(t, e, s))
	}
	if _, err := e.Next(s, 0); !errors.Is(err, ErrIllegal) {
		t.Errorf("a token behind the end: %v", err)
	}
	if ok, err := e.Allows(State{}, 0); ok || err != nil || e.Ends(State{}) {
		t.Error("the zero State")
	}
}
