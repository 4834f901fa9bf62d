package lint

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGroups: the folders that a group of .ci/long covers are there, each group has a function, and CONTRIBUTING.md sends nobody to a group or a folder that
// does not exist.
func TestGroups(t *testing.T) {
	root := os.DirFS("../..")
	read := func(name string) string {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	exists := func(place, name string) {
		if _, err := fs.Stat(root, name); err != nil {
			t.Errorf("%s: there is no %s", place, name)
		}
	}
	long, groups := read(".ci/long"), map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^([a-z0-9]+) \| ([^|]+) \| `).FindAllStringSubmatch(long, -1) {
		groups[row[1]] = true
		if !strings.Contains(long, "\ngroup_"+row[1]+"() {") {
			t.Errorf(".ci/long: group %s has no function", row[1])
		}
		for _, folder := range strings.Fields(row[2]) {
			if strings.Contains(folder, "/") || folder == "server" || folder == "deploy" || folder == "lab" {
				exists(".ci/long", folder)
			} else if !strings.HasPrefix(row[2], "every folder") && folder != "and" && folder != "the" && folder != "root" && folder != "go.mod" {
				t.Errorf(".ci/long: group %s covers %q; write the folder whole", row[1], folder)
			}
		}
	}
	if len(groups) < 10 {
		t.Fatalf(".ci/long: %d groups are read; its form has changed", len(groups))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| ([^|]+) \\| (`[^|]*\\.ci/long[^|]*) \\|$").FindAllStringSubmatch(read("CONTRIBUTING.md"), -1) {
		for _, code := range regexp.MustCompile("`([a-z_/]+)`").FindAllStringSubmatch(row[1], -1) {
			if code[1] != "_" {
				exists("CONTRIBUTING.md", code[1])
			}
		}
		for _, call := range regexp.MustCompile("\\.ci/long([a-z0-9 ]*)`").FindAllStringSubmatch(row[2], -1) {
			for _, name := range strings.Fields(call[1]) {
				if !groups[name] {
					t.Errorf("CONTRIBUTING.md: .ci/long has no group %s", name)
				}
			}
		}
	}
}
