package regex

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

// maker writes expressions at random.
type maker struct {
	r     *rand.Rand
	atoms []string
	looks bool // write lookahead and lookbehind too
}

func (m *maker) expression(depth int) string {
	switch k := m.r.IntN(12); {
	case depth == 0 || k < 4:
		return m.atoms[m.r.IntN(len(m.atoms))]
	case k < 7:
		return m.expression(depth-1) + m.expression(depth-1)
	case k < 8:
		return "(?:" + m.expression(depth-1) + "|" + m.expression(depth-1) + ")"
	case k < 9:
		return "(" + m.expression(depth-1) + "|" + m.expression(depth-1) + "|)"
	case k < 11 || !m.looks:
		q := []string{"*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??", "{0,2}"}
		return "(?:" + m.expression(depth-1) + ")" + q[m.r.IntN(len(q))]
	}
	look := []string{"(?=", "(?!"}
	return look[m.r.IntN(2)] + m.expression(depth-1) + ")"
}

// texts are all texts of at most n characters of an alphabet.
func texts(alphabet string, n int) []string {
	all := []string{""}
	for from := 0; n > 0; n-- {
		to := len(all)
		for _, t := range all[from:to] {
			for _, r := range alphabet {
				all = append(all, t+string(r))
			}
		}
		from = to
	}
	return all
}

// TestAgainstRegexp2 compares searches with those of another engine in its ECMAScript mode, expression by expression,
// over all short texts. Its differences from ECMA-262 are kept out: its dot excludes only \n, its \s is not all of Unicode.
func TestAgainstRegexp2(t *testing.T) {
	all := texts("ab_- \n", 4)
	m := maker{rand.New(rand.NewPCG(1, 2)), []string{"a", "b", "^", "$", ".", `\b`, `\B`, `\w`, `\W`, `\s`, `[^a]`, `[ab]`, "ab",
		"_", `\-`, "(?<=a)", "(?<!a)", `[\w-]`, `\S`}, true}
	compared, refused, expressions := 0, 0, 0
	for range 3000 {
		source := m.expression(4)
		other, err := regexp2.Compile(source, regexp2.ECMAScript)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		s := New(Limits{})
		id, err := ECMA(s, source)
		var e *PatternError
		if errors.As(err, &e) && strings.Contains(e.Problem, "repetition") {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		expressions++
		for range 150 {
			text := all[m.r.IntN(len(all))]
			want, err := other.MatchString(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Matches(id, text); got != want {
				t.Fatalf("%s on %q: %v, want %v", source, text, got, want)
			}
			compared++
		}
		if s.Err() != nil {
			t.Fatalf("%s: %v", source, s.Err())
		}
	}
	t.Logf("%d expressions, %d comparisons; %d expressions refused for assertions in repetitions", expressions, compared, refused)
	if expressions < 2000 {
		t.Errorf("only %d expressions were compared", expressions)
	}
}

// TestAgainstRegexp compares whole matches with those of package regexp.
func TestAgainstRegexp(t *testing.T) {
	all := texts("abé_- \n", 4)
	m := maker{rand.New(rand.NewPCG(3, 4)), []string{"a", "b", "é", ".", `(?i:A)`, `[^a]`, `[[:alpha:]]`, `\pL`, `\PL`, "(?s:.)",
		`\x{e9}`, `^`, `$`, `(?m:^)`, `(?m:$)`, `\A`, `\z`, `[^\n]`, `\Qa-\E`, "-"}, false}
	refused := 0
	for range 1500 {
		source := m.expression(4)
		other := regexp.MustCompile(`\A(?:` + source + `)\z`)
		s := New(Limits{})
		id, err := Whole(s, source)
		var e *PatternError
		if errors.As(err, &e) && strings.Contains(e.Problem, "repetition") {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 150 {
			text := all[m.r.IntN(len(all))]
			if got, want := s.Matches(id, text), other.MatchString(text); got != want {
				t.Fatalf("%s on %q: %v, want %v", source, text, got, want)
			}
		}
	}
	t.Logf("%d of 1500 refused", refused)
	if refused > 300 {
		t.Errorf("%d expressions were refused", refused)
	}
}

func FuzzECMA(f *testing.F) {
	for _, seed := range []string{`^a|b$`, `(?!a)[\w-]{2,3}?\b`, `\p{L}\u{41}[^\x00-\x1f]`, `(?<=a)(?<n>b)*`} {
		f.Add(seed, "ab")
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		for _, compile := range []func(*Store, string) (ID, error){ECMA, Whole} {
			s := New(Limits{Nodes: 100_000, Fuel: 400_000})
			id, err := compile(s, source)
			if err == nil {
				s.Matches(id, text)
				err = s.Err()
			}
			var e *PatternError
			if err != nil && !errors.As(err, &e) && !errors.Is(err, ErrBudget) {
				t.Errorf("%v is of no known kind", err)
			}
		}
	})
}
