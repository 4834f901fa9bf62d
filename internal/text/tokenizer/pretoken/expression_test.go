package pretoken

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"pgregory.net/rapid"
)

func TestExpression(t *testing.T) {
	for _, c := range []struct {
		expr, behavior string
		invert         bool
		text, want     string
	}{
		{`\d`, "Isolated", false, "a12b", "a|1|2|b"},
		{`\d`, "Removed", false, "a12b3", "a|b"},
		{`\d`, "Removed", true, "a12b3", "1|2|3"},
		{`\d`, "Contiguous", false, "a12b3", "a|12|b|3"},
		{`\d`, "MergedWithPrevious", false, "a12b3", "a1|2|b3"},
		{`\d`, "MergedWithNext", false, "a12b3", "a|1|2b|3"},
		{` `, "MergedWithPrevious", false, "the  end", "the | |end"},
		{` `, "MergedWithNext", false, "the  end", "the| | end"},
		{`x*`, "Isolated", false, "axxb", "a|xx|b"},
		{`\s+(?!\S)|\s+`, "Isolated", false, "a  b", "a| | |b"},
		{`.`, "Isolated", false, "é\xff中", "é|\xff|中"},
		{`x`, "Isolated", false, "", ""},
	} {
		x, err := Compile(c.expr, c.behavior, c.invert)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := x.Split(c.text, func(p string) error { got = append(got, p); return nil }); err != nil {
			t.Fatal(err)
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s %s, invert %v: %q, want %q", c.expr, c.behavior, c.invert, s, c.want)
		}
	}
}

// TestSplit compares with the pieces of Hugging Face's tokenizers 0.22, whose Split has made testdata/split.json.
func TestSplit(t *testing.T) {
	b, err := os.ReadFile("testdata/split.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Expr, Behavior, Text string
		Invert               bool
		Pieces               []string
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 100 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		x, err := Compile(c.Expr, c.Behavior, c.Invert)
		if err != nil {
			t.Error(err)
			continue
		}
		got := []string{}
		if err := x.Split(c.Text, func(p string) error { got = append(got, p); return nil }); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, c.Pieces) {
			t.Errorf("%s %s, invert %v, %q: %q, want %q", c.Expr, c.Behavior, c.Invert, c.Text, got, c.Pieces)
		}
	}
}

func TestExpressionRefuses(t *testing.T) {
	for _, expr := range []string{
		`[a[bc]]`, `[a-z&&[b]]`, `[a&&[^b]c]`, `[a&&b]`, `\h`, `\X`, `(`, `[a`, `a{2}{3}(`, strings.Repeat("(", 2000), `\p{Klingon}`,
	} {
		if x, err := Compile(expr, "Isolated", false); err == nil {
			t.Errorf("%.20q compiles to %v", expr, x)
		}
	}
	if _, err := Compile("a", "Vanished", false); err == nil {
		t.Error("an unknown behavior")
	}
	for _, expr := range []string{`[\[a]`, `a\++`, `[+?*]+`, `\\h`} {
		if _, err := Compile(expr, "Isolated", false); err != nil {
			t.Error(err)
		}
	}
}

// TestExpressionTime: an expression that backtracks too long is an error.
func TestExpressionTime(t *testing.T) {
	x, err := Compile(`(a+)+$`, "Isolated", false)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err = x.Split(strings.Repeat("a", 40)+"b", func(string) error { return nil })
	if took := time.Since(start); err == nil || took > 20*maxMatch {
		t.Errorf("%v after %v", err, took)
	}
}

// TestPublished: expressions of published files cut like their cutters.
func TestPublished(t *testing.T) {
	res := map[string]*regexp2.Regexp{}
	for expr, k := range published {
		if cutters[k.cutter] == nil {
			t.Fatalf("%.40q names no cutter", expr)
		}
		// The engine has neither possessive quantifiers, which change nothing here, nor sets within sets.
		plain := strings.NewReplacer("?+", "?", "++", "+").Replace(expr)
		if k.cutter == "bloom" {
			plain = strings.NewReplacer("|[.", "|.", "])]+", ")]+").Replace(expr)
		}
		res[expr] = regexp2.MustCompile(plain, regexp2.None)
	}
	chars := []rune("aZs'tTreVEmlLd 09½ǅʰΣ/,$中文々あ한\n\r\t \u00a0\u3000é\U0001f999.!_\u0301([|")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom(chars), 1, 30, -1).Draw(t, "text")
		for expr, re := range res {
			k := published[expr]
			var want, got []int
			last := 0
			runes := []rune(text)
			err := re.FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
				i, n, _ := m.GroupRange(0)
				if k.everywhere && i > last {
					t.Fatalf("%.40q does not match everywhere in %q", expr, text)
				}
				if i > last {
					want = append(want, i-last)
				}
				want = append(want, n)
				last = i + n
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			if last < len(runes) {
				want = append(want, len(runes)-last)
			}
			for rest := text; rest != ""; {
				n := cutters[k.cutter](rest)
				got = append(got, utf8.RuneCountInString(rest[:n]))
				rest = rest[n:]
			}
			if !slices.Equal(want, got) {
				t.Fatalf("%.60q on %q: words of %v characters, the expression says %v", expr, text, got, want)
			}
		}
	})
}

func TestCutFields(t *testing.T) {
	for name, cut := range map[string]Cutter{"fields": CutFields, "bert": CutBert, "spaces": CutSpaces, "before spaces": CutBeforeSpaces} {
		want := map[string]string{
			"fields": "ab,|c", "bert": "ab|,|c", "spaces": "  ab,|  c| ", "before spaces": " | ab,| | c| ",
		}[name]
		var got []string
		for text := "  ab,  c "; text != ""; {
			n := cut(text)
			if n < 0 {
				text = text[-n:]
				continue
			}
			got, text = append(got, text[:n]), text[n:]
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%s: %q, want %q", name, s, want)
		}
	}
}

func TestMatching(t *testing.T) {
	for _, c := range []struct {
		cuts     string
		whole    bool
		name     string
		takes    bool
		notFound bool
	}{
		{"llama3", true, "llama-bpe", true, false},
		{"llama3", false, "dbrx", false, false},
		{"o200k", true, "gpt-4o", false, false},
		{"tekken", false, "tekken", true, false},
		{"gpt2", false, "gpt-2", false, false},
		{`\p{N} gpt2`, false, "starcoder", false, false},
		{"", false, "", false, true},
		{"gpt2 gpt2", false, "", false, true},
	} {
		name, takes, ok := Matching(c.cuts, c.whole)
		if name != c.name || takes != c.takes || ok == c.notFound {
			t.Errorf("%q, whole %v: %q, %v, %v", c.cuts, c.whole, name, takes, ok)
		}
	}
}
