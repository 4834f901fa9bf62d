// Package gosource is a monitor of Go source: behind "x." only members follow that x has. It parses and checks the text with the
// type checker of the standard library, which programs link only where they import this package.
package gosource

import (
	"bytes"
	"crypto/sha256"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"grove/constrain"
)

// MaxSource is how many bytes of source are analysed; a longer text binds nothing.
const MaxSource = 1 << 18

// Monitor is a [constrain.Monitor] of Go source: behind "x.", where the type of x is known, one of its fields or methods must follow,
// or, behind a package, one of its exported names. Blanks may stand between, and "(" behind an interface. Where the type
// is not known, or has no members, anything may follow. The text is a file, or the declarations of one.
type Monitor struct {
	mu      sync.Mutex
	imports types.Importer // nil: imported packages are not known
	last    [kept]answer   // the texts that were asked about last: a mask asks behind each blank again
	next    int            // where the next one is put
}

var _ constrain.Monitor = (*Monitor)(nil)

// kept is how many answers are kept.
const kept = 16

// An answer is what may follow a text.
type answer struct {
	text [sha256.Size]byte
	list []string
}

// New returns the monitor of Go source. With imports it reads the packages of the standard library from the sources of
// the Go installation, which takes up to seconds for the first text that imports one; where there is no installation,
// and without imports, nothing binds behind the name of a package or values of its types.
func New(imports bool) *Monitor {
	g := &Monitor{}
	if root := filepath.Join(build.Default.GOROOT, "src"); imports && isDir(filepath.Join(root, "fmt")) {
		g.imports = standard{root, importer.ForCompiler(token.NewFileSet(), "source", nil)}
	}
	return g
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// standard imports packages of the standard library alone.
type standard struct {
	root string
	from types.Importer
}

// Import implements [types.Importer].
func (s standard) Import(path string) (*types.Package, error) {
	if !filepath.IsLocal(path) || path == "unsafe" || !isDir(filepath.Join(s.root, filepath.FromSlash(path))) {
		return nil, os.ErrNotExist
	}
	return s.from.Import(path)
}

// Break implements [Monitor].
func (g *Monitor) Break(b byte) bool { return !isName(b) }

// Complete implements [Monitor].
func (g *Monitor) Complete(text []byte) []string {
	at := len(text)
	for at > 0 && isBlank(text[at-1]) {
		at--
	}
	if at == 0 || text[at-1] != '.' || at > MaxSource {
		return nil
	}
	if !known(text[:at-1]) {
		return nil
	}
	open, ok := scan(text[:at])
	if !ok {
		return nil
	}
	key := sha256.Sum256(text[:at])
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.last {
		if a.text == key {
			return a.list
		}
	}
	all := g.members(string(text[:at]), open)
	if len(all) > 0 {
		all = append(all, " ", "\t", "\n", "\r")
	}
	g.last[g.next], g.next = answer{key, all}, (g.next+1)%kept
	return all
}

// known reports whether a text may end with something whose type is known: a closing bracket, or a name that stands in
// the text before. This is quick, and so are the tokens let through that have a period behind something else.
func known(text []byte) bool {
	text = bytes.TrimRight(text, " \t\r\n")
	if len(text) == 0 || bytes.IndexByte([]byte(")]}"), text[len(text)-1]) >= 0 {
		return len(text) > 0
	}
	from := len(text)
	for from > 0 && isName(text[from-1]) {
		from--
	}
	name := text[from:]
	if len(name) == 0 || token.IsKeyword(string(name)) {
		return false
	}
	for rest := text[:from]; ; {
		i := bytes.LastIndex(rest, name)
		if i < 0 {
			return false
		}
		if end := i + len(name); (i == 0 || !isName(rest[i-1])) && (end == from || !isName(text[end])) {
			return true
		}
		rest = rest[:i]
	}
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// scan reads the tokens of a text and returns the brackets that are open at its end; false: it does not end with the
// period of a selector.
func scan(text []byte) (open []byte, ok bool) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, func(token.Position, string) {}, 0)
	for {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return open, ok
		case token.LPAREN:
			open = append(open, ')')
		case token.LBRACK:
			open = append(open, ']')
		case token.LBRACE:
			open = append(open, '}')
		case token.RPAREN, token.RBRACK, token.RBRACE:
			if n := len(open) - 1; n >= 0 && tok.String()[0] == open[n] {
				open = open[:n]
			}
		}
		ok = tok == token.PERIOD && file.Offset(pos) == len(text)-1
	}
}

