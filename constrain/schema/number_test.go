package schema

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"grove/constrain/regex"
)

// allTexts calls f with every text of at most n characters of an alphabet that begins like a number.
func allTexts(alphabet string, n int, f func(string)) {
	number := regexp.MustCompile(`^-?(0|[1-9]|0\.|[1-9][0-9]*\.?|(0|[1-9][0-9]*)\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]+)?[eE][+-]?[0-9]*)$|^-?$`)
	var walk func(string)
	walk = func(text string) {
		f(text)
		if len(text) < n && number.MatchString(text) {
			for _, b := range alphabet {
				walk(text + string(b))
			}
		}
	}
	walk("")
}

var (
	isJSON   = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	spelling = regexp.MustCompile(`^-?((0|[1-9][0-9]*)(\.[0-9]+)?|[1-9](\.(0|[0-9]{0,19}[1-9]))?[eE][+-]?[0-9]{1,3})$`)
)

// meets is the reference: exact arithmetic on what a text spells.
func meets(r NumberRange, text string) bool {
	return spelling.MatchString(text) && numberHolds(r, text, rat(text))
}

func numberHolds(r NumberRange, text string, value *big.Rat) bool {
	if r.Min != "" {
		if c := value.Cmp(rat(r.Min)); c < 0 || c == 0 && r.ExclusiveMin {
			return false
		}
	}
	if r.Max != "" {
		if c := value.Cmp(rat(r.Max)); c > 0 || c == 0 && r.ExclusiveMax {
			return false
		}
	}
	if r.Integer && (!value.IsInt() || r.NoFraction && strings.ContainsAny(text, ".eE")) {
		return false
	}
	return r.MultipleOf == "" || new(big.Rat).Quo(value, rat(r.MultipleOf)).IsInt()
}

func rat(text string) *big.Rat {
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return v
}

var ranges = []NumberRange{
	{Min: "0"}, {Max: "0"}, {Min: "0", ExclusiveMin: true}, {Max: "0", ExclusiveMax: true}, {Min: "-0.0", Max: "0e5"},
	{Min: "1"}, {Min: "1", ExclusiveMin: true}, {Max: "1"}, {Max: "1", ExclusiveMax: true}, {Min: "-1", Max: "1"},
	{Min: "0.1", Max: "0.25"}, {Min: "0.1", Max: "0.1"}, {Min: "0.1", Max: "0.1", ExclusiveMin: true}, {Min: "10", Max: "99"},
	{Min: "-25.5", Max: "-1.05"}, {Min: "9.9e1", Max: "2e2"}, {Min: "1e-3", Max: "2e-2", ExclusiveMax: true}, {Min: "12", Max: "11"},
	{Max: "-1e5"}, {Min: "1e-9"}, {Min: "5", Max: "1e2"}, {Max: "9.99"}, {Min: "0.01"}, {Min: "101.1", Max: "111"}, {Min: "5.5"},
	{Integer: true}, {Integer: true, NoFraction: true}, {Integer: true, Min: "-5", Max: "15"}, {Integer: true, Min: "0.5", Max: "1.5"},
	{Integer: true, Min: "0.1", Max: "0.9"}, {Integer: true, Min: "1", ExclusiveMin: true, Max: "1000000"},
	{MultipleOf: "1"}, {MultipleOf: "2"}, {MultipleOf: "7"}, {MultipleOf: "0.01"}, {MultipleOf: "0.25"}, {MultipleOf: "2.5"},
	{MultipleOf: "5e1"}, {MultipleOf: "12"}, {MultipleOf: "0.3", Min: "1", Max: "9"}, {MultipleOf: "3", Integer: true, Min: "10"},
	{MultipleOf: "1e-5"}, {MultipleOf: "125"}, {MultipleOf: "0.5", Integer: true}, {MultipleOf: "2.5", Integer: true}, {MultipleOf: "0.75", Integer: true, Max: "90"},
	{MultipleOf: "0.04", Integer: true, NoFraction: true}, {MultipleOf: "2.50", Integer: true, Min: "-5e3"}, {MultipleOf: "1.1", Max: "50"}, {MultipleOf: "0.123456789", Integer: true}, {MultipleOf: "1048577"}, {MultipleOf: "1e10"},
}

// huge reports whether the automaton of a divisor has too many states to look at them all.
func huge(r NumberRange) bool { return r.MultipleOf == "1e10" || len(r.MultipleOf) > 6 }

