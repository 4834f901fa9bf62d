package pretoken

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"pgregory.net/rapid"
)

// expressions are the patterns that the cutters implement by hand, as the models publish them.
var expressions = map[string]string{
	"gpt2":     `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	"llama3":   contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` + afterWords,
	"qwen2":    contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` + afterWords,
	"ufakzeka": `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` + afterWords,
	"numbers":  contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+` + afterWords,
	"seed":     contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"qwen35": contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` +
		`\s*[\r\n]+|\s+(?!\S)|\s+`,
	"tekken": `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|` +
		` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"o200k": `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + contractions + `?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + contractions + `?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"kimi": hanRuns + `|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}-` + hanRunes + `]*[\p{Ll}\p{Lm}\p{Lo}\p{M}-` + hanRunes + `]+` + contractions + `?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}-` + hanRunes + `]+[\p{Ll}\p{Lm}\p{Lo}\p{M}-` + hanRunes + `]*` + contractions + `?|` +
		`\p{N}{1,3}` + afterWords,

	`\p{N}`:              `\p{N}`,
	`\p{N}+`:             `\p{N}+`,
	`\p{N}{1,3}`:         `\p{N}{1,3}`,
	`[0-9]{3}`:           `[0-9][0-9][0-9]`,
	`[\r\n]`:             `[\r\n]`,
	`[^\n]+|[\n]+`:       `[^\n]+|[\n]+`,
	`\s+$`:               `\s+\z`,
	`\s?\p{L}+`:          `\s?\p{L}+`,
	`\s?\p{P}+`:          `\s?\p{P}+`,
	"[\\p{P}$+<=>^~|`]":  "[\\p{P}\\$\\+<=>\\^~\\|`]",
	"[\\p{P}$+<=>^~|`]+": "[\\p{P}\\$\\+<=>\\^~\\|`]+",
	`[\p{P}$+<=>^~|]+`:   `[\p{P}\$\+<=>\^~\|]+`,
	"bloom":              ` ?[^(\s|.,!?…。，、।۔،)]+`,

	"deepseek-letters": `\s?[` + deepSeekLetters + `]+`,
	"deepseek-punct":   `\s?[!-/:-~！-／：-～‘-‟　-。]+`,
	"deepseek-cjk":     `[一-龥ࠀ-一가-퟿]+`,
	"deepseek3-cjk":    `[一-龥぀-ゟ゠-ヿ]+`,
	"deepseek3": `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|` +
		` ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
}

const (
	// s, t and so on fold as ASCII does.
	contractions = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	afterWords   = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	hanRunes     = `[\p{IsHan}]`
	hanRuns      = `[\p{IsHan}]+`
)

var patterns = func() map[string]*regexp2.Regexp {
	res := map[string]*regexp2.Regexp{}
	for name, expr := range expressions {
		res[name] = regexp2.MustCompile(strings.ReplaceAll(expr, `\p{IsHan}`, hanRanges()), regexp2.None)
	}
	return res
}()

// hanRanges writes \p{Han} as ranges, which the engine has no name for.
func hanRanges() string {
	var b strings.Builder
	for _, r := range unicode.Han.R16 {
		for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
			if r.Stride == 1 {
				fmt.Fprintf(&b, "%c-%c", r.Lo, r.Hi)
				break
			}
			fmt.Fprintf(&b, "%c", c)
		}
	}
	for _, r := range unicode.Han.R32 {
		fmt.Fprintf(&b, "%c-%c", r.Lo, r.Hi)
	}
	return b.String()
}

