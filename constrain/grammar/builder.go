package grammar

import (
	"errors"
	"fmt"

	"grove/constrain/regex"
)

// Errors of grammars.
var (
	// ErrRefused is the error of an [Edge.Read] after whose bytes the grammar does not go on.
	ErrRefused = errors.New("grammar: the text of the lexeme is refused")
	// ErrUnknown is a rule that is used and not defined.
	ErrUnknown = errors.New("grammar: the rule is not defined")
	// ErrTwice is a rule that is defined twice.
	ErrTwice = errors.New("grammar: the rule is defined twice")
	// ErrNoText is a grammar that no text follows.
	ErrNoText = errors.New("grammar: no text follows the rule")
	// ErrSize is a grammar of more parts than [MaxExprs], or a network of more nodes than [MaxNodes].
	ErrSize = errors.New("grammar: too large")
)

// Bounds of grammars.
const (
	MaxExprs = 500_000   // expressions of a [Builder]
	MaxNodes = 1_000_000 // nodes that a [Builder]'s source unfolds
)

// An Expr is an expression of a [Builder].
type Expr int32

type exprKind uint8

const (
	kindEmpty  exprKind = iota
	kindLexeme          // id
	kindRule            // rule
	kindSeq             // parts
	kindAlt             // parts
	kindRepeat          // parts[0], lo, hi
)

type expr struct {
	kind     exprKind
	nullable bool // without regard to the rules that it calls
	id       regex.ID
	rule     int32
	lo, hi   int
	parts    []Expr
}

type rule struct {
	name    string
	body    Expr
	defined bool
	used    bool
}

// A Builder makes a grammar of named rules. Its expressions belong to it. Its errors are those of [Builder.Source]. It is
// not safe for concurrent use.
type Builder struct {
	store   *regex.Store
	exprs   []expr
	rules   []rule
	names   map[string]int32
	repeats map[repetition]Expr
	empty   Expr
	err     error
}

// A repetition is a part that repeats, and how often.
type repetition struct {
	e      Expr
	lo, hi int
}

// NewBuilder returns a builder of grammars whose lexemes are in a store.
func NewBuilder(s *regex.Store) *Builder {
	b := &Builder{store: s, names: map[string]int32{}, repeats: map[repetition]Expr{}}
	b.empty = b.add(expr{kind: kindEmpty, nullable: true})
	return b
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *Builder) add(e expr) Expr {
	if len(b.exprs) >= MaxExprs {
		b.fail(fmt.Errorf("%w: more than %d expressions", ErrSize, MaxExprs))
		return b.empty
	}
	b.exprs = append(b.exprs, e)
	return Expr(len(b.exprs) - 1)
}

// Empty returns the expression of the empty text.
func (b *Builder) Empty() Expr { return b.empty }

// Lexeme returns the expression of one lexeme. One that holds the empty text stands for a lexeme or nothing.
func (b *Builder) Lexeme(id regex.ID) Expr {
	if id == regex.Epsilon {
		return b.empty
	}
	if id != regex.Nothing && b.store.Nullable(id) {
		full := b.store.And(id, someBytes(b.store))
		if b.store.IsEmpty(full) {
			return b.empty
		}
		return b.Alt(b.add(expr{kind: kindLexeme, id: full}), b.empty)
	}
	return b.add(expr{kind: kindLexeme, id: id})
}

// someBytes returns the strings of one byte or more. Not(Epsilon) would leave out the spellings of special tokens.
func someBytes(s *regex.Store) regex.ID {
	return s.Repeat(s.Bytes(regex.Set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}), 1, -1)
}

// Rule returns the expression of a call of a rule, which may be defined later.
func (b *Builder) Rule(name string) Expr {
	r := b.rule(name)
	b.rules[r].used = true
	return b.add(expr{kind: kindRule, rule: r})
}

func (b *Builder) rule(name string) int32 {
	r, ok := b.names[name]
	if !ok {
		r = int32(len(b.rules))
		b.rules = append(b.rules, rule{name: name})
		b.names[name] = r
	}
	return r
}

// Define gives a rule its expression. Rules are defined once.
func (b *Builder) Define(name string, e Expr) {
	r := b.rule(name)
	if b.rules[r].defined {
		b.fail(fmt.Errorf("%w: %q", ErrTwice, name))
	}
	b.rules[r].body, b.rules[r].defined = e, true
}

// Seq returns the expression of one part after the other.
func (b *Builder) Seq(parts ...Expr) Expr {
	kept := make([]Expr, 0, len(parts))
	nullable := true
	for _, p := range parts {
		if p == b.empty {
			continue
		}
		kept = append(kept, p)
		nullable = nullable && b.exprs[p].nullable
	}
	switch len(kept) {
	case 0:
		return b.empty
	case 1:
		return kept[0]
	}
	return b.add(expr{kind: kindSeq, parts: kept, nullable: nullable})
}

// Alt returns the expression of one part or another. Without parts, no text follows it.
func (b *Builder) Alt(parts ...Expr) Expr {
	if len(parts) == 1 {
		return parts[0]
	}
	nullable := false
	for _, p := range parts {
		nullable = nullable || b.exprs[p].nullable
	}
	return b.add(expr{kind: kindAlt, parts: append([]Expr(nil), parts...), nullable: nullable})
}

// Repeat returns the expression of a part lo to hi times; a negative hi is without bound. The counts are not unrolled.
func (b *Builder) Repeat(e Expr, lo, hi int) Expr {
	lo = max(lo, 0)
	if hi >= 0 && hi < lo {
		return b.Alt()
	}
	if b.exprs[e].nullable {
		lo = 0
	}
	switch {
	case hi == 0 || e == b.empty:
		return b.empty
	case lo == 1 && hi == 1:
		return e
	}
	key := repetition{e, lo, hi}
	if r, ok := b.repeats[key]; ok {
		return r
	}
	r := b.add(expr{kind: kindRepeat, parts: []Expr{e}, lo: lo, hi: hi, nullable: lo == 0})
	if b.err == nil {
		b.repeats[key] = r
	}
	return r
}
