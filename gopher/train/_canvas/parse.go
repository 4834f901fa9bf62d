package main

import (
	"errors"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
)

// parses reports whether go/parser finds no error in the function at a prompt's end with what follows, but for the last line, in which a text that is cut off ends.
func parses(prompt, answer string) bool {
	function := prompt
	if at := strings.LastIndex("\n"+prompt, "\nfunc "); at >= 0 {
		function = prompt[at:]
	}
	text := "package p\n" + function + answer
	_, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		return err == nil
	}
	return list[0].Pos.Offset > strings.LastIndex(strings.TrimRight(text, "\n"), "\n")
}
