package regex

import (
	"errors"
	"strings"
	"testing"
)

func TestECMA(t *testing.T) {
	long := strings.Repeat("a", 300)
	for _, c := range []struct {
		source  string
		yes, no []string
	}{
		{``, []string{"", "a", "\n"}, []string{"\xff", "\xc3"}},
		{`a`, []string{"a", "xa", "ax", "xax"}, []string{"", "x", "A"}},
		{`^a|b$`, []string{"a", "ax", "b", "xb", "ab"}, []string{"xa", "bx", ""}},
		{`(^|x)a`, []string{"a", "ab", "bxa"}, []string{"ba", "ya", "bxya"}},
		{`a(x|$)`, []string{"a", "ba", "axb"}, []string{"ab", "ayx"}},
		{`^$`, []string{""}, []string{"a", "\n"}},
		{`$^`, []string{""}, []string{"a"}},
		{`a^`, nil, []string{"", "a", "aa"}},
		{`^a$`, []string{"a"}, []string{"a\n", "\na", "aa", ""}},
		{`^.$`, []string{"a", "é", "𝒳", "\u0085", "\x00"}, []string{"\n", "\r", "\u2028", "\u2029", "", "ab"}},
		{`^\d$`, []string{"0", "9"}, []string{"٣", "a"}},
		{`^\w$`, []string{"_", "Z"}, []string{"é", "-"}},
		{`^\W$`, []string{"é", "-"}, []string{"_", "Z"}},
		{`^\s$`, []string{" ", "\ufeff", "\u2029", "\u00a0", "\u3000"}, []string{"\u200b", "\u0085", "a", "\u180e"}},
		{`^\S$`, []string{"\u200b", "\u0085"}, []string{" ", "\ufeff"}},
		{`^[^]$`, []string{"\n", "a"}, []string{"", "ab"}},
		{`[]`, nil, []string{"", "a"}},
		{`^\-\_[a\-z]$`, []string{"-_a", "-_-", "-_z"}, []string{"-_b"}},
		{`^[\w-.]$`, []string{"a", "-", "."}, []string{"/"}},
		{`^{a}$`, []string{"{a}"}, []string{"a"}},
		{`^x{,5}]$`, []string{"x{,5}]"}, []string{"x]"}},
		{`^a{2}$`, []string{"aa"}, []string{"a", "aaa"}},
		{`^a{2,}$`, []string{"aa", long}, []string{"a"}},
		{`^(a{2,3}){2}$`, []string{"aaaa", "aaaaaa"}, []string{"aaa", "aaaaaaa"}},
		{`^a??b*?c+?$`, []string{"c", "abbcc"}, []string{"ab", "aac"}},
		{`^\x41\u0042\u{43}\cA\0$`, []string{"ABC\x01\x00"}, []string{"ABC"}},
		{`^\uD83D\uDC32*$`, []string{"🐲", "🐲🐲", ""}, []string{"🐉"}},
		{`^[\uD83D\uDC32]$`, []string{"🐲"}, []string{"🐉"}},
		{`^\p{Letter}\p{Lu}\p{Script=Greek}$`, []string{"aAα", "éÉΩ"}, []string{"aaα", "1Aα"}},
		{`^\p{Alphabetic}\P{ASCII}$`, []string{"aé"}, []string{"ae"}},
		{`^(?=.{2,3}$)[ab]*$`, []string{"ab", "aba"}, []string{"a", "abab", "abc"}},
		{`^(?!.*foo).*bar`, []string{"bar", "xbar"}, []string{"foobar", "barfoo", "xfoo"}},
		{`a(?=b)`, []string{"ab", "xabx"}, []string{"a", "ac"}},
		{`a(?!b)`, []string{"a", "ac", "abac"}, []string{"ab"}},
		{`^((?!foo).)*$`, []string{"", "fo", "bar"}, []string{"foo", "xfoox", "\n"}},
		{`^(?:(?!foo).)*`, []string{"", "foo"}, nil},
		{`\bfoo\b`, []string{"foo", "a foo b", "-foo-"}, []string{"xfoo", "foox", "foo_"}},
		{`\Bfoo`, []string{"xfoo"}, []string{"foo", " foo"}},
		{`(?<=a)b`, []string{"ab"}, []string{"b", "cb"}},
		{`(?<!a)b`, []string{"b", "cb"}, []string{"ab", "aab"}},
		{`(?<=^|,)b`, []string{"b", "a,b"}, []string{"ab", "ab,"}},
		{`^(?:a$|ab)*$`, []string{"", "a", "ab", "aba", "abab"}, []string{"aa", "aab"}},
		{`^(?:\bfoo\b ?){1,3}$`, []string{"foo", "foo foo "}, []string{"foofoo", "foo foo foo foo"}},
		{`^(?<year>\d{4})$`, []string{"1999"}, []string{"199"}},
		{`^(?:a|(?:b|c)d)?e$`, []string{"e", "ae", "cde"}, []string{"abe"}},
		{`^[\x80-\xFFFF]$`, []string{"\u0080", "ÿ", "F"}, []string{"a", "\u0100"}},
		{`^(?i:aK)$`, []string{"aK", "Ak", "a\u212a"}, []string{"b"}},
		{`^\/\.\:$`, []string{"/.:"}, nil},
		{`^[]a]`, nil, []string{"a]", "]"}},
		{`\1a`, []string{"\x01a"}, []string{"a"}},
		{`^\ud83d$`, nil, []string{"", "a"}},
	} {
		s := New(Limits{})
		id, err := ECMA(s, c.source)
		if err != nil {
			t.Error(err)
			continue
		}
		check(t, s, id, c.source, c.yes, c.no)
	}
}

