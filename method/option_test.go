package method

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// optioned is a method with the values that it was opened with.
type optioned struct {
	Method
	values []int
}

// TestTakes reads options: whole numbers, hundredths, and one that the method chooses.
func TestTakes(t *testing.T) {
	info := Info{Name: "test"}.Takes([]Option{
		{Name: "exit", Is: "L, a layer", Least: 1, Most: math.MaxInt},
		{Name: "depth", Is: "N, the drafts", Usual: 8, Least: 1, Most: 25},
		{Name: "h", Is: "P, a probability", Usual: 70, Least: -100, Most: 100, Hundredths: true},
	}, func(_ Env, values []int) (Method, error) { return optioned{values: values}, nil })
	if m, err := info.Open(Env{}); err != nil || !slices.Equal(m.(optioned).values, []int{0, 8, 70}) {
		t.Errorf("without an option: %v, %v", m, err)
	}
	if diff := cmp.Diff("exit=L+depth=8+h=0.7", info.Options); diff != "" {
		t.Error(diff)
	}
	for option, want := range map[string]struct {
		spelling string
		values   []int
	}{
		"depth=04":              {"depth=4+h=0.7", []int{0, 4, 70}},
		"h=0.30+exit=3":         {"exit=3+depth=8+h=0.3", []int{3, 8, 30}},
		"h=-0":                  {"depth=8+h=0", []int{0, 8, 0}},
		"h=0.29+depth=1+exit=2": {"exit=2+depth=1+h=0.29", []int{2, 1, 29}},
		"h=-1":                  {"depth=8+h=-1", []int{0, 8, -100}},
	} {
		open, spelling, err := info.WithOption(option)
		if err != nil || spelling != want.spelling {
			t.Errorf("%s: %s, %v", option, spelling, err)
			continue
		}
		if m, err := open(Env{}); err != nil || !slices.Equal(m.(optioned).values, want.values) {
			t.Errorf("%s: %v, %v", option, m, err)
		}
	}
	const use = "use exit=L, a layer, from 1, depth=N, the drafts, from 1 to 25, and h=P, a probability, from -1 to 1 in hundredths, with a + between them"
	for _, option := range []string{
		"", "exit", "exit=", "exit=0", "exit=-1", "exit=x", "depth=0", "depth=26", "depth=2.0", "exit=1+exit=2", "depth=3+depth=3", "depth=1+", "layers=3", "exit=99999999999999999999",
		"h", "h=", "h=2", "h=0.301", "h=NaN", "h=Inf", "h=-1.01", "h=1e400", "h=1e300",
	} {
		_, _, err := info.WithOption(option)
		if err == nil {
			t.Errorf("%q is taken", option)
		} else if diff := cmp.Diff(`option "`+option+`" is not known; `+use, err.Error()); diff != "" {
			t.Error(diff)
		}
	}
	one := Info{Name: "test"}.Takes([]Option{{Name: "n", Is: "N, the drafts", Usual: 5, Least: 1, Most: 9}}, nil)
	if _, _, err := one.WithOption("m=3"); err == nil || err.Error() != `option "m=3" is not known; use n=N, the drafts, from 1 to 9` {
		t.Error(err)
	}
}
