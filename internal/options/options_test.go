package options

import (
	"fmt"
	"strings"
	"testing"
)

// TestOptions takes the values of some texts, in which each has its usual value, or a fault that is named.
func TestOptions(t *testing.T) {
	for _, c := range []struct{ text, want, fault string }{
		{"", "4 0.5 red", ""},
		{"n=7", "7 0.5 red", ""},
		{" n = 1 , x=1,word=blue,", "1 1 blue", ""},
		{"n=0", "", `n is "0"; it must be a whole number from 1 to 9`},
		{"n=1.5", "", `n is "1.5"`},
		{"n=99999999999999999999", "", `n is "99999999999999999999"`},
		{"x=NaN", "", `x is "NaN"; it must be a number from 0 to 1`},
		{"x=1e9", "", `x is "1e9"`},
		{"word=green", "", `word is "green"; it must be one of red, blue`},
		{"n", "", `option "n" is no name=value that is given once`},
		{"n=1,n=2", "", `option "n=2" is no name=value that is given once`},
		{"=3", "", `option "=3" is no name=value`},
		{"n=,x=2", "", `n is ""`},
		{"z=1,y=1", "", `option "y" is not known`},
		{strings.Repeat("a", 1000) + "=1", "", `option "` + strings.Repeat("a", 40) + `" is not known`},
	} {
		o := Parse(c.text, ",")
		got := fmt.Sprint(o.Int("n", 4, 1, 9), o.Float("x", 0.5, 0, 1), " ", o.Word("word", "red", "blue"))
		switch err := o.Err(); {
		case c.fault == "" && (err != nil || got != c.want):
			t.Errorf("%q: %s, error %v; want %s", c.text, got, err, c.want)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%q: error %v, want %s", c.text, err, c.fault)
		}
	}
}

// TestHas: a value that was taken is not there any more, and another sign stands between values.
func TestHas(t *testing.T) {
	o := Parse("a=1+b=2,3", "+")
	if !o.Has("a") || o.Int("a", 0, 0, 9) != 1 || o.Has("a") || !o.Has("b") {
		t.Error("a is there once")
	}
	if got := o.Word("b", "x", "2,3"); got != "2,3" || o.Err() != nil {
		t.Errorf("b is %q, error %v", got, o.Err())
	}
}

// FuzzOptions reads any text: the values lie within their limits, whatever it says.
func FuzzOptions(f *testing.F) {
	f.Add("n=3,x=0.25,word=blue")
	f.Add("n=,=,x==1,word")
	f.Fuzz(func(t *testing.T, text string) {
		o := Parse(text, ",")
		n, x, word := o.Int("n", 4, 1, 9), o.Float("x", 0.5, 0, 1), o.Word("word", "red", "blue")
		if n < 1 || n > 9 || !(x >= 0 && x <= 1) || word != "red" && word != "blue" {
			t.Errorf("%q: %d, %g, %s", text, n, x, word)
		}
		if err := o.Err(); err != nil && len(err.Error()) > 400 {
			t.Errorf("%q: an error of %d bytes", text, len(err.Error()))
		}
	})
}

// TestText reads texts, with quotes and without.
func TestText(t *testing.T) {
	for given, want := range map[string]string{``: "usual", `t=a b`: "a b", `t="a "`: "a ", `t="\n\x2c\""`: "\n,\"", `t=a"`: `a"`} {
		if o := Parse(given, ","); o.Text("t", "usual") != want || o.Err() != nil {
			t.Errorf("%s: error %v, want %q", given, o.Err(), want)
		}
	}
	for _, bad := range []string{`t="a`, `t="`, `t="\q"`} {
		if o := Parse(bad, ","); o.Text("t", "") != "" || o.Err() == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
