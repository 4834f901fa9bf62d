package earley

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// This file is the slow reference: it decides by exhaustion over parts of a text, without rows, derivatives or states.

type op int

const (
	opClass   op = iota // one byte of set
	opSeq               // kids in a row
	opAlt               // one kid
	opRepeat            // kids[0] lo to hi times; hi < 0: without bound
	opRule              // the rule name
	opLexeme            // kids[0], as one lexeme
	opSpecial           // the special token id
)

type expr struct {
	op     op
	set    string
	kids   []*expr
	lo, hi int
	name   string
}

func (e *expr) String() string {
	var kids []string
	for _, k := range e.kids {
		kids = append(kids, k.String())
	}
	switch e.op {
	case opClass:
		return fmt.Sprintf("[%q]", e.set)
	case opSeq:
		return "(" + strings.Join(kids, " ") + ")"
	case opAlt:
		return "(" + strings.Join(kids, " | ") + ")"
	case opRepeat:
		return fmt.Sprintf("%s{%d,%d}", kids[0], e.lo, e.hi)
	case opRule:
		return e.name
	case opLexeme:
		return "/" + kids[0] + "/"
	}
	return fmt.Sprintf("<%s>", e.name)
}

// A set is a set of positions of a text of at most 62 parts.
type set = uint64

// matcher matches expressions against a text of n parts.
type matcher struct {
	rules map[string]*expr
	n     int
	// terminal returns where a class, a lexeme or a special token that begins at i may end.
	terminal func(e *expr, i int) set
	// prefix reports whether the parts from i on begin a terminal.
	prefix func(e *expr, i int) bool
	// over reports whether nothing counts from part i on.
	over func(i int) bool

	leads map[*expr]bool // some text follows it
	full  map[string][]set
	part  map[string][]bool
}

// solve computes the least fixed point of all rules at all positions.
func (m *matcher) solve() {
	m.full, m.part = map[string][]set{}, map[string][]bool{}
	for name := range m.rules {
		m.full[name], m.part[name] = make([]set, m.n+1), make([]bool, m.n+1)
	}
	for changed := true; changed; {
		changed = false
		for name, body := range m.rules {
			for i := range m.n + 1 {
				if f := m.ends(body, i); f != m.full[name][i] {
					m.full[name][i], changed = f, true
				}
				if p := m.begins(body, i); p != m.part[name][i] {
					m.part[name][i], changed = p, true
				}
			}
		}
	}
}

// leads finds the expressions that some text follows.
func leads(rules map[string]*expr) map[*expr]bool {
	known := map[*expr]bool{}
	for n := -1; n < len(known); {
		n = len(known)
		for _, body := range rules {
			mark(rules, known, body)
		}
	}
	return known
}

func mark(rules map[string]*expr, known map[*expr]bool, e *expr) bool {
	all, some := true, false
	for _, k := range e.kids {
		ok := mark(rules, known, k)
		all, some = all && ok, some || ok
	}
	switch e.op {
	case opAlt:
		all = some
	case opRepeat:
		all = (e.hi < 0 || e.hi >= e.lo) && (e.lo == 0 || all)
	case opRule:
		all = known[rules[e.name]]
	}
	if all {
		known[e] = true
	}
	return all
}

func each(s set) (all []int) {
	for ; s != 0; s &= s - 1 {
		all = append(all, bits.TrailingZeros64(s))
	}
	return all
}

// ends returns where an expression that begins at i may end.
func (m *matcher) ends(e *expr, i int) (all set) {
	switch e.op {
	case opClass, opLexeme, opSpecial:
		return m.terminal(e, i)
	case opSeq:
		all = 1 << i
		for _, k := range e.kids {
			var next set
			for _, j := range each(all) {
				next |= m.ends(k, j)
			}
			all = next
		}
	case opAlt:
		for _, k := range e.kids {
			all |= m.ends(k, i)
		}
	case opRepeat:
		at := set(1) << i
		for n := 0; n <= e.lo+m.n+1 && (e.hi < 0 || n <= e.hi); n++ {
			if n >= e.lo {
				all |= at
			}
			var next set
			for _, j := range each(at) {
				next |= m.ends(e.kids[0], j)
			}
			at = next
		}
	case opRule:
		return m.full[e.name][i]
	}
	return all
}

