package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// checkDocs asks for a doc comment on every exported name; those of functions, methods and types
// begin with it, after an article at most. Constants and variables may share their group's.
func checkDocs(m *module) (bad []string) {
	for _, s := range m.code() {
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				bad = append(bad, m.funcDoc(d)...)
			case *ast.GenDecl:
				bad = append(bad, m.groupDocs(d)...)
			}
		}
	}
	return bad
}

func (m *module) funcDoc(d *ast.FuncDecl) []string {
	if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d.Recv.List[0].Type)) {
		return nil
	}
	return m.nameDoc(d, d.Name.Name, d.Doc)
}

// receiver returns the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.ParenExpr:
		return receiver(t.X)
	}
	return ""
}

func (m *module) groupDocs(d *ast.GenDecl) (bad []string) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil && !d.Lparen.IsValid() {
				doc = d.Doc
			}
			if spec.Name.IsExported() {
				bad = append(bad, m.nameDoc(spec, spec.Name.Name, doc)...)
			}
		case *ast.ValueSpec:
			if d.Doc != nil || spec.Doc != nil || spec.Comment != nil {
				continue
			}
			if i := slices.IndexFunc(spec.Names, (*ast.Ident).IsExported); i >= 0 {
				bad = append(bad, m.at(spec, "%s %s has no doc comment", kind(d.Tok), spec.Names[i].Name))
			}
		}
	}
	return bad
}

func kind(tok token.Token) string {
	if tok == token.CONST {
		return "constant"
	}
	return "variable"
}

// nameDoc checks the comment of one function, method or type.
func (m *module) nameDoc(n ast.Node, name string, doc *ast.CommentGroup) []string {
	if doc == nil {
		return []string{m.at(n, "%s has no doc comment", name)}
	}
	words := strings.Fields(doc.Text())
	if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || strings.TrimRight(words[0], ",.:") != name {
		return []string{m.at(n, "the doc comment of %s does not begin with its name", name)}
	}
	if len(words) > 2 && (words[1] == "is" || words[1] == "are") && slices.Contains([]string{"what", "who", "where"}, words[2]) {
		return []string{m.at(n, "the doc comment of %s defines it by a question (%s %s): name it by a noun", name, words[1], words[2])}
	}
	return nil
}