func check(t *testing.T, s *Store, id ID, source string, yes, no []string) {
	t.Helper()
	for _, text := range yes {
		if !s.Matches(id, text) {
			t.Errorf("%s: refuses %q", source, text)
		}
	}
	for _, text := range no {
		if s.Matches(id, text) {
			t.Errorf("%s: accepts %q", source, text)
		}
	}
	if err := s.Err(); err != nil {
		t.Errorf("%s: %v", source, err)
	}
}

func TestWhole(t *testing.T) {
	for _, c := range []struct {
		source  string
		yes, no []string
	}{
		{`a|bc`, []string{"a", "bc"}, []string{"xa", "abc", ""}},
		{`^a$|\Ab\z`, []string{"a", "b"}, []string{"ab"}},
		{`(?P<x>a)(?<y>b)(?:c)`, []string{"abc"}, nil},
		{`(?i)straße`, []string{"STRAßE", "straẞe"}, []string{"strasse"}},
		{`a(?i:b)c`, []string{"abc", "aBc"}, []string{"ABc", "abC"}},
		{`\d\w\s`, []string{"1a ", "٣é\u3000"}, []string{"aa ", "1- "}},
		{`(?a)\d\w\s`, []string{"1a "}, []string{"٣a ", "1é "}},
		{`\h+`, []string{" \t\u00a0"}, []string{"\n"}},
		{`.`, []string{"a", "\r"}, []string{"\n"}},
		{`(?s).`, []string{"\n"}, nil},
		{`(?m)^a$\n^b$`, []string{"a\nb"}, []string{"ab"}},
		{`(?m)a$.*`, []string{"a"}, []string{"ab"}},
		{`[[:alpha:]_[:^ascii:]]+`, []string{"az_é"}, []string{"1"}},
		{`[]a]`, []string{"]", "a"}, []string{"b"}},
		{`[^]a]`, []string{"b"}, []string{"]"}},
		{`[a\-z-]`, []string{"a", "-", "z"}, []string{"b"}},
		{`\x{1F600}\x41\u00e9\U0001F600`, []string{"😀Aé😀"}, nil},
		{`\Qa.b\E+`, []string{"a.bb", "a.b"}, []string{"axb"}},
		{`\pL\p{Greek}\P{Lu}\p{^L}`, []string{"aαa1"}, []string{"aαA1"}},
		{`(?x) a b # end
		   c`, []string{"abc"}, []string{"a b c"}},
		{`a{,2}`, []string{"", "aa"}, []string{"aaa"}},
		{`a{}`, []string{"a{}"}, nil},
		{`\bfoo\b.*`, []string{"foo", "foo bar"}, []string{"foobar"}},
		{`(?#note)a`, []string{"a"}, nil},
		{`\a\e\t\n\v\f\r\101`, []string{"\a\x1b\t\n\v\f\rA"}, nil},
		{`(?:x(?i)y)z`, []string{"xyz", "xYz"}, []string{"Xyz", "xyZ"}},
	} {
		s := New(Limits{})
		id, err := Whole(s, c.source)
		if err != nil {
			t.Error(err)
			continue
		}
		check(t, s, id, c.source, c.yes, c.no)
	}
}

