package grammar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A span is a rule and where it begins in a text.
type span struct {
	rule  Node
	start int
}

// failing is a test of package testing or of rapid.
type failing interface {
	Helper()
	Fatal(args ...any)
}

// accepts says whether a text is in the language of a source that is not greedy. It computes where each rule that is called can
// end, round by round, until a round finds nothing new: slow, and without any idea of the parser's.
func accepts(t failing, source Source, text string) bool {
	t.Helper()
	ends := map[span]map[int]bool{{source.Start(), 0}: {}}
	for changed := true; changed; {
		changed = false
		for _, s := range slices.Collect(maps.Keys(ends)) {
			for end := range run(t, source, text, s, ends, &changed) {
				if !ends[s][end] {
					ends[s][end], changed = true, true
				}
			}
		}
	}
	return ends[span{source.Start(), 0}][len(text)]
}

// run returns where a rule can end, by what is known of the rules that it calls, and notes calls that are new.
func run(t failing, source Source, text string, s span, ends map[span]map[int]bool, changed *bool) map[int]bool {
	found, seen, open := map[int]bool{}, map[span]bool{s: true}, []span{s}
	visit := func(next span) {
		if !seen[next] {
			seen[next], open = true, append(open, next)
		}
	}
	store := source.Store()
	for len(open) > 0 {
		at := open[len(open)-1]
		if open = open[:len(open)-1]; source.Final(at.rule) {
			found[at.start] = true
		}
		edges, err := source.Edges(nil, at.rule)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range edges {
			if e.Lexeme == 0 {
				call := span{e.Call, at.start}
				if ends[call] == nil {
					ends[call], *changed = map[int]bool{}, true
				}
				for end := range ends[call] {
					visit(span{e.To, end})
				}
				continue
			}
			for i, id := at.start, e.Lexeme; ; i++ {
				if store.Nullable(id) {
					visit(span{e.To, i})
				}
				if i == len(text) {
					break
				}
				if id = store.Derive(id, text[i]); id == 0 {
					break
				}
			}
		}
	}
	return found
}

// An gbnfExpr is a part of a random grammar.
type gbnfExpr struct {
	op        byte // '"' literal, '[' class, '^' negated class, '.', 'r' rule, '|', '&' sequence, '{' repetition
	text      string
	rule      int
	low, high int
	parts     []*gbnfExpr
}

// String writes the expression in the notation.
func (e *gbnfExpr) String() string {
	var parts []string
	for _, p := range e.parts {
		parts = append(parts, p.String())
	}
	switch e.op {
	case '"':
		return fmt.Sprintf("%q", e.text)
	case '[':
		return "[" + e.text + "]"
	case '^':
		return "[^" + e.text + "]"
	case '.':
		return "."
	case 'r':
		return fmt.Sprintf("r-%d", e.rule)
	case '|':
		return "(" + strings.Join(parts, " | ") + ")"
	case '&':
		return "(" + strings.Join(parts, " ") + ")"
	}
	switch {
	case e.low == 0 && e.high < 0:
		return parts[0] + "*"
	case e.low == 1 && e.high < 0:
		return parts[0] + "+"
	case e.low == 0 && e.high == 1:
		return parts[0] + "?"
	case e.high < 0:
		return fmt.Sprintf("%s{%d,}", parts[0], e.low)
	case e.high == e.low:
		return fmt.Sprintf("%s{%d}", parts[0], e.low)
	}
	return fmt.Sprintf("%s{%d,%d}", parts[0], e.low, e.high)
}

// drawExpr draws an expression that may name rules.
func drawExpr(t *rapid.T, rules, depth int) *gbnfExpr {
	ops := `"["[r^.`
	if depth > 0 {
		ops += "||&&&{{"
	}
	e := &gbnfExpr{op: ops[rapid.IntRange(0, len(ops)-1).Draw(t, "op")]}
	n := 0
	switch e.op {
	case '"':
		e.text = rapid.StringMatching(`[ab]{0,2}`).Draw(t, "text")
	case '[', '^':
		e.text = rapid.SampledFrom([]string{"a", "b", "ab", "a-b", "é-ü"}).Draw(t, "class")
	case 'r':
		e.rule = rapid.IntRange(0, rules-1).Draw(t, "rule")
	case '|', '&':
		n = rapid.IntRange(1, 3).Draw(t, "parts")
	case '{':
		n = 1
		e.low = rapid.IntRange(0, 2).Draw(t, "low")
		e.high = rapid.SampledFrom([]int{-1, e.low, e.low + 1}).Draw(t, "high")
	}
	for range n {
		e.parts = append(e.parts, drawExpr(t, rules, depth-1))
	}
	return e
}