// begins reports whether the text from i on is the beginning of a text of an expression.
func (m *matcher) begins(e *expr, i int) bool {
	if !m.leads[e] {
		return false
	}
	switch e.op {
	case opClass, opLexeme, opSpecial:
		return m.prefix(e, i)
	case opSeq:
		at := set(1) << i
		for _, k := range e.kids {
			var next set
			for _, j := range each(at) {
				if m.begins(k, j) {
					return true
				}
				next |= m.ends(k, j)
			}
			at = next
		}
		return m.ended(at)
	case opAlt:
		for _, k := range e.kids {
			if m.begins(k, i) {
				return true
			}
		}
		return false
	case opRepeat:
		at := set(1) << i
		for n := 0; n <= e.lo+m.n+1 && (e.hi < 0 || n <= e.hi); n++ {
			if n >= e.lo && m.ended(at) {
				return true
			}
			var next set
			for _, j := range each(at) {
				if (e.hi < 0 || n < e.hi) && m.begins(e.kids[0], j) {
					return true
				}
				next |= m.ends(e.kids[0], j)
			}
			at = next
		}
		return false
	}
	return m.part[e.name][i]
}

func (m *matcher) ended(at set) bool {
	for _, j := range each(at) {
		if m.over(j) {
			return true
		}
	}
	return false
}

// A reference is a grammar with the slow decision about texts.
type reference struct {
	rules   map[string]*expr // "s" is the start
	ignored *expr            // nil: none
	greedy  bool

	start   *expr
	live    map[*expr]bool
	spelled map[*expr]*expr // lexemes in bytes
	decided map[string][2]bool
	follow  map[string]map[string]bool
}

// prepare finds what does not depend on a text.
func (r *reference) prepare() {
	r.spelled, r.decided, r.follow = map[*expr]*expr{}, map[string][2]bool{}, map[string]map[string]bool{}
	r.start = &expr{op: opRule, name: "s"}
	if r.ignored != nil && !r.greedy {
		r.start = &expr{op: opSeq, kids: []*expr{r.start, {op: opRepeat, kids: []*expr{r.ignored}, hi: -1}}}
	}
	all := map[string]*expr{"-start": r.start}
	for name, body := range r.rules {
		all[name] = body
	}
	if r.ignored != nil {
		all["-ignored"] = r.ignored
	}
	for i, e := range r.lexemes() {
		r.spelled[e] = r.around(e)
		all[fmt.Sprint("-", i)] = r.spelled[e]
	}
	r.live = leads(all)
}

// bytesOf returns the matcher of a text of bytes, in which lexemes are what they hold.
func (r *reference) bytesOf(text string) *matcher {
	m := &matcher{rules: r.rules, leads: r.live, n: len(text)}
	m.over = func(i int) bool { return i == len(text) }
	m.terminal = func(e *expr, i int) set {
		if e.op == opLexeme || e.op == opSpecial {
			return m.ends(r.spelled[e], i)
		}
		if i < len(text) && strings.IndexByte(e.set, text[i]) >= 0 {
			return 1 << (i + 1)
		}
		return 0
	}
	m.prefix = func(e *expr, i int) bool {
		if e.op == opLexeme || e.op == opSpecial {
			return m.begins(r.spelled[e], i)
		}
		return i == len(text) || i == len(text)-1 && strings.IndexByte(e.set, text[i]) >= 0
	}
	if !r.greedy { // otherwise it is asked about lexemes only
		m.solve()
	}
	return m
}

// around returns the expression of a lexeme in bytes, with what is ignored before and after it.
func (r *reference) around(e *expr) *expr {
	word := &expr{op: opSeq}
	if e.op == opLexeme {
		word = e.kids[0]
	}
	if e.op == opSpecial {
		for i := range len(e.name) {
			word.kids = append(word.kids, &expr{op: opClass, set: e.name[i : i+1]})
		}
	}
	if r.ignored == nil || r.greedy {
		return word
	}
	blank := &expr{op: opRepeat, kids: []*expr{r.ignored}, hi: -1}
	return &expr{op: opSeq, kids: []*expr{blank, word, blank}}
}

// decide reports whether a text can go on or end, and whether it may end.
func (r *reference) decide(text string) (viable, final bool) {
	if d, ok := r.decided[text]; ok {
		return d[0], d[1]
	}
	if r.greedy {
		viable, final = r.decideGreedy(text)
	} else {
		m := r.bytesOf(text)
		viable, final = m.begins(r.start, 0), m.ends(r.start, 0)>>len(text)&1 == 1
	}
	r.decided[text] = [2]bool{viable, final}
	return viable, final
}

// lexemes returns the lexemes of the grammar.
func (r *reference) lexemes() (all []*expr) {
	var visit func(e *expr)
	visit = func(e *expr) {
		if e.op == opLexeme || e.op == opSpecial {
			all = append(all, e)
		}
		if e.op != opLexeme {
			for _, k := range e.kids {
				visit(k)
			}
		}
	}
	for _, body := range r.rules {
		visit(body)
	}
	return all
}