func TestRefused(t *testing.T) {
	deep := strings.Repeat("(", 60000)
	for _, c := range []struct {
		source string
		whole  bool
		at     int
		want   string
	}{
		{`a(b`, false, 1, "not closed"},
		{`a)b`, false, 1, "closes no group"},
		{`[a`, false, 0, "not closed"},
		{`[b-a]`, false, 1, "out of order"},
		{`*a`, false, 0, "nothing to repeat"},
		{`a**`, false, 2, "nothing to repeat"},
		{`{2}`, false, 0, "nothing to repeat"},
		{`a{3,2}`, false, 1, "out of order"},
		{`a{99999999999999999999}`, false, 1, "counts to at most"},
		{`(a)\1`, false, 3, "backreferences"},
		{`(?<x>a)\k<x>`, false, 7, "backreferences"},
		{`(?P=x)`, true, 0, "backreferences"},
		{`(?<=ab)c`, false, 0, "lookbehind"},
		{`(?>a)`, false, 0, "atomic"},
		{`a*+`, true, 2, "possessive"},
		{`a\`, false, 1, "last backslash"},
		{`a\Z`, false, 1, `\Z is not supported`},
		{`a\y`, false, 1, `\y is no escape`},
		{`\x4`, false, 0, "hexadecimal"},
		{`\u{110000}`, false, 0, "code point"},
		{`\p{Nope}`, false, 0, "no property"},
		{`[a&&b]`, true, 2, "&&"},
		{`[[:nope:]]`, true, 1, "no class"},
		{`(?q)a`, true, 2, "(?q) is not supported"},
		{`(?:(?=a)a|b\b)*c`, false, 14, "without a bound"},
		{`(?:\ba){1000}`, false, 7, "repetition of more than"},
		{"a\xff", false, 0, "UTF-8"},
		{deep, false, 1000, "groups within each other"},
		{strings.Repeat("a", PatternMaxLength+1), false, PatternMaxLength, "bytes"},
		{strings.Repeat(`(?i)[\p{L}]`, 5000), true, 0, "too large"},
	} {
		s := New(Limits{})
		compile := ECMA
		if c.whole {
			compile = Whole
		}
		_, err := compile(s, c.source)
		var e *PatternError
		if !errors.As(err, &e) {
			t.Errorf("%.40s: error %v", c.source, err)
			continue
		}
		if !strings.Contains(e.Problem, c.want) || e.At != c.at && c.want != "too large" {
			t.Errorf("%.40s: %v, want byte %d: %s", c.source, err, c.at, c.want)
		}
		if len(err.Error()) > 300 {
			t.Errorf("the message has %d bytes", len(err.Error()))
		}
	}
}

// TestBombs compiles expressions that blow up where they are unrolled.
func TestBombs(t *testing.T) {
	for _, source := range []string{
		`(((a{1000}){1000}){1000})`,
		`^(((a?){100}){100}){100}$`,
		`(a*)*b`,
		`^(a|aa)+$`,
		`(x+x+)+y`,
		strings.Repeat(`(?:a|`, 900) + "b" + strings.Repeat(`)*`, 900),
		strings.Repeat(`(?=a)`, 5000),
		strings.Repeat(`\b`, 10000),
		strings.Repeat(`(a|^b)?`, 3000),
		strings.Repeat(`(?:^|`, 500) + "b" + strings.Repeat(`)*`, 500),
	} {
		s := New(Limits{})
		id, err := ECMA(s, source)
		if err == nil {
			s.Matches(id, strings.Repeat("a", 100))
			err = s.Err()
		}
		var e *PatternError
		if err != nil && !errors.Is(err, ErrBudget) && !errors.As(err, &e) {
			t.Errorf("%.40s: %v", source, err)
		}
	}
}
