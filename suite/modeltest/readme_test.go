package modeltest

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"grove/model"
	"grove/weights/gguf"
)

// TestReadme holds README's table of architectures to what the tests compare: each row has the architectures of one kind of proof,
// and each architecture is in one row at least.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var proved []string
	for begin, archs := range map[string][]string{
		"logits of llama.cpp":  ofPeer(),
		"logits in float64":    ofGoldens(t),
		"our own reading":      ofOracle(),
		"another architecture": slices.Collect(maps.Keys(twins)),
	} {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(begin) + `[^|]*\|([^|]*)\|$`).FindSubmatch(text)
		if row == nil {
			t.Errorf("README has no row that begins with %q", begin)
			continue
		}
		var named []string
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllSubmatch(row[1], -1) {
			named = append(named, string(name[1]))
		}
		slices.Sort(archs)
		if archs = slices.Compact(archs); !slices.Equal(named, archs) {
			t.Errorf("README: row %q has\n%s, want\n%s", begin, strings.Join(named, " "), "`"+strings.Join(archs, "`, `")+"`")
		}
		proved = append(proved, archs...)
	}
	for _, name := range model.Names() {
		if !slices.Contains(proved, name) {
			t.Errorf("architecture %s is compared with nothing", name)
		}
	}
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