// ends returns where an expression that begins at a place of a text can end. known has what is known of rules so far.
func (e *gbnfExpr) ends(text []rune, at int, known map[[2]int]map[int]bool) map[int]bool {
	all := map[int]bool{}
	switch e.op {
	case '"':
		if strings.HasPrefix(string(text[at:]), e.text) {
			all[at+len(e.text)] = true
		}
	case '[', '^', '.':
		if at < len(text) {
			in := e.op == '.' || strings.ContainsRune(map[string]string{"a-b": "ab", "é-ü": "éêü"}[e.text]+e.text, text[at])
			if in != (e.op == '^') {
				all[at+1] = true
			}
		}
	case 'r':
		key := [2]int{e.rule, at}
		if known[key] == nil {
			known[key] = map[int]bool{}
		}
		all = known[key]
	case '|':
		for _, p := range e.parts {
			maps.Copy(all, p.ends(text, at, known))
		}
	case '&':
		all[at] = true
		for _, p := range e.parts {
			all = after(p, text, all, known)
		}
	case '{':
		now := map[int]bool{at: true}
		for i := 0; i <= max(e.low, e.high, e.low+len(text)); i++ {
			if i >= e.low && (e.high < 0 || i <= e.high) {
				maps.Copy(all, now)
			}
			now = after(e.parts[0], text, now, known)
		}
	}
	return all
}

// after returns where an expression can end that begins at one of some places.
func after(e *gbnfExpr, text []rune, starts map[int]bool, known map[[2]int]map[int]bool) map[int]bool {
	all := map[int]bool{}
	for start := range starts {
		maps.Copy(all, e.ends(text, start, known))
	}
	return all
}

// meets says whether a text meets rule 0.
func meets(rules []*gbnfExpr, text string) bool {
	runes, known := []rune(text), map[[2]int]map[int]bool{{0, 0}: {}}
	count := func() (n int) {
		for _, ends := range known {
			n += 1 + len(ends)
		}
		return n
	}
	for before := -1; before != count(); {
		before = count()
		for _, key := range slices.Collect(maps.Keys(known)) {
			maps.Copy(known[key], rules[key[0]].ends(runes, key[1], known))
		}
	}
	return known[[2]int{0, 0}][len(runes)]
}

// TestOracle compares random grammars with a recogniser that reads their expressions, on all short texts.
func TestOracle(t *testing.T) {
	texts := []string{""}
	for i := 0; len(texts[i]) < 5; i++ {
		texts = append(texts, texts[i]+"a", texts[i]+"b")
	}
	texts = append(texts, "é", "aé", "ê", "üb", "c", "ac", "aéb", "\xc3", "a\xff")
	rapid.Check(t, func(t *rapid.T) {
		rules := make([]*gbnfExpr, rapid.IntRange(1, 3).Draw(t, "rules"))
		var lines []string
		for i := range rules {
			rules[i] = drawExpr(t, len(rules), 3)
			lines = append(lines, fmt.Sprintf("r-%d ::= %s", i, rules[i]))
		}
		text := strings.Join(lines, "\n")
		source, err := ParseGBNF([]byte(text), GBNFOptions{Root: "r-0"})
		for _, w := range texts {
			want := meets(rules, w)
			if (strings.Contains(w, "\xc3") || strings.Contains(w, "\xff")) && !strings.Contains(w, "é") && !strings.Contains(w, "ü") && !strings.Contains(w, "ê") {
				want = false // not UTF-8
			}
			if err != nil && want {
				t.Fatalf("%s\n%q is in the language, but: %v", text, w, err)
			}
			if err == nil && accepts(t, source, w) != want {
				t.Fatalf("%s\n%q: accepted %v, want %v", text, w, !want, want)
			}
		}
	})
}
