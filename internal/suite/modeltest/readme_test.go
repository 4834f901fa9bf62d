package modeltest

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/model"
	"grove/internal/weights/gguf"
	"grove/internal/weights/hf"
)

// TestReadme holds the lists of the documents to the program: the table of docs/architectures.md to what the tests compare, where each row has
// those of one kind of proof and each architecture is in one row at least, and the classes of docs/cli.md to those that open. With
// GROVE_UPDATE=1 it writes them.
func TestReadme(t *testing.T) {
	rows := map[string][]string{
		"logits of llama.cpp":  ofPeer(),
		"logits in float64":    ofGoldens(t),
		"our own reading":      ofOracle(),
		"another architecture": slices.Collect(maps.Keys(twins)),
	}
	bits := map[string]bool{}
	for _, s := range subjects() {
		bits[s.spec.Arch] = true
	}
	for _, s := range laterArchs {
		bits[s.Arch] = true
	}
	for _, name := range slices.Concat(encoders, ofPeer(), ofGoldens(t), slices.Collect(maps.Keys(twins))) {
		bits[name] = true
	}
	for _, name := range model.Names() {
		if !slices.ContainsFunc(slices.Collect(maps.Values(rows)), func(row []string) bool { return slices.Contains(row, name) }) {
			t.Errorf("architecture %s is compared with nothing", name)
		}
		if !bits[name] {
			t.Errorf("the equalities of bits of architecture %s are checked by no test: add it to laterArchs, or to encoders", name)
		}
	}
	hold(t, "../../../docs/architectures.md", func(text string) string {
		for begin, archs := range rows {
			slices.Sort(archs)
			text = replace(t, text, `(?m)^(\| `+regexp.QuoteMeta(begin)+`[^|]*\| )[^|]*( \|)$`, "`"+strings.Join(slices.Compact(archs), "`, `")+"`")
		}
		return text
	})
	hold(t, "../../../docs/cli.md", func(text string) string {
		var list strings.Builder
		line, letter := 0, byte('A') // a line for each letter, or several: additions of two changes seldom meet
		for i, name := range hf.Classes() {
			if line += len(name) + 2; line > 150 || name[0] != letter {
				list.WriteByte('\n')
				line, letter = len(name)+2, name[0]
			} else if i > 0 {
				list.WriteByte(' ')
			}
			list.WriteString(name + ",")
		}
		return replace(t, text, `(?s)(<!-- classes -->\n\n).*?(\n\n<!-- end -->)`, strings.TrimSuffix(list.String(), ","))
	})
}

// hold compares a document with what it should be, or writes that.
func hold(t *testing.T, path string, change func(text string) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := change(string(text))
	switch {
	case want == string(text):
	case os.Getenv("GROVE_UPDATE") == "1":
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: run GROVE_UPDATE=1 go test -run TestReadme ./internal/suite/modeltest\n%s", path, cmp.Diff(strings.Split(want, "\n"), strings.Split(string(text), "\n")))
	}
}

// replace puts a list between what the two groups of an expression match, which must match once.
func replace(t *testing.T, text, expr, list string) string {
	t.Helper()
	re := regexp.MustCompile(expr)
	if n := len(re.FindAllStringIndex(text, -1)); n != 1 {
		t.Fatalf("%s matches at %d places", expr, n)
	}
	return re.ReplaceAllString(text, "${1}"+list+"${2}")
}

// ofPeer returns the architectures of archs.
func ofPeer() (names []string) {
	for name := range archs {
		names = append(names, name[:strings.LastIndex(name, "-")])
	}
	return names
}

// ofGoldens returns the architectures of golden files.
func ofGoldens(t *testing.T) (names []string) {
	for _, name := range Goldens {
		f, err := gguf.Open(filepath.Join("testdata", name+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		arch, _, _ := f.String("general.architecture")
		names = append(names, arch)
		f.Close()
	}
	return names
}

// ofOracle returns the architectures that are compared with the oracle.
func ofOracle() (names []string) {
	for _, s := range oracleSpecs {
		names = append(names, s.Arch)
	}
	for _, d := range decoders {
		names = append(names, d.spec.Arch)
	}
	return names
}
