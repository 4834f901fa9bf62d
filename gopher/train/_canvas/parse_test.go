package main

import "testing"

// TestParses: an error counts unless it is in the last line, where the text is cut off.
func TestParses(t *testing.T) {
	const prompt = "}\n\nfunc a() {\n}\n\nfunc b(x int) int {\n"
	for answer, want := range map[string]bool{
		"\treturn x\n}\n":             true,
		"\tif x > 0 {\n\t\treturn":    true,
		"\tfor i := range x {\n\t\ta": true,
		"\treturn x x\n}\n":           false,
		"\t)\n\treturn x\n":           false,
		"\t\"a\n\treturn x\n":         false,
		"\treturn x x":                true, // the last line
		"":                            true,
	} {
		if got := parses(prompt, answer); got != want {
			t.Errorf("%q: %v, want %v", answer, got, want)
		}
	}
}
