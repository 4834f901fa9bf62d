package text

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
)

func ids(s string) (all []token.ID) {
	for _, c := range s {
		all = append(all, token.ID(c))
	}
	return all
}

func guidedDrafts(t *testing.T, x *growtest.Text) (s string) {
	t.Helper()
	for _, id := range growtest.IDs(x.Draft(t, 128)) {
		s += string(rune(id))
	}
	return s
}

// TestGuidedDraft follows answers round by round: the draft, and the tokens that are then committed.
func TestGuidedDraft(t *testing.T) {
	long := ""
	for range 30 {
		long += "0123456789"
	}
	for _, c := range []struct {
		name, source string
		rounds       [][2]string // the draft, and the tokens then
	}{
		{"an edit", "abcde", [][2]string{{"abcde", "abX"}, {"", "d"}, {"e", "e"}, {"", ""}}},
		{"a copy", "abc", [][2]string{{"abc", "abc"}, {"", "x"}, {"", "a"}, {"bc", ""}}},
		{"no prediction", "", [][2]string{{"", "abc"}, {"", ""}}},
		{"nothing of it", "abc", [][2]string{{"abc", "x"}, {"", "yz"}, {"", ""}}},
		// a occurs twice: alone it tells nothing, behind X it does
		{"ambiguous, then not", "pabXacd", [][2]string{{"pabXacd", "z"}, {"", "a"}, {"", "b"}, {"Xacd", ""}}},
		{"two tokens decide", "pabqabXac", [][2]string{{"pabqabXac", "z"}, {"", "X"}, {"ac", "z"}, {"", "q"}, {"abXac", "zb"}, {"", ""}}},
		{"three tokens do not", "abcxabcy", [][2]string{{"abcxabcy", "zabc"}, {"", ""}}},
		{"on the way they do", "abcxabcy", [][2]string{{"abcxabcy", "abc"}, {"xabcy", "xabc"}, {"y", ""}}},
		{"an omission", "abcdef", [][2]string{{"abcdef", "ae"}, {"f", ""}}},
		{"a cap", long, [][2]string{{long[:guidedMost], ""}}},
	} {
		d, err := guided{}.NewDrafter(nil)
		if err != nil {
			t.Fatal(err)
		}
		x := growtest.Text{Drafter: d}
		for _, predicted := range []bool{true, false, true} { // nothing is left of the text before
			prompt := "question"
			if x.Prediction, x.SourceLen = ids(c.source), 0; !predicted { // the same text, as the source of an encoder-decoder
				x.Prediction, x.SourceLen, prompt = nil, len(c.source), c.source+"?"
			}
			x.Begin(t, ids(prompt)...)
			for i, round := range c.rounds {
				if got := guidedDrafts(t, &x); !cmp.Equal(got, round[0]) {
					t.Errorf("%s, round %d: %q, want %q", c.name, i, got, round[0])
				}
				x.Add(ids(round[1])...)
			}
		}
	}
}
