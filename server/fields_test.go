package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// unread are the fields of bodies that are decoded and have no effect, with the reason.
var unread = map[string]string{
	"anthropic.file_id":           "its documents are refused by their type",
	"anthropic.clear_at_least":    "all that may be cleared is cleared",
	"structured.description":      "of a schema, for whoever reads the request",
	"structured.preserved_tokens": "marks of calls are read as tokens and as text",
	"structured.disable_fallback": "there is one engine of constraints",
	"llamacpp.time":               "when a file was changed",
	"llamacpp.return_metrics":     "timings are always returned",
	"ollama.username":             "registries take no passwords, in ollama neither",
	"ollama.password":             "registries take no passwords, in ollama neither",
	"ollama.num_batch":            sizes, "ollama.num_gpu": sizes, "ollama.main_gpu": sizes, "ollama.num_thread": sizes, "ollama.draft_num_predict": sizes, "ollama.use_mmap": sizes,
	"ollama.use_mlock": sizes, "ollama.numa": sizes, "ollama.low_vram": sizes, "ollama.f16_kv": sizes, "ollama.vocab_only": sizes, "ollama.logits_all": sizes,
}

const sizes = "it sizes the work of ollama's runner"

// structs are the struct types of a package by their names, and the names that its code reads by a selector.
type structs struct {
	types map[string]*ast.StructType
	other map[string]ast.Expr // types that are no structs
	reads map[string]bool
	roots []*ast.StructType // of bodies
	names []string          // of types of bodies
}

func structsOf(t *testing.T, dir string) *structs {
	t.Helper()
	s := &structs{types: map[string]*ast.StructType{}, other: map[string]ast.Expr{}, reads: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s.note(n)
			return true
		})
	}
	return s
}

// note notes a declaration, a body, or a selector.
func (s *structs) note(n ast.Node) {
	switch n := n.(type) {
	case *ast.TypeSpec:
		if of, ok := n.Type.(*ast.StructType); ok {
			s.types[n.Name.Name] = of
		} else {
			s.other[n.Name.Name] = n.Type
		}
	case *ast.SelectorExpr:
		s.reads[n.Sel.Name] = true
	case *ast.IndexExpr: // driver.Answers[T]
		if f, ok := n.X.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "Answers") {
			if name, ok := n.Index.(*ast.Ident); ok {
				s.names = append(s.names, name.Name)
			}
		}
	case *ast.ValueSpec: // var q T, for the body of a handler
		if n.Names[0].Name == "q" {
			switch of := n.Type.(type) {
			case *ast.StructType:
				s.roots = append(s.roots, of)
			case *ast.Ident:
				s.names = append(s.names, of.Name)
			}
		}
	}
}

// TestFieldsAreRead: each field that a body may have is read by the code of its package, by its name, or listed with a reason. A field that
// is decoded and then forgotten would be ignored in silence.
func TestFieldsAreRead(t *testing.T) {
	packages, reads, all := map[string]*structs{}, map[string]map[string]bool{}, map[string]bool{}
	for _, name := range []string{"wire", "structured", "driver", "openai", "llamacpp", "anthropic", "ollama", "rerank"} {
		packages[name] = structsOf(t, name)
		reads[name] = packages[name].reads
		maps.Copy(all, reads[name])
	}
	reads["wire"], reads["driver"] = all, all // the APIs read their fields, too
	seen, found, bodies := map[ast.Expr]bool{}, map[string]bool{}, 0
	var visit func(pkg string, of ast.Expr)
	visit = func(pkg string, of ast.Expr) {
		p := packages[pkg]
		if p == nil || seen[of] {
			return
		}
		switch of := of.(type) {
		case *ast.StarExpr:
			visit(pkg, of.X)
		case *ast.ArrayType:
			visit(pkg, of.Elt)
		case *ast.SelectorExpr:
			if o := packages[of.X.(*ast.Ident).Name]; o != nil && o.types[of.Sel.Name] != nil {
				visit(of.X.(*ast.Ident).Name, o.types[of.Sel.Name])
			}
		case *ast.Ident:
			if p.types[of.Name] != nil {
				visit(pkg, p.types[of.Name])
			} else if p.other[of.Name] != nil {
				visit(pkg, p.other[of.Name])
			}
		case *ast.StructType:
			seen[of] = true
			for _, f := range of.Fields.List {
				visit(pkg, f.Type)
				if f.Tag == nil || len(f.Names) == 0 {
					continue
				}
				tag, _ := strconv.Unquote(f.Tag.Value)
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				name = pkg + "." + name
				switch read := reads[pkg][f.Names[0].Name]; {
				case !read && unread[name] == "":
					t.Errorf("%s is decoded and has no effect; honour it, refuse it, or give the reason here", name)
				case !read:
					found[name] = true
				}
			}
		}
	}
	for name, p := range packages {
		for _, root := range p.roots {
			visit(name, root)
		}
		for _, root := range p.names {
			visit(name, ast.NewIdent(root))
		}
		bodies += len(p.roots) + len(p.names)
	}
	if bodies < 15 {
		t.Errorf("only %d bodies are found", bodies)
	}
	for name := range unread {
		if !found[name] {
			t.Errorf("%s has a reason to have no effect, and has one, or is gone", name)
		}
	}
}
