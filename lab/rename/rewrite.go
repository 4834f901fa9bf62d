package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// rewrite returns the text of a file with another path of the module.
func rewrite(name string, text []byte, old, path string) ([]byte, error) {
	switch filepath.Ext(name) {
	case ".go":
		return rewriteGo(text, old, path)
	case ".mod", ".work":
		return rewriteMod(text, old, path), nil
	case ".md":
		return rewriteDoc(text, old, path), nil
	}
	return text, nil
}

// moved returns the new path of a package of the module, false where a path is none of it.
func moved(importPath, old, path string) (string, bool) {
	rest, ok := strings.CutPrefix(importPath, old)
	return path + rest, ok && (rest == "" || rest[0] == '/')
}

// rewriteGo changes the imports of a Go file, and commands to fetch or describe its packages in comments. The imports are sorted anew.
func rewriteGo(text []byte, old, path string) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	now, at := []byte{}, 0
	change := func(n ast.Node, with string) {
		now = append(append(now, text[at:set.Position(n.Pos()).Offset]...), with...)
		at = set.Position(n.End()).Offset
	}
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if to, ours := moved(p, old, path); ours {
			change(spec.Path, strconv.Quote(to))
		}
	}
	if at == 0 {
		return text, nil
	}
	return format.Source(append(now, text[at:]...))
}

// rewriteMod changes a go.mod or go.work file: the module's own path, and those of the modules that it requires or replaces.
func rewriteMod(text []byte, old, path string) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		code, comment, commented := strings.Cut(line, "//")
		fields := strings.Fields(code)
		for _, f := range fields {
			if to, ours := moved(f, old, path); ours {
				code = replaceWord(code, f, to)
				break // a path stands once at most on the left, and a directory on the right
			}
		}
		if lines[i] = code; commented {
			lines[i] += "//" + comment
		}
	}
	return []byte(strings.Join(lines, ""))
}

// replaceWord replaces the first word of a line that is the given one.
func replaceWord(line, word, with string) string {
	return regexp.MustCompile(`(^|\s)`+regexp.QuoteMeta(word)+`(\s|$)`).ReplaceAllStringFunc(line, func(m string) string {
		return strings.Replace(m, word, with, 1)
	})
}

// rewriteDoc changes what a document shows of Go files (a line that is an import) and of the go command (go doc, go get, go
// install, go run, go mod edit).
func rewriteDoc(text []byte, old, path string) []byte {
	name := regexp.QuoteMeta(old)
	imports := regexp.MustCompile(fmt.Sprintf(`(?m)^(\s*(?:import\s+)?(?:[\w.]+\s+)?")%s((?:/[^"\s]*)?"\s*(?://.*)?)$`, name))
	commands := regexp.MustCompile(fmt.Sprintf(`(\bgo (?:doc|get|install|run|vet|test|build) (?:-\S+ )*|\bmodule )%s((?:/[\w./]*)?(?:@\S+)?)(\W|$)`, name))
	with := strings.ReplaceAll(path, "$", "$$")
	text = imports.ReplaceAll(text, []byte("${1}"+with+"${2}"))
	return bytes.Clone(commands.ReplaceAll(text, []byte("${1}"+with+"${2}${3}")))
}