// decideGreedy reads lexemes by the longest match, one byte after the other.
func (r *reference) decideGreedy(text string) (viable, final bool) {
	var history []map[string]bool // of sets of lexemes that ended at the same byte; "" is what is ignored
	all := r.lexemes()
	word := ""
	allowed := r.allowed(history, all)
	for i := range len(text) {
		if r.reads(allowed, word+text[i:i+1], all) {
			word += text[i : i+1]
			continue
		}
		ended := r.matched(allowed, word, all)
		if word == "" || len(ended) == 0 {
			return false, false
		}
		history = append(history, ended)
		allowed = r.allowed(history, all)
		word = text[i : i+1]
		if !r.reads(allowed, word, all) {
			return false, false
		}
	}
	if word != "" {
		ended := r.matched(allowed, word, all)
		if len(ended) == 0 {
			return true, false
		}
		history = append(history, ended)
	}
	return true, r.sequence(history).ends(r.start, 0)&r.trailing(history) != 0
}

// reads reports whether a text begins one of some lexemes.
func (r *reference) reads(allowed map[string]bool, word string, all []*expr) bool {
	m := r.bytesOf(word)
	for _, e := range all {
		if allowed[e.String()] && m.begins(e, 0) {
			return true
		}
	}
	return r.ignored != nil && m.begins(r.ignored, 0)
}

// matched returns which of some lexemes a text is.
func (r *reference) matched(allowed map[string]bool, word string, all []*expr) map[string]bool {
	ended := map[string]bool{}
	m := r.bytesOf(word)
	for _, e := range all {
		if allowed[e.String()] && m.ends(e, 0)>>len(word)&1 == 1 {
			ended[e.String()] = true
		}
	}
	if r.ignored != nil && m.ends(r.ignored, 0)>>len(word)&1 == 1 {
		ended[""] = true
	}
	return ended
}

// allowed returns the lexemes that may follow some.
func (r *reference) allowed(history []map[string]bool, all []*expr) map[string]bool {
	key := fmt.Sprint(history)
	if known, ok := r.follow[key]; ok {
		return known
	}
	allowed := map[string]bool{}
	r.follow[key] = allowed
	for _, e := range all {
		if allowed[e.String()] {
			continue
		}
		longer := append(history[:len(history):len(history)], map[string]bool{e.String(): true})
		if r.sequence(longer).begins(r.start, 0) {
			allowed[e.String()] = true
		}
	}
	return allowed
}

// trailing returns the positions from which on all may be ignored.
func (r *reference) trailing(history []map[string]bool) (all set) {
	all = 1 << len(history)
	for i := len(history) - 1; i >= 0 && history[i][""]; i-- {
		all |= 1 << i
	}
	return all
}

// sequence returns the matcher of a text of sets of lexemes.
func (r *reference) sequence(history []map[string]bool) *matcher {
	m := &matcher{rules: r.rules, leads: r.live, n: len(history)}
	m.over = func(i int) bool { return r.trailing(history)>>i&1 == 1 }
	m.terminal = func(e *expr, i int) (all set) {
		for ; i < len(history); i++ {
			if history[i][e.String()] {
				all |= 1 << (i + 1)
			}
			if !history[i][""] {
				break
			}
		}
		return all
	}
	m.prefix = func(e *expr, i int) bool { return m.over(i) || m.ended(m.terminal(e, i)) }
	m.solve()
	return m
}

// source builds the grammar with a builder.
func (r *reference) source() (grammar.Source, error) {
	s := regex.New(regex.Limits{})
	b := grammar.NewBuilder(s)
	for name, body := range r.rules {
		b.Define(name, build(b, s, body))
	}
	o := grammar.Options{Greedy: r.greedy}
	if r.ignored != nil {
		o.Ignored = regular(s, r.ignored)
	}
	return b.Source("s", o)
}

func build(b *grammar.Builder, s *regex.Store, e *expr) grammar.Expr {
	var kids []grammar.Expr
	if e.op != opLexeme {
		for _, k := range e.kids {
			kids = append(kids, build(b, s, k))
		}
	}
	switch e.op {
	case opSeq:
		return b.Seq(kids...)
	case opAlt:
		return b.Alt(kids...)
	case opRepeat:
		return b.Repeat(kids[0], e.lo, e.hi)
	case opRule:
		return b.Rule(e.name)
	case opLexeme:
		return b.Lexeme(regular(s, e.kids[0]))
	}
	return b.Lexeme(regular(s, e))
}

