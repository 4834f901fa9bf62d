package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"grove/internal/command/flags"
)

// TestDocs: the list of commands, the table of common flags and the tables of flags in docs/cli.md are those of the program, and every
// command has a section. With GROVE_UPDATE=1 it writes them.
func TestDocs(t *testing.T) {
	const path = "../../docs/cli.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&commands{}, program.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	rows, aliases := map[string][]flagRow{}, regexp.MustCompile(` \(.*\)$`)
	var list strings.Builder
	var order []string
	for _, leaf := range parser.Model.Leaves(true) {
		name := aliases.ReplaceAllString(strings.TrimPrefix(leaf.FullPath(), "grove "), "")
		rows[name], order = flagRows(leaf), append(order, name)
		fmt.Fprintf(&list, "    %-27s %s\n", "grove "+name, strings.TrimSuffix(leaf.Help, "."))
	}
	common := commonRows(rows, order)
	found := map[string]bool{}
	marked := regexp.MustCompile(`(?s)<!-- (commands|common flags|flags: [a-z ]+) -->\n.*?<!-- end -->`)
	want := marked.ReplaceAllStringFunc(string(b), func(part string) string {
		mark := marked.FindStringSubmatch(part)[1]
		body := "\n" + list.String() + "\n"
		if mark == "common flags" {
			found[mark], body = true, flagTable(common)
		} else if name, ok := strings.CutPrefix(mark, "flags: "); ok {
			if rows[name] == nil {
				t.Fatalf("%s has flags of %q, which is no command or has none", path, name)
			}
			found[name], body = true, ownFlags(rows[name], common)
		}
		return "<!-- " + mark + " -->\n" + body + "<!-- end -->"
	})
	if !found["common flags"] {
		t.Errorf("%s has no table of common flags", path)
	}
	for name, flags := range rows {
		if len(flags) > 0 && !found[name] || !strings.Contains(want, "\n## grove "+name+"\n") {
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
	parser, err := kong.New(&commands{}, program.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	pages, n := []string{"README.md", "CONTRIBUTING.md", "DESIGN.md", "CHANGELOG.md", "internal/gopher/README.md", "bench/costs/README.md"}, 0
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
			if _, err := flags.RewriteArguments(parser.Model, func() *kong.Application { return parser.Model }, strings.Fields(m[1]), io.Discard); err != nil {
				t.Errorf("%s: grove %s: %v", page, m[1], err)
			}
		}
	}
	if n < 100 {
		t.Errorf("the documents name %d commands", n)
	}
}

// flagRow is a flag of a command: its name with hyphens, and its row in a table.
type flagRow struct{ name, text string }

// flagRows returns the rows of a command's flags.
func flagRows(command *kong.Node) (rows []flagRow) {
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
		rows = append(rows, flagRow{"--" + f.Name, fmt.Sprintf("| %s` | %s | %s | %s |\n", strings.ReplaceAll(name, "|", `\|`), variable, value, strings.ReplaceAll(help, "|", `\|`))})
	}
	return rows
}

// commonRows returns the rows that two commands have, each once, in the order of the commands: of rows with one name that differ, the one that
// most commands have.
func commonRows(commands map[string][]flagRow, order []string) (common []flagRow) {
	count, best := map[flagRow]int{}, map[string]flagRow{}
	for _, command := range order {
		for _, r := range commands[command] {
			count[r]++
		}
	}
	for _, command := range order {
		for _, r := range commands[command] {
			if old, ok := best[r.name]; !ok || count[r] > count[old] {
				best[r.name] = r
			}
		}
	}
	for _, command := range order {
		for _, r := range commands[command] {
			if count[r] > 1 && best[r.name] == r {
				common, best[r.name] = append(common, r), flagRow{}
			}
		}
	}
	return common
}

// ownFlags names the flags of a command that are common ones, and has the table of the others.
func ownFlags(rows, common []flagRow) string {
	var names []string
	var own []flagRow
	for _, r := range rows {
		if slices.Contains(common, r) {
			names = append(names, "`"+r.name+"`")
		} else {
			own = append(own, r)
		}
	}
	text := ""
	if len(names) > 0 {
		text = "[Common flags](#common-flags): " + strings.Join(names, ", ") + ".\n"
	}
	if len(names) > 0 && len(own) > 0 {
		text += "\n"
	}
	if len(own) > 0 {
		text += flagTable(own)
	}
	return text
}

// flagTable returns a table of flags.
func flagTable(rows []flagRow) string {
	var b strings.Builder
	b.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
	for _, r := range rows {
		b.WriteString(r.text)
	}
	return b.String()
}

// TestCommonFlags: which rows are common, and what a command's section has.
func TestCommonFlags(t *testing.T) {
	json, quiet, other, own := flagRow{"--json", "a\n"}, flagRow{"--quiet", "b\n"}, flagRow{"--quiet", "c\n"}, flagRow{"--own", "d\n"}
	all := map[string][]flagRow{"one": {json, other}, "two": {json, quiet}, "three": {quiet, own}}
	common := commonRows(all, []string{"one", "two", "three"})
	if want := []flagRow{json, quiet}; !slices.Equal(common, want) {
		t.Errorf("common: %q, want %q", common, want)
	}
	for name, want := range map[string]string{"one": "`--json`.\n\n" + flagTable([]flagRow{other}), "two": "`--json`, `--quiet`.\n", "three": "`--quiet`.\n\n" + flagTable([]flagRow{own})} {
		if got := ownFlags(all[name], common); got != "[Common flags](#common-flags): "+want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
