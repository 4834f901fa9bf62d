package grammar

import "grove/constrain/regex"

// An inliner turns what is regular into lexemes. A rule is regular if it does not lead to itself and calls regular rules only.
type inliner struct {
	*Builder
	rules map[int32]found // of rules
	exprs map[Expr]found
}

// found is the regular expression of an expression, or of a rule.
type found struct {
	id      regex.ID
	regular bool
	open    bool // being looked at: the rule leads to itself
}

// inline replaces each largest regular part by a lexeme. Lexemes end wherever they match here, so the texts stay the same.
func (b *Builder) inline() {
	in := &inliner{b, map[int32]found{}, map[Expr]found{}}
	n := len(b.exprs)
	for r := range b.rules {
		in.rule(int32(r))
	}
	for e := range n {
		in.merge(Expr(e))
	}
	for r := range b.rules {
		if f := in.rule(int32(r)); f.regular {
			b.rules[r].body = b.Lexeme(f.id)
		}
	}
}

func (in *inliner) rule(r int32) found {
	f, ok := in.rules[r]
	if ok {
		return f // an open one is not regular
	}
	in.rules[r] = found{open: true}
	f = in.expr(in.Builder.rules[r].body)
	in.rules[r] = f
	return f
}

// expr returns the regular expression of an expression, where it has one.
func (in *inliner) expr(e Expr) found {
	if f, ok := in.exprs[e]; ok {
		return f
	}
	x := in.Builder.exprs[e]
	f := found{regular: true}
	var parts []regex.ID
	for _, p := range x.parts {
		part := in.expr(p)
		f.regular = f.regular && part.regular
		parts = append(parts, part.id)
	}
	if f.regular {
		switch x.kind {
		case kindEmpty:
			f.id = regex.Epsilon
		case kindLexeme:
			f.id = x.id
		case kindRule:
			f = in.rule(x.rule)
		case kindSeq:
			f.id = in.store.Concat(parts...)
		case kindAlt:
			f.id = in.store.Or(parts...)
		case kindRepeat:
			f.id = in.store.Repeat(parts[0], x.lo, x.hi)
		}
	}
	f.open = false
	in.exprs[e] = f
	return f
}

// merge joins the regular parts of an expression that is not regular: those side by side of a sequence, all of a choice.
func (in *inliner) merge(e Expr) {
	x := in.Builder.exprs[e]
	if f := in.exprs[e]; f.regular || x.kind != kindSeq && x.kind != kindAlt && x.kind != kindRepeat {
		return
	}
	var parts []Expr
	var run []regex.ID
	flush := func() {
		if len(run) > 0 && x.kind == kindAlt {
			parts = append(parts, in.Lexeme(in.store.Or(run...)))
		} else if len(run) > 0 {
			parts = append(parts, in.Lexeme(in.store.Concat(run...)))
		}
		run = run[:0]
	}
	for _, p := range x.parts {
		if f := in.exprs[p]; f.regular {
			run = append(run, f.id)
			continue
		}
		if x.kind != kindAlt {
			flush()
		}
		parts = append(parts, p)
	}
	flush()
	x.parts = parts
	in.renew(&x)
	in.Builder.exprs[e] = x
}

// renew finds whether an expression holds the empty text now that the regular rules that it calls are lexemes.
func (in *inliner) renew(x *expr) {
	all, some := true, false
	for _, p := range x.parts {
		n := in.Builder.exprs[p].nullable
		all, some = all && n, some || n
	}
	switch x.kind {
	case kindSeq:
		x.nullable = all
	case kindAlt:
		x.nullable = some
	case kindRepeat:
		if all {
			x.lo = 0
		}
		x.nullable = x.lo == 0
	}
}
