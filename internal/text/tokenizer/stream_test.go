package tokenizer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTextStream feeds random pieces of text and holds what comes out to the plain statement: a text
// ends before the first stop string that a piece completes; nothing of it, and nothing that could
// still become one, is out before.
func TestTextStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stop := rapid.SliceOfN(rapid.StringMatching(`[abc]{1,4}`), 0, 3).Draw(t, "stop")
		s := &Pieces{stop: stop}
		var all, out string
		for range 30 {
			piece := rapid.StringMatching(`[abc]{0,3}`).Draw(t, "piece")
			all += piece
			text, stopped := s.add(piece)
			out += text
			end := len(all)
			for _, w := range stop {
				if at := strings.Index(all, w); at >= 0 {
					end = min(end, at)
				}
			}
			if (stopped != "") != (end < len(all)) || !strings.HasPrefix(all[end:], stopped) {
				t.Fatalf("%q behind %q: stopped by %q", piece, all, stopped)
			}
			if stopped != "" {
				if out != all[:end] {
					t.Fatalf("%q came out of %q", out, all)
				}
				return
			}
			if held := all[len(out):]; out+s.held != all || held != "" && !begins(stop, held) {
				t.Fatalf("%q came out of %q, %q is held", out, all, s.held)
			}
		}
	})
}

func begins(stop []string, held string) bool {
	for _, w := range stop {
		if len(held) < len(w) && strings.HasPrefix(w, held) {
			return true
		}
	}
	return false
}
