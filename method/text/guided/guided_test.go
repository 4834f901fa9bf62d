package guided

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/method"
	"grove/text/token"
)

func ids(s string) (all []token.ID) {
	for _, c := range s {
		all = append(all, token.ID(c))
	}
	return all
}

func guesses(t *testing.T, d method.Drafter) (s string) {
	t.Helper()
	tree := method.NewTree(128, 1000)
	tree.Reset(128, method.NewRates(1))
	if err := d.Draft(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	for _, n := range tree.Nodes() {
		s += string(rune(n.ID))
	}
	return s
}

// TestDraft follows answers round by round: what the drafter guesses, and what then comes.
func TestDraft(t *testing.T) {
	long := ""
	for range 30 {
		long += "0123456789"
	}
	for _, c := range []struct {
		name, source string
		rounds       [][2]string // what is guessed, and then comes
	}{
		{"an edit", "abcde", [][2]string{{"abcde", "abX"}, {"", "d"}, {"e", "e"}, {"", ""}}},
		{"a copy", "abc", [][2]string{{"abc", "abc"}, {"", "x"}, {"", "a"}, {"bc", ""}}},
		{"no prediction", "", [][2]string{{"", "abc"}, {"", ""}}},
		{"nothing of it", "abc", [][2]string{{"abc", "x"}, {"", "yz"}, {"", ""}}},
		// a stands twice: alone it tells nothing, behind X it does
		{"ambiguous, then not", "pabXacd", [][2]string{{"pabXacd", "z"}, {"", "a"}, {"", "b"}, {"Xacd", ""}}},
		{"two tokens decide", "pabqabXac", [][2]string{{"pabqabXac", "z"}, {"", "X"}, {"ac", "z"}, {"", "q"}, {"abXac", "zb"}, {"", ""}}},
		{"three tokens do not", "abcxabcy", [][2]string{{"abcxabcy", "zabc"}, {"", ""}}},
		{"on the way they do", "abcxabcy", [][2]string{{"abcxabcy", "abc"}, {"xabcy", "xabc"}, {"y", ""}}},
		{"an omission", "abcdef", [][2]string{{"abcdef", "ae"}, {"f", ""}}},
		{"a cap", long, [][2]string{{long[:most], ""}}},
	} {
		d, err := guided{}.NewDrafter()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // nothing is left of the text before
			if err := d.Begin(method.Text{Prompt: ids("question"), Prediction: ids(c.source)}); err != nil {
				t.Fatal(err)
			}
			for i, round := range c.rounds {
				if got := guesses(t, d); !cmp.Equal(got, round[0]) {
					t.Errorf("%s, round %d: %q, want %q", c.name, i, got, round[0])
				}
				d.Extend(ids(round[1]))
			}
		}
	}
}