// member is the name that stands in the place of the one that follows.
const member = "grove_"

// endings complete the statement around a selector: a value, the head of a block, an initialisation before the head, a
// case, the first of two operands.
var endings = []string{"", " {}", "; true {}", ":", " = nil"}

// members returns the names that may follow a text that ends with a selector's period.
func (g *Monitor) members(text string, open []byte) []string {
	head := ""
	if !strings.HasPrefix(strings.TrimSpace(stripComments(text)), "package") {
		head = "package p;"
	}
	inner, outer := "", "" // brackets within the statement, and around it
	for i := len(open) - 1; i >= 0; i-- {
		if open[i] == '}' || outer != "" {
			outer += "\n" + string(open[i])
		} else {
			inner += string(open[i])
		}
	}
	var best *ast.File
	var set *token.FileSet
	for _, rest := range []string{outer, strings.Replace(outer, "}", "}()", 1)} { // a function that is deferred is called
		for _, ending := range endings {
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, "", head+text+member+inner+ending+rest+"\n", parser.SkipObjectResolution)
			if f == nil || selector(f) == nil {
				continue
			}
			if err == nil {
				return g.check(files, f)
			}
			if best == nil {
				best, set = f, files
			}
		}
	}
	if best == nil {
		return nil
	}
	return g.check(set, best)
}

// stripComments removes the comments before the first token.
func stripComments(text string) string {
	for {
		text = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "//"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text, "*/")
		default:
			return text
		}
	}
}

// selector returns the selector of the name that is not written yet.
func selector(f *ast.File) (found *ast.SelectorExpr) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == member {
			found = s
		}
		return found == nil
	})
	return found
}

// check returns the members of what stands before the period.
func (g *Monitor) check(set *token.FileSet, f *ast.File) []string {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Error: func(error) {}, Importer: g.imports, DisableUnusedImportCheck: true, FakeImportC: true}
	pkg, _ := config.Check(f.Name.Name, set, []*ast.File{f}, info) // errors are elsewhere in the text, or the name itself
	s := selector(f)
	if id, ok := s.X.(*ast.Ident); ok {
		if name, ok := info.Uses[id].(*types.PkgName); ok {
			return exported(name.Imported())
		}
	}
	t, ok := info.Types[s.X]
	if !ok || t.Type == nil || t.Type == types.Typ[types.Invalid] {
		return nil
	}
	return membersOf(t, pkg)
}

// exported returns the exported names of a package; none of one that could not be read.
func exported(p *types.Package) (all []string) {
	for _, name := range p.Scope().Names() {
		if token.IsExported(name) {
			all = append(all, name)
		}
	}
	return all
}

// membersOf returns the names that may follow a value, or a type: those that the language finds, at any depth.
func membersOf(t types.TypeAndValue, pkg *types.Package) (all []string) {
	names := map[string]*types.Package{}
	collect(names, t.Type, map[types.Type]bool{})
	for name, of := range names {
		if name == "_" || name == member || !token.IsExported(name) && of != pkg {
			continue
		}
		found, _, _ := types.LookupFieldOrMethod(t.Type, true, pkg, name)
		if _, isField := found.(*types.Var); found == nil || t.IsType() && isField {
			continue
		}
		all = append(all, name)
	}
	if len(all) > 0 && t.IsValue() && types.IsInterface(t.Type) {
		all = append(all, "(")
	}
	return all
}

// collect gathers the names of all fields and methods of a type and of what it embeds.
func collect(names map[string]*types.Package, t types.Type, seen map[types.Type]bool) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if t = types.Unalias(t); seen[t] {
		return
	}
	seen[t] = true
	if n, ok := t.(*types.Named); ok {
		for m := range n.Methods() {
			names[m.Name()] = m.Pkg()
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			names[f.Name()] = f.Pkg()
			if f.Embedded() {
				collect(names, f.Type(), seen)
			}
		}
	case *types.Interface:
		for m := range u.Methods() {
			names[m.Name()] = m.Pkg()
		}
	}
}

// isName says whether a byte may be a part of a name.
func isName(b byte) bool {
	return b >= 0x80 || b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
