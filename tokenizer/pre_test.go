package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"pgregory.net/rapid"
)

// The patterns that the cutters implement by hand.
var patterns = []struct {
	name string
	cut  func(string) int
	re   *regexp2.Regexp
}{
	{"gpt-2", cutGPT2, regexp2.MustCompile(
		`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, regexp2.None)},
	{"llama-bpe", cutLlama, regexp2.MustCompile(
		`(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|`+
			` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None)},
}

// checkCut compares a cutter with the regular expression on text, whose bytes that are not UTF-8
// the expression sees as U+FFFD.
func checkCut(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) {
	t.Helper()
	for _, p := range patterns {
		var want, got []int // in characters
		m, err := p.re.FindStringMatch(text)
		for ; m != nil && err == nil; m, err = p.re.FindNextMatch(m) {
			want = append(want, utf8.RuneCountInString(m.String()))
		}
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		for rest := text; rest != ""; {
			n := p.cut(rest)
			got = append(got, utf8.RuneCountInString(rest[:n]))
			rest = rest[n:]
		}
		if !slices.Equal(want, got) {
			t.Fatalf("%s on %q: words of %v characters, the pattern says %v", p.name, text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, text := range []string{
		"", " ", "  ", "\n", " \n", "\n ", " \n \n  x", "x  \n\n  y", "\t\tx", "  x", "'s", "'S", "'RE", "'lL a", "''s", "'", "'r", " 's",
		"I'll we'Ve x'd", "1234567 12", " 12", "!!!\n\nx", " !?\r\nx", "a\u00a0b", "\u3000\u3000x", "\u0085", "\u2028a", "x\u200bx", "\u180e",
		"ſ's", "'ſ", "é´\u0301e\u0301", "½Ⅷ٣", "你好，世界", "\U0001f999.cpp", "\xff", "a\xffb\xe2\x82", "\xe2\x82\xac\xe2",
		"\U00010400\U0001d7d8", "\U0010ffff", "a\r\n\r\nb \r", "\u1680x", "\x1c\x1d\x1e\x1fx", "_a_b", "$100,000.00",
	} {
		checkCut(t, text)
	}
}

func TestCutRandom(t *testing.T) {
	chars := []rune("aZs'tTreVEmlLd 09½\n\r\t \u00a0\u0085\u3000é你\U0001f999.!_\ufffd\u0301")
	rapid.Check(t, func(t *rapid.T) {
		checkCut(t, rapid.StringOfN(rapid.RuneFrom(chars), 0, 30, -1).Draw(t, "text"))
	})
}

// TestClasses: a character is of the class that the expressions take it for.
func TestClasses(t *testing.T) {
	res := []*regexp2.Regexp{
		letter: regexp2.MustCompile(`^\p{L}$`, regexp2.None),
		number: regexp2.MustCompile(`^\p{N}$`, regexp2.None),
		white:  regexp2.MustCompile(`^\s$`, regexp2.None),
	}
	step := rune(1)
	if testing.Short() {
		step = 97
	}
	for r := rune(0); r <= utf8.MaxRune; r += step {
		if r > 0x3FFF && r%7 != 0 || !utf8.ValidRune(r) {
			continue
		}
		for c, re := range res {
			if re == nil || r == '\n' {
				continue
			}
			if is, err := re.MatchString(string(r)); err != nil || is != (classOf(r) == class(c)) {
				t.Errorf("%U has class %d; pattern %s says %v, %v", r, classOf(r), re, is, err)
			}
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("I'll be  \n 12345 ½ there!!\r\n\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		checkCut(t, text)
	})
}

func TestFindPre(t *testing.T) {
	const known = "; known: gpt-2, phi-2, jina-es, jina-de, gigachat, mellum, a.x-4.0, exaone4, " +
		"llama-bpe, llama3, llama-v3, falcon3, falcon-h1, pixtral, midm-2.0, lfm2"
	for name, want := range map[string]string{
		"":               "tokenizer: the file names no pre-tokenizer" + known,
		"deepseek-coder": `tokenizer: pre-tokenizer "deepseek-coder" is not supported` + known,
		"LLAMA3":         `tokenizer: pre-tokenizer "LLAMA3" is not supported` + known,
	} {
		if _, err := findPre(name); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(known, "; known: "), ", ") {
		if _, err := findPre(name); err != nil {
			t.Error(err)
		}
	}
}