// TestAgainstArithmetic compares every range with exact arithmetic on all short texts, and its complement.
func TestAgainstArithmetic(t *testing.T) {
	texts := map[string]*big.Rat{}
	alphabet := "-0159.e"
	if os.Getenv("GROVE_LONG") != "" {
		alphabet = "-01259.e+"
	}
	allTexts(alphabet, 6, func(text string) {
		texts[text] = nil
		if spelling.MatchString(text) {
			texts[text] = rat(text)
		}
	})
	for _, r := range ranges {
		s := regex.New(regex.Limits{})
		id, err := NumberLanguage(s, r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		not := s.And(NumberSpellings(s), s.Not(id))
		n := 0
		for text, value := range texts {
			want := value != nil && numberHolds(r, text, value)
			if want {
				n++
			}
			if got := s.Matches(id, text); got != want {
				t.Fatalf("%+v: %q: %v", r, text, got)
			}
			if got := s.Matches(not, text); got != (value != nil && !want) {
				t.Fatalf("not %+v: %q: %v", r, text, got)
			}
		}
		if !huge(r) && !s.Contains(NumberSpellings(s), id) {
			t.Errorf("%+v: not all are spellings", r)
		}
		if s.IsEmpty(id) && n > 0 {
			t.Errorf("%+v: empty", r)
		}
		if s.Err() != nil {
			t.Errorf("%+v: %v", r, s.Err())
		}
	}
	t.Logf("%d texts, %d ranges", len(texts), len(ranges))
}

// TestLong compares long spellings at random, where brute force does not reach.
func TestLong(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	digits := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = "0000123456789999"[r.IntN(16)]
		}
		return string(out)
	}
	accepted := 0
	for range 1000 {
		c := ranges[r.IntN(len(ranges))]
		s := regex.New(regex.Limits{})
		id, err := NumberLanguage(s, c)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			text := strings.TrimLeft(digits(r.IntN(8)), "0") + "1"
			if r.IntN(2) == 0 {
				text += "." + digits(r.IntN(24)) + "5000"[:r.IntN(5)]
			}
			if r.IntN(2) == 0 {
				text = text[:1] + "." + digits(r.IntN(20)) + "1e" + []string{"", "-", "+"}[r.IntN(3)] + strconv.Itoa(r.IntN(40))
			}
			want := meets(c, text)
			if want {
				accepted++
			}
			if got := s.Matches(id, text); got != want {
				t.Fatalf("%+v: %q: %v", c, text, got)
			}
		}
	}
	if t.Logf("%d of 20000 accepted", accepted); accepted < 2000 {
		t.Errorf("only %d texts were accepted", accepted)
	}
}

// TestAlive asks of every prefix whether the automata know rightly that a number can still come of it: a machine that says so
// wrongly gives a derivative that is not empty and has no text.
func TestAlive(t *testing.T) {
	for _, r := range ranges {
		if huge(r) {
			continue
		}
		s := regex.New(regex.Limits{})
		id, err := NumberLanguage(s, r)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[regex.ID]bool{}
		var finds func(id regex.ID, depth int) bool
		finds = func(id regex.ID, depth int) bool { // breadth by depth: a text of at most depth more bytes
			if s.Nullable(id) {
				return true
			}
			for _, b := range []byte("0123456789.e+-") {
				if depth > 0 {
					if next := s.Derive(id, b); next != regex.Nothing && finds(next, depth-1) {
						return true
					}
				}
			}
			return false
		}
		var walk func(id regex.ID, text string)
		walk = func(id regex.ID, text string) {
			if seen[id] || len(text) > 4 {
				return
			}
			seen[id] = true
			found := false
			for depth := 0; depth < 8 && !found; depth++ {
				found = finds(id, depth)
			}
			if !found {
				t.Errorf("%+v: nothing follows %q", r, text)
			}
			for _, b := range []byte("01259.e-") {
				if next := s.Derive(id, b); next != regex.Nothing {
					walk(next, text+string(b))
				}
			}
		}
		if !s.IsEmpty(id) {
			walk(id, "")
		}
		if s.Err() != nil {
			t.Errorf("%+v: %v", r, s.Err())
		}
	}
}

func TestAll(t *testing.T) {
	s := regex.New(regex.Limits{})
	all, some := NumberAll(s), NumberSpellings(s)
	allTexts("-01259.e+", 6, func(text string) {
		if got, want := s.Matches(all, text), isJSON.MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
		if got, want := s.Matches(some, text), spelling.MatchString(text); got != want {
			t.Errorf("%q is a spelling: %v", text, got)
		}
	})
	if !s.Contains(all, some) {
		t.Error("a spelling is no number")
	}
}

func TestEqual(t *testing.T) {
	for _, text := range []string{"0", "-0", "0.00e5", "1", "1.0", "-1", "10e-1", "25", "0.25", "-2.5e-3", "100", "1e2", "99.5", "0.1e-2"} {
		s := regex.New(regex.Limits{})
		id, err := NumberEqual(s, text)
		if err != nil {
			t.Fatal(err)
		}
		allTexts("-01259.e+", 5, func(other string) {
			want := spelling.MatchString(other) && rat(other).Cmp(rat(text)) == 0
			if got := s.Matches(id, other); got != want {
				t.Errorf("%s = %s: %v", text, other, got)
			}
		})
	}
}

