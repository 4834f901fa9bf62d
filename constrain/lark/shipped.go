package lark

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed grammars/*.lark
var grammars embed.FS

// Names returns the names of the grammars that come with grove, in order.
func Names() (names []string) {
	files, err := grammars.ReadDir("grammars")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), path.Ext(f.Name())))
	}
	return names
}

// Shipped returns the text of a grammar that comes with grove.
func Shipped(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("lark: no grammar is called %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return grammars.ReadFile("grammars/" + name + ".lark")
}
