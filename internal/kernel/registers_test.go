package kernel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRegisters holds that functions for CPUs without AVX-512 use the sixteen vector registers that those have. The generator assigns
// registers from 16 where a function needs more, and no test of a machine with AVX-512 notices.
func TestRegisters(t *testing.T) {
	files, err := filepath.Glob("z_*_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("*/z_*_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	begins := regexp.MustCompile(`^TEXT ·(\w+)`)
	wide := regexp.MustCompile(`\b(Z\d+|[XY](1[6-9]|2\d|3[01])|K[1-7])\b`)
	function, functions := "", 0
	for _, file := range append(files, below...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if m := begins.FindStringSubmatch(line); m != nil {
				if function = ""; strings.HasSuffix(m[1], "AVX2") || strings.HasSuffix(m[1], "VNNI256") {
					function = m[1]
					functions++
				}
			}
			if register := wide.FindString(line); function != "" && register != "" {
				t.Errorf("%s: %s uses %s, which needs AVX-512", file, function, register)
				function = ""
			}
		}
	}
	if functions < 50 {
		t.Errorf("%d functions for AVX2 found, want at least 50", functions)
	}
}