func TestSpellings(t *testing.T) {
	s := regex.New(regex.Limits{})
	for _, c := range []struct {
		r       NumberRange
		yes, no string
	}{
		{NumberRange{Min: "1e20"}, "1e20 1E+20 100000000000000000000 2.5e21 9e999", "99999999999999999999 9.9e19 1e-20 1e1000"},
		{NumberRange{Max: "1.7976931348623157e308"}, "1.7976931348623157e308 5 -1e308 1e+0308", "1.7976931348623158e308"},
		{NumberRange{Min: "0.1", Max: "0.3"}, "0.1 0.2 0.3 0.30000 1e-1 1.5E-01 2.0e-1", "0.30000000000000004 0.09999999999999999"},
		{NumberRange{MultipleOf: "0.0001"}, "0.0075 7.5e-3 1e-4 -0.0", "0.00751 1e-5 7.51e-3"},
		{NumberRange{MultipleOf: "0.1", Max: "10"}, "9.9 0.3 1.10", "0.35"},
		{NumberRange{Integer: true}, "1e20 1.5e1 15e0 1.50", ""},
		{NumberRange{Integer: true, Min: "9007199254740993", Max: "9007199254740993"}, "9007199254740993 9007199254740993.0 9.007199254740993e15", "9007199254740992"},
		{NumberRange{MultipleOf: "9007199254740993"}, "", ""},
	} {
		id, err := NumberLanguage(s, c.r)
		if err != nil {
			if !errors.Is(err, ErrNumberModulus) {
				t.Error(err)
			}
			continue
		}
		for _, text := range strings.Fields(c.yes) {
			if want := spelling.MatchString(text) && meets(c.r, text); s.Matches(id, text) != want {
				t.Errorf("%+v: %s: %v", c.r, text, !want)
			}
		}
		for _, text := range strings.Fields(c.no) {
			if s.Matches(id, text) {
				t.Errorf("%+v accepts %s", c.r, text)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		r    NumberRange
		want error
	}{
		{NumberRange{Min: "01"}, ErrNumberSyntax},
		{NumberRange{Max: "1."}, ErrNumberSyntax},
		{NumberRange{Min: "NaN"}, ErrNumberSyntax},
		{NumberRange{Min: "1e1001"}, ErrNumberDigits},
		{NumberRange{Min: "1e-99999999999999999999"}, ErrNumberDigits},
		{NumberRange{Max: strings.Repeat("9", 1001)}, ErrNumberDigits},
		{NumberRange{MultipleOf: "0"}, ErrNumberDivisor},
		{NumberRange{MultipleOf: "-1"}, ErrNumberDivisor},
		{NumberRange{MultipleOf: "1099511627777"}, ErrNumberModulus},
		{NumberRange{MultipleOf: "0.12345678901234"}, ErrNumberModulus},
	} {
		if _, err := NumberLanguage(regex.New(regex.Limits{}), c.r); !errors.Is(err, c.want) {
			t.Errorf("%.60s: %v, want %v", fmt.Sprint(c.r), err, c.want)
		}
	}
	if _, err := NumberEqual(regex.New(regex.Limits{}), "1x"); !errors.Is(err, ErrNumberSyntax) {
		t.Error(err)
	}
}

func FuzzLanguage(f *testing.F) {
	f.Add("1", "1e2", "0.5", "42.0", true)
	f.Add("-1e-3", "", "3", "-0", false)
	f.Fuzz(func(t *testing.T, low, high, of, text string, integer bool) {
		if len(low)+len(high)+len(of)+len(text) > 200 {
			return
		}
		s := regex.New(regex.Limits{})
		r := NumberRange{Min: low, Max: high, MultipleOf: of, Integer: integer}
		id, err := NumberLanguage(s, r)
		if err != nil || r == (NumberRange{}) {
			return
		}
		for _, bound := range []string{low, high, of} {
			if _, ok := new(big.Rat).SetString(bound); !ok && bound != "" {
				return // package big bounds exponents, even those of zero
			}
		}
		got := s.Matches(id, text)
		if s.Err() == nil && got != meets(r, text) {
			t.Errorf("%+v: %q: %v", r, text, got)
		}
		if same, err := NumberEqual(s, low); err == nil && s.Err() == nil && spelling.MatchString(text) {
			if got := s.Matches(same, text); s.Err() == nil && got != (rat(text).Cmp(rat(low)) == 0) {
				t.Errorf("%q = %q: %v", text, low, got)
			}
		}
	})
}
