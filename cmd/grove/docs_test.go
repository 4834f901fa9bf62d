package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"grove/internal/command/arguments"
)

// TestDocs: the list of commands and the tables of flags in docs/cli.md are those of the program, and every command has a
// section. With GROVE_UPDATE=1 it writes them.
func TestDocs(t *testing.T) {
	const path = "../../docs/cli.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&commands{}, options()...)
	if err != nil {
		t.Fatal(err)
	}
	leaves, aliases := map[string]*kong.Node{}, regexp.MustCompile(` \(.*\)$`)
	var list strings.Builder
	for _, leaf := range parser.Model.Leaves(true) {
		name := aliases.ReplaceAllString(strings.TrimPrefix(leaf.FullPath(), "grove "), "")
		leaves[name] = leaf
		fmt.Fprintf(&list, "    %-27s %s\n", "grove "+name, strings.TrimSuffix(leaf.Help, "."))
	}
	found := map[string]bool{}
	marked := regexp.MustCompile(`(?s)<!-- (commands|flags: [a-z ]+) -->\n.*?<!-- end -->`)
	want := marked.ReplaceAllStringFunc(string(b), func(part string) string {
		mark := marked.FindStringSubmatch(part)[1]
		body := "\n" + list.String() + "\n"
		if name, ok := strings.CutPrefix(mark, "flags: "); ok {
			if leaves[name] == nil {
				t.Fatalf("%s has flags of %q, which is no command", path, name)
			}
			found[name], body = true, flagTable(leaves[name])
		}
		return "<!-- " + mark + " -->\n" + body + "<!-- end -->"
	})
	for name, leaf := range leaves {
		if len(leaf.Flags) > 0 && !found[name] || !strings.Contains(want, "\n## grove "+name+"\n") {
			t.Errorf("%s has no section of grove %s with its flags", path, name)
		}
	}
	switch {
	case want == string(b):
	case os.Getenv("GROVE_UPDATE") == "1":
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: run GROVE_UPDATE=1 go test -run TestDocs ./cmd/grove", path)
	}
}

// inline finds commands of grove within the sentences of documents.
var inline = regexp.MustCompile("`(?:[A-Z_]+=\\S+ )*(?:\\./)?grove ([^`\n]*)`")

// TestInlineCommands: the commands and flags that sentences of documents name are there.
func TestInlineCommands(t *testing.T) {
	parser, err := kong.New(&commands{}, options()...)
	if err != nil {
		t.Fatal(err)
	}
	pages, n := []string{"README.md", "CONTRIBUTING.md", "DESIGN.md", "CHANGELOG.md", "gopher/README.md", "bench/costs/README.md"}, 0
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			pages = append(pages, strings.TrimPrefix(filepath.ToSlash(name), "../../"))
		}
	}
	for _, page := range pages {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inline.FindAllStringSubmatch(string(text), -1) {
			n++
			if _, err := arguments.Rewrite(parser.Model, func() *kong.Application { return parser.Model }, strings.Fields(m[1]), io.Discard); err != nil {
				t.Errorf("%s: grove %s: %v", page, m[1], err)
			}
		}
	}
	if n < 100 {
		t.Errorf("the documents name %d commands", n)
	}
}

// flagTable returns the table of a command's flags.
func flagTable(command *kong.Node) string {
	var b strings.Builder
	b.WriteString("\n| flag | variable | default | meaning |\n|---|---|---|---|\n")
	for _, f := range command.Flags {
		if f.Hidden {
			continue
		}
		name := "`--" + f.Name
		if f.Short != 0 {
			name = "`-" + string(f.Short) + "`, " + name
		}
		if !f.IsBool() {
			name += " " + f.PlaceHolder
		}
		variable, value := f.Tag.Get("var"), f.Default
		if variable != "" {
			variable = "`" + variable + "`"
		}
		if f.Required {
			value = "required"
		}
		help := strings.TrimSuffix(strings.TrimSuffix(f.Help, " Default: "+f.Default+"."), ".")
		fmt.Fprintf(&b, "| %s` | %s | %s | %s |\n", strings.ReplaceAll(name, "|", `\|`), variable, value, strings.ReplaceAll(help, "|", `\|`))
	}
	return b.String() + "\n"
}
