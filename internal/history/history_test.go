package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var verbs = Verbs{"open": {About: 1, Names: "tokens seed"}, "next": {About: -1, Names: "tokens"}, "room": {Names: "seqs"}}

func TestParse(t *testing.T) {
	h, err := verbs.Parse("# two\n\nroom seqs=2\n open  1 tokens=-3 seed=7\nnext 1 2\n")
	want := History{
		{Verb: "room", Named: []Named{{"seqs", 2}}}, {Verb: "open", About: []int{1}, Named: []Named{{"tokens", -3}, {"seed", 7}}}, {Verb: "next", About: []int{1, 2}},
	}
	if d := cmp.Diff(want, h); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if d := cmp.Diff("room seqs=2\nopen 1 tokens=-3 seed=7\nnext 1 2\n", h.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := h[1].Get("seed", 1) + h[2].Get("tokens", 1); got != 8 {
		t.Errorf("the numbers are %d together, want 8", got)
	}
	for text, want := range map[string]string{
		"\nfork 1":                        `history: line 2: verb "fork" is not known`,
		"open":                            "history: line 1: open is about 1 numbers; it has 0",
		"open 1 2":                        "history: line 1: open is about 1 numbers; it has 2",
		"next":                            "history: line 1: next is about -1 numbers; it has 0",
		"next" + strings.Repeat(" 1", 17): "history: line 1: next is about -1 numbers; it has 17",
		"open one":                        `history: line 1: "one" is no number from -1048576 to 1048576`,
		"open 1 tokens=":                  `history: line 1: "" is no number from -1048576 to 1048576`,
		"open 1 seed=1048577":             `history: line 1: "1048577" is no number from -1048576 to 1048576`,
		"open seed=1 1":                   "history: line 1: number 1 stands behind a named one",
		"open 1 to=2":                     `history: line 1: open takes no "to"; it takes: tokens seed`,
		"open 1 seed=2 seed=2":            `history: line 1: open has "seed" twice`,
		strings.Repeat("room\n", 10_001):  "history: line 10001: more than 10000 operations",
		strings.Repeat(" ", 1<<20+1):      "history: a text of 1048577 bytes; 1048576 are possible",
	} {
		if _, err := verbs.Parse(text); fmt.Sprint(err) != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// TestShrink keeps the two operations that fail together, and of their numbers the least that do.
func TestShrink(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var h History
	for i := range 50 {
		h = append(h, Op{Verb: "open", About: []int{i}, Named: []Named{{"tokens", 50 + r.IntN(50)}, {"seed", r.IntN(9)}}})
	}
	at := func(h History, n int) int { return slices.IndexFunc(h, func(o Op) bool { return o.About[0] == n }) }
	fails := func(h History) bool {
		a, b := at(h, 17), at(h, 40)
		return a >= 0 && a < b && h[b].Get("tokens", 0) > 20
	}
	short := Shrink(h, fails)
	if d := cmp.Diff([]int{17, 40}, []int{short[0].About[0], short[len(short)-1].About[0]}); d != "" || len(short) != 2 || len(short[0].Named) > 0 || short[1].Get("tokens", 0) > 50 {
		t.Errorf("it is\n%s%s", short, d)
	}
	k := Kind{Run: func(h History) error {
		if len(h) > 1 {
			panic("two")
		}
		return errors.New("one")
	}}
	if got := fmt.Sprint(k.run(h), k.run(h[:1])); got != "panic: two one" {
		t.Errorf("errors %s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"# two\n\nroom seqs=2\nopen 1 tokens=-3 seed=7\nnext 1 2\n", "open", "next 1 1 1 tokens=9999999999999999999", "open 1 seed=1 seed=\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := verbs.Parse(text)
		if err != nil {
			return
		}
		again, err := verbs.Parse(h.String())
		if d := cmp.Diff(h, again); d != "" || err != nil {
			t.Errorf("what is written reads otherwise: %v\n%s", err, d)
		}
	})
}