func regular(s *regex.Store, e *expr) regex.ID {
	var kids []regex.ID
	for _, k := range e.kids {
		kids = append(kids, regular(s, k))
	}
	switch e.op {
	case opSeq:
		return s.Concat(kids...)
	case opAlt:
		return s.Or(kids...)
	case opRepeat:
		if e.hi >= 0 && e.hi < e.lo {
			return regex.Nothing
		}
		return s.Repeat(kids[0], e.lo, e.hi)
	case opSpecial:
		return s.Literal(e.name)
	}
	var bytes regex.Set
	for i := range len(e.set) {
		bytes.Add(e.set[i], e.set[i])
	}
	return s.Bytes(bytes)
}

// A maker draws grammars and vocabularies.
type maker struct {
	*rand.Rand
	alphabet string
}

func (k maker) class() *expr {
	if k.IntN(6) == 0 { // all but the double quote, so that slices of clean text count
		var all []byte
		for b := range 255 {
			if b != '"' {
				all = append(all, byte(b))
			}
		}
		return &expr{op: opClass, set: string(all)}
	}
	n := 1 + k.IntN(2)
	var all []byte
	for range n {
		all = append(all, k.alphabet[k.IntN(len(k.alphabet))])
	}
	return &expr{op: opClass, set: string(all)}
}

// regular draws a regular expression that does not hold the empty text.
func (k maker) regular(depth int) *expr {
	if depth == 0 || k.IntN(3) == 0 {
		return k.class()
	}
	switch k.IntN(4) {
	case 0:
		return &expr{op: opSeq, kids: []*expr{k.regular(depth - 1), k.regular(depth - 1)}}
	case 1:
		return &expr{op: opAlt, kids: []*expr{k.regular(depth - 1), k.regular(depth - 1)}}
	case 2:
		return &expr{op: opSeq, kids: []*expr{k.regular(depth - 1), {op: opRepeat, kids: []*expr{k.regular(depth - 1)}, hi: k.IntN(4) - 1}}}
	}
	lo := 1 + k.IntN(2)
	return &expr{op: opRepeat, kids: []*expr{k.regular(depth - 1)}, lo: lo, hi: []int{-1, lo, lo + 1}[k.IntN(3)]}
}

func (k maker) body(depth, rules int) *expr {
	if depth == 0 || k.IntN(4) == 0 {
		switch k.IntN(8) {
		case 0, 1, 2:
			return &expr{op: opRule, name: string(rune('s' + k.IntN(rules)))}
		case 3:
			return &expr{op: opSeq}
		case 4:
			return &expr{op: opSpecial, name: vocab.Spelling(token.ID(2 + k.IntN(2)))}
		}
		return &expr{op: opLexeme, kids: []*expr{k.regular(2)}}
	}
	switch k.IntN(5) {
	case 0, 1:
		return &expr{op: opSeq, kids: []*expr{k.body(depth-1, rules), k.body(depth-1, rules)}}
	case 2, 3:
		return &expr{op: opAlt, kids: []*expr{k.body(depth-1, rules), k.body(depth-1, rules)}}
	}
	lo := k.IntN(2)
	return &expr{op: opRepeat, kids: []*expr{k.body(depth-1, rules)}, lo: lo, hi: []int{-1, lo, lo + 2}[k.IntN(3)]}
}

func (k maker) reference(greedy bool) *reference {
	r := &reference{rules: map[string]*expr{}, greedy: greedy}
	n := 1 + k.IntN(3)
	for i := range n {
		r.rules[string(rune('s'+i))] = k.body(3, n)
	}
	if k.IntN(3) == 0 {
		r.ignored = &expr{op: opRepeat, kids: []*expr{{op: opClass, set: " "}}, lo: 1, hi: -1}
		if k.IntN(4) == 0 {
			r.ignored = k.regular(1)
		}
	}
	r.prepare()
	return r
}

// tokens draws a vocabulary: two end tokens, two special ones, an empty one, single bytes, duplicates, longer ones.
func (k maker) tokens() []vocab.Token {
	all := []vocab.Token{
		{ID: 0, Kind: vocab.End}, {ID: 1, Kind: vocab.End}, {ID: 2, Kind: vocab.Special}, {ID: 3, Kind: vocab.Special},
		{ID: 4, Kind: vocab.Ordinary}, {ID: 5, Kind: vocab.Unused},
	}
	add := func(text string) {
		all = append(all, vocab.Token{ID: token.ID(len(all)), Bytes: []byte(text), Kind: vocab.Ordinary})
	}
	for i := range len(k.alphabet) {
		if k.IntN(8) > 0 {
			add(k.alphabet[i : i+1])
		}
	}
	for range 5 + k.IntN(25) {
		var b []byte
		for range 1 + k.IntN(4) {
			b = append(b, k.alphabet[k.IntN(len(k.alphabet))])
		}
		add(string(b))
		if k.IntN(6) == 0 {
			add(string(b))
		}
	}
	return all
}
