// Command _complete tells how many functions a model completes such that go/parser takes them:
//
//	go run ./train/complete [-m MODEL.gguf] valid.json
//
// valid.json is what train/corpus.py holds out. Of the first 50 files that have a function of 3 to 30 lines, the first such function
// is cut behind its head; the model goes on from there and from what is before it, greedily, to the brace that closes the
// function. It counts if head and completion parse; one without an end does not.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"grove"
	"grove/internal/gopher"
)

const (
	functions = 50
	before    = 400 // bytes of the file that are shown before the function
	most      = 160 // tokens of a completion
)

func main() {
	name := flag.String("m", gopher.Name, "model")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./train/complete [-m MODEL.gguf] valid.json")
		os.Exit(2)
	}
	if err := run(*name, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "_complete:", err)
		os.Exit(1)
	}
}

func run(name, path string) error {
	m, err := grove.Open(name, grove.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var files [][2]string
	if err := json.Unmarshal(text, &files); err != nil {
		return err
	}
	asked, good := 0, 0
	for i := 0; i < len(files) && asked < functions; i++ {
		context, head := cut(files[i][1])
		if head == "" {
			continue
		}
		body, err := complete(m, context+head)
		if err != nil {
			return err
		}
		ok := parses(head + body)
		if asked++; ok {
			good++
		}
		fmt.Printf("-- %s: %v\n%s%s\n", files[i][0], ok, head, body)
	}
	fmt.Printf("%d of %d completions parse\n", good, asked)
	return nil
}

// cut returns the first function of a file that is neither short nor long, up to its opening brace, and some of what is before it.
func cut(text string) (context, head string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, 0)
	if err != nil {
		return "", ""
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		at := func(p token.Pos) int { return set.Position(p).Offset }
		if lines := strings.Count(text[at(f.Body.Lbrace):at(f.Body.Rbrace)], "\n"); lines >= 3 && lines <= 30 {
			return text[max(0, at(f.Pos())-before):at(f.Pos())], text[at(f.Pos()):at(f.Body.Lbrace)+1] + "\n"
		}
	}
	return "", ""
}

// complete returns what a model writes behind a function's head, to the line that closes it, or all of it.
func complete(m *grove.Model, prompt string) (string, error) {
	ids, err := m.Tokenize(prompt, true, true)
	if err != nil {
		return "", err
	}
	room := max(1, m.Info().Context-most)
	for len(ids) > room {
		_, prompt, _ = strings.Cut(prompt, "\n")
		if ids, err = m.Tokenize(prompt, true, true); err != nil {
			return "", err
		}
	}
	g, err := m.Generate(context.Background(), grove.Request{Prompt: prompt, MaxTokens: most})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for t, err := range g.Tokens() {
		if err != nil {
			return "", err
		}
		text.WriteString(t.Text)
		if i := strings.Index(text.String(), "\n}"); i >= 0 {
			return text.String()[:i+2], nil
		}
	}
	return text.String(), nil
}

func parses(function string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\n\n"+function+"\n", 0)
	return err == nil
}