// checkCut compares a cutter with the regular expression on text, whose bytes that are not UTF-8
// the expression sees as U+FFFD.
func checkCut(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) {
	t.Helper()
	runes := []rune(text)
	for name, re := range patterns {
		var want, got []int // in characters
		last := 0
		m, err := re.FindRunesMatch(runes)
		for ; m != nil && err == nil; m, err = re.FindNextMatch(m) {
			if m.RuneIndex > last {
				want = append(want, m.RuneIndex-last)
			}
			want = append(want, m.RuneLength)
			last = m.RuneIndex + m.RuneLength
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if last < len(runes) {
			want = append(want, len(runes)-last)
		}
		for rest := text; rest != ""; {
			n := cutters[name](rest)
			got = append(got, utf8.RuneCountInString(rest[:n]))
			rest = rest[n:]
		}
		if !slices.Equal(want, got) {
			t.Fatalf("%s on %q: words of %v characters, the pattern says %v", name, text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, text := range []string{
		"", " ", "  ", "\n", " \n", "\n ", " \n \n  x", "x  \n\n  y", "\t\tx", "  x", "'s", "'S", "'RE", "'lL a", "''s", "'", "'r", " 's",
		"I'll we'Ve x'd", "1234567 12", " 12", "!!!\n\nx", " !?\r\nx", "a\u00a0b", "\u3000\u3000x", "\u0085", "\u2028a", "x\u200bx", "\u180e",
		"ſ's", "'ſ", "é´\u0301e\u0301", "½Ⅷ٣", "你好，世界", "\U0001f999.cpp", "\xff", "a\xffb\xe2\x82", "\xe2\x82\xac\xe2",
		"\U00010400\U0001d7d8", "\U0010ffff", "a\r\n\r\nb \r", "\u1680x", "\x1c\x1d\x1e\x1fx", "_a_b", "$100,000.00", "HelloWORLDTest", "ÀÉa", "中AB ", "ʰAB", "\u0301AB", "\u0301ABc", "x'S'LLy", "don'T", "a/b//\n/",
		"0１２３4567", "中文 テスト한국어", "12345 678 ", "foo_bar(x)", "#include <a>", "\x00\x01a", "\u00adx", "a  \n\n", "!?.\r\n\r\n  x", "ßẞǅaΣς",
	} {
		checkCut(t, text)
	}
}

func TestCutRandom(t *testing.T) {
	chars := []rune("aZs'tTreVEmlLd 09½ǅʰΣ/,$中文々〇あ한เ\n\r\t \u00a0\u0085\u3000é你\U0001f999.!_\ufffd\u0301")
	rapid.Check(t, func(t *rapid.T) {
		checkCut(t, rapid.StringOfN(rapid.RuneFrom(chars), 0, 30, -1).Draw(t, "text"))
	})
}

// TestClasses: the class of each character is that of the expressions.
func TestClasses(t *testing.T) {
	res := []*regexp2.Regexp{
		regexp2.MustCompile(`^\p{L}$`, regexp2.None), regexp2.MustCompile(`^\p{N}$`, regexp2.None), regexp2.MustCompile(`^\s$`, regexp2.None),
		regexp2.MustCompile(`^[\p{Lu}\p{Lt}]$`, regexp2.None), regexp2.MustCompile(`^\p{Ll}$`, regexp2.None),
		regexp2.MustCompile(`^[\p{Lm}\p{Lo}]$`, regexp2.None), regexp2.MustCompile(`^\p{M}$`, regexp2.None),
		regexp2.MustCompile(`^\p{P}$`, regexp2.None), regexp2.MustCompile(`^\p{S}$`, regexp2.None),
	}
	classes := []class{letter, number, white, upper, lower, caseless, mark, punct, sign}
	step := rune(1)
	if testing.Short() {
		step = 97
	}
	for r := rune(0); r <= utf8.MaxRune; r += step {
		if r > 0x3FFF && r%7 != 0 || !utf8.ValidRune(r) {
			continue
		}
		for c, re := range res {
			if r == '\n' {
				continue
			}
			if is, err := re.MatchString(string(r)); err != nil || is != (classOf(r)&classes[c] != 0) {
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
	for name, want := range map[string]string{
		"":            "tokenizer: the file names no pre-tokenizer; known, each with others like it: gpt-2, llama-bpe, dbrx, qwen2, ",
		"klingon":     `tokenizer: pre-tokenizer "klingon" is not supported; known, each with others like it: gpt-2, llama-bpe, dbrx, qwen2, `,
		"LLAMA3":      `tokenizer: pre-tokenizer "LLAMA3" is not supported; known, each with others like it: gpt-2, llama-bpe, dbrx, qwen2, `,
		"afmoe":       `tokenizer: pre-tokenizer "afmoe" is not supported; known, each with others like it: gpt-2, llama-bpe, dbrx, qwen2, `,
		"llama-bpe  ": `tokenizer: pre-tokenizer "llama-bpe  " is not supported; known, each with others like it: gpt-2, llama-bpe, dbrx, qwen2, `,
	} {
		if _, err := Find(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s...", name, err, want)
		}
	}
	seen := map[string]bool{}
	for _, p := range pres {
		for _, name := range p.Names {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
			if got, err := Find(name); err != nil || got.Cuts != p.Cuts {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
		for _, st := range p.Stages() {
			if st.Cut == nil {
				t.Errorf("%s: %q names a cutter that is not there", p.Names[0], p.Cuts)
			}
		}
	}
}

// TestPatterns: every cutter has a pattern to compare it with.
func TestPatterns(t *testing.T) {
	for name := range cutters {
		if patterns[name] == nil {
			t.Errorf("no pattern for %s", name)
		}
	}
}
