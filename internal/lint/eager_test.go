package lint

import (
	"go/ast"
	"regexp"
)

// quiet are functions by whose names one knows that a call beside another changes nothing that matters: constructors, comparisons, checks, and
// what ends a thing, which is to run whatever failed before.
var quiet = regexp.MustCompile(`^(New|Errorf|Compare|Err|Cause|Getenv|len|min|max|Float64|Stat|must|[a-z]+able|fits|SizeFits|Finite|Closed|unanswered|unequal|blame)$|^(Close|close|Drop|Truncate|Restore|silence|Clear|End)|^([cC]heck|[vV]alid)`)

// checkEager finds calls of cmp.Or and errors.Join with two or more calls among their arguments. Both evaluate all of them, so that the second one runs
// although the first has failed: grove once read three files, of gigabytes, to report that the first one is missing.
func checkEager(m *module) (bad []string) {
	for _, s := range m.code() {
		ast.Inspect(s.file, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name := qualified(c.Fun); name == "cmp.Or" || name == "errors.Join" {
				calls := 0
				for _, a := range c.Args {
					if inner, ok := a.(*ast.CallExpr); ok && !quiet.MatchString(lastName(inner.Fun)) {
						calls++
					}
				}
				if calls >= 2 {
					bad = append(bad, m.at(c, "%s runs %d calls although the first of them fails: call one after the other", name, calls))
				}
			}
			return true
		})
	}
	return bad
}

// qualified returns the name of a function of a package, as the file writes it; "": it is something else.
func qualified(f ast.Expr) string {
	if sel, ok := f.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// lastName returns the name of a function or method without what is before it.
func lastName(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}
