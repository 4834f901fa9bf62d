package bench

import (
	"go/parser"
	"go/token"
	"math"
	"strings"
)

// parses reports whether an answer completes the last function of a prompt: go/parser takes the function up to the first brace at the beginning of a line. The answer of a prompt without
// a function begins one.
func parses(prompt, answer string) bool {
	source := "\n" + prompt + answer
	if at := strings.LastIndex("\n"+prompt, "\nfunc "); at >= 0 {
		source = source[at:]
	} else {
		source = "\n" + answer
	}
	function, _, closed := strings.Cut(source, "\n}")
	if !closed {
		return false
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+function+"\n}\n", parser.SkipObjectResolution)
	return err == nil
}

// kendall returns Kendall's tau-b of the places, which rise, and the passes that fixed them: 1 is from left to right, 0 where all were fixed in one pass.
func kendall(passes []int) float64 {
	n, concordant, discordant := len(passes), 0, 0
	for i := range passes {
		for _, later := range passes[i+1:] {
			switch {
			case passes[i] < later:
				concordant++
			case passes[i] > later:
				discordant++
			}
		}
	}
	pairs := float64(n*(n-1)) / 2
	if untied := float64(concordant + discordant); untied > 0 {
		return float64(concordant-discordant) / math.Sqrt(pairs*untied)
	}
	return 0
}
