package conversation

import (
	"strings"
	"testing"
	"time"
)

// TestRenderBounds renders texts that are made to be slow in a bounded time, and leaves those beyond the bounds.
func TestRenderBounds(t *testing.T) {
	for _, c := range []struct {
		name, of string
		n        int
		ok       bool
	}{
		{"brackets", "[", maxBlock, true},
		{"links", "[a](", maxBlock / 4, true},
		{"emphasis", "*a_ ", maxBlock / 4, true},
		{"stars", "**a", maxBlock / 3, true},
		{"backquotes", "`a", maxBlock / 2, true},
		{"tags", "<a ", maxBlock / 3, true},
		{"cells", "|a", maxBlock / 2, true},
		{"marks", "\u0301", maxBlock / 2, true},
		{"rules", "-", maxBlock, true},
		{"deep quotes", ">", maxDepth + 1, false},
		{"deep lists", "- ", maxDepth + 1, true}, // a rule
		{"deep items", "- 1. ", maxDepth, false},
		{"indentation", "  ", maxDepth + 1, false},
		{"too long", "a ", maxBlock/2 + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			text := strings.Repeat(c.of, c.n)
			if c.name == "deep items" || c.name == "indentation" {
				text += "x"
			}
			lines, ok := Render(text, 40)
			if ok != c.ok || ok && len(lines) == 0 {
				t.Errorf("%d lines, %v", len(lines), ok)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			} else {
				t.Log(took)
			}
		})
	}
}
