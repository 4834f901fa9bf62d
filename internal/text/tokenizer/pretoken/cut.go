package pretoken

import (
	"strings"
	"unicode/utf8"
)

// Cutter returns the length of the first piece of text, which is not empty: a match of its pattern, or the text before the next
// match. A negative length means that the piece is left out.
type Cutter = func(text string) int

// cutters are the cutters by name.
var cutters = map[string]Cutter{
	"gpt2":     CutGPT2,
	"llama3":   (&words{digits: 3, apart: true, tail: "\r\n"}).cut,
	"qwen2":    (&words{digits: 1, apart: true, tail: "\r\n"}).cut,
	"qwen35":   (&words{digits: 1, apart: true, tail: "\r\n", marks: true}).cut,
	"seed":     (&words{digits: 1, apart: true}).cut,
	"numbers":  (&words{digits: noLimit, apart: true, tail: "\r\n"}).cut,
	"ufakzeka": (&words{digits: 1, tail: "\r\n"}).cut,
	"tekken":   (&words{digits: 1, cased: true, tail: "\r\n/"}).cut,
	"o200k":    (&words{digits: 3, cased: true, attached: true, tail: "\r\n/"}).cut,
	"kimi":     (&words{digits: 3, cased: true, attached: true, tail: "\r\n", not: han}).cut,

	`\p{N}`:              isolated(matchRun("", number.set(), 1)),
	`\p{N}+`:             isolated(matchRun("", number.set(), noLimit)),
	`\p{N}{1,3}`:         isolated(matchRun("", number.set(), 3)),
	`[0-9]{3}`:           isolated(matcher{threeDigits, digits}),
	`[\r\n]`:             isolated(matchRun("", ranges("\r\n"), 1)),
	`[^\n]+|[\n]+`:       isolated(matchRun("", ranges("\n"), noLimit)),
	`\s+$`:               cutBeforeTrailing,
	`\s?\p{L}+`:          isolated(matchRun(`\s`, letter.set(), noLimit)),
	`\s?\p{P}+`:          isolated(matchRun(`\s`, punct.set(), noLimit)),
	"[\\p{P}$+<=>^~|`]":  isolated(matchRun("", isPunctuation, 1)),
	"[\\p{P}$+<=>^~|`]+": isolated(matchRun("", isPunctuation, noLimit)),
	`[\p{P}$+<=>^~|]+`:   isolated(matchRun("", func(r rune) bool { return isPunctuation(r) && r != '`' }, noLimit)),
	"bloom":              isolated(matchRun(" ", func(r rune) bool { return !bloomBreaks(r) && classOf(r)&white == 0 }, noLimit)),

	"deepseek-letters": isolated(matchRun(`\s`, ranges(deepSeekLetters), noLimit)),
	"deepseek-punct":   isolated(matchRun(`\s`, ranges(deepSeekPunctuation), noLimit)),
	"deepseek-cjk":     isolated(matchRun("", ranges(deepSeekCJK), noLimit)),
	"deepseek3-cjk":    isolated(matchRun("", ranges(deepSeek3CJK), noLimit)),
	"deepseek3":        isolated(matcher{deepSeek3, func(rune) bool { return true }}),
}

var bloomBreaks = ranges("(|.,!?…。，、।۔،)")

// deepSeekLetters are the cased letters that DeepSeek's pattern lists.
const deepSeekLetters = "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373\u0376\u0377" +
	"\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5" +
	"\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D" +
	"\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4" +
	"\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D" +
	"\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4" +
	"\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06" +
	"\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2" +
	"\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943"

const (
	deepSeekPunctuation = `!-/:-~！-／：-～‘-‟　-。`
	deepSeekCJK         = "\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF"
	deepSeek3CJK        = "\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF"
)

// isPunctuation reports whether a character is punctuation or an ASCII symbol.
func isPunctuation(r rune) bool {
	c := classOf(r)
	return c&punct != 0 || c&sign != 0 && r < utf8.RuneSelf
}

// Named returns the cutter of a name in [Pre.Cuts], nil if there is none.
func Named(name string) Cutter { return cutters[name] }

// matcher is a pattern that does not match everywhere. match returns the length of its match at the start of text, or 0. There is
// no match at an ASCII character that is not in begins.
type matcher struct {
	match  func(text string) int
	begins set
}

// isolated returns the cutter of a pattern.
func isolated(m matcher) Cutter {
	var begins [utf8.RuneSelf]bool
	for b := range begins {
		begins[b] = m.begins(rune(b))
	}
	at := func(text string) int {
		if b := text[0]; b < utf8.RuneSelf && !begins[b] {
			return 0
		}
		return m.match(text)
	}
	return func(text string) int {
		if n := at(text); n > 0 {
			return n
		}
		for i := 0; ; {
			if text[i] < utf8.RuneSelf {
				i++
			} else {
				_, n := utf8.DecodeRuneInString(text[i:])
				i += n
			}
			if i == len(text) || at(text[i:]) > 0 {
				return i
			}
		}
	}
}

// matchRun matches up to limit characters of a set. One white space may precede them if before is \s, one space if it is a
// space.
func matchRun(before string, in set, limit int) matcher {
	isBefore := func(c class, b byte) bool {
		return before == " " && b == ' ' || before == `\s` && c&white != 0
	}
	match := func(text string) int {
		i := 0
		if before != "" {
			if c, n := next(text, 0); isBefore(c, text[0]) {
				i = n
			}
		}
		if e := in.runOf(text, i, limit); e > i {
			return e
		}
		return in.runOf(text, 0, limit) // the one before may be of the set
	}
	return matcher{match, func(r rune) bool { return in(r) || isBefore(ascii[r], byte(r)) }}
}

var digits = ranges("0-9")

// threeDigits matches [0-9][0-9][0-9].
func threeDigits(text string) int {
	if n := digits.runOf(text, 0, 3); n == 3 {
		return n
	}
	return 0
}

// cutBeforeTrailing cuts off the white space that ends the text, \s+$.
func cutBeforeTrailing(text string) int {
	n := len(text)
	for n > 0 {
		r, k := utf8.DecodeLastRuneInString(text[:n])
		if classOf(r)&white == 0 {
			return n
		}
		n -= k
	}
	return len(text)
}

// CutGPT2 cuts by
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// which matches everywhere.
func CutGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	i := 0
	if text[0] == ' ' {
		i = 1
	}
	c, n := next(text, i)
	for _, kind := range [...]class{letter, number, other} {
		if c&kind != 0 {
			return run(text, i+n, kind, noLimit)
		}
	}
	return cutWhite(text)
}

// words is a family of patterns that match everywhere. With apart and digits set and the other fields zero, the pattern is
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where the case of s, t and so on folds as in ASCII.
type words struct {
	digits   int
	apart    bool   // 's and so on before anything else
	attached bool   // 's and so on at the end of a word
	marks    bool   // \p{M} belongs to words as \p{L} does
	cased    bool   // in words, capitals go before other letters; \p{M} belongs to words
	tail     string // characters that may follow [^\s\p{L}\p{N}]+
	not      class  // cut out by themselves before words, which have none
}

func (w *words) cut(text string) int {
	if w.apart {
		if n := contraction(text, true); n > 0 {
			return n
		}
	}
	c, n := next(text, 0)
	if c&w.not != 0 {
		return run(text, n, w.not, noLimit)
	}
	if e := w.word(text, c, n); e > 0 {
		if w.attached {
			e += contraction(text[e:], true)
		}
		return e
	}
	if c&number != 0 {
		return run(text, n, number, w.digits-1)
	}
	if e := w.punctuation(text); e > 0 {
		return e
	}
	return cutLines(text)
}

// word returns the length of the word at the start of text, whose first character has class c and n
// bytes, or 0.
func (w *words) word(text string, c class, n int) int {
	before := c&(letter|number) == 0 && text[0] != '\r' && text[0] != '\n'
	if w.cased {
		return w.casedWord(text, c, n, before)
	}
	letters := letter
	if w.marks {
		letters |= mark
	}
	if c&letters == 0 && !before {
		return 0
	}
	if e := run(text, n, letters, noLimit); e > n || c&letters != 0 {
		return e
	}
	return 0
}

const (
	capitals = upper | caseless | mark
	smalls   = lower | caseless | mark
)

// casedWord returns the length of the match at the start of text of
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*
//
// or 0.
func (w *words) casedWord(text string, c class, n int, before bool) int {
	if before {
		if e := w.capitalised(text, n); e > 0 {
			return e
		}
	}
	if c&(letter|mark) != 0 {
		if e := w.capitalised(text, 0); e > 0 {
			return e
		}
	}
	if before {
		if e := w.runWithout(text, n, capitals); e > n {
			return e
		}
	}
	return w.runWithout(text, 0, capitals)
}

// capitalised returns the end of [capitals]*[smalls]+ at text[i], or 0. If the capitals take all characters, the match ends with
// the last one that is in both sets.
func (w *words) capitalised(text string, i int) int {
	shared := 0 // the end of the last character that is in both
	for {
		c, n := next(text, i)
		if c&w.not != 0 || c&(capitals|smalls) == 0 {
			return shared
		}
		if c&capitals == 0 {
			return w.runWithout(text, i, smalls)
		}
		i += n
		if c&smalls != 0 {
			shared = i
		}
	}
}

// runWithout is run for characters that are not in w.not.
func (w *words) runWithout(text string, i int, in class) int {
	for {
		c, n := next(text, i)
		if c&in == 0 || c&w.not != 0 {
			return i
		}
		i += n
	}
}

// punctuation returns the length of the match of " ?[^\s\p{L}\p{N}]+" at the start of text, with the characters that may follow
// it, or 0.
func (w *words) punctuation(text string) int {
	in, i := other, 0
	if w.marks {
		in &^= mark
	}
	if text[0] == ' ' {
		i = 1
	}
	e := run(text, i, in, noLimit)
	if e == i {
		return 0
	}
	for e < len(text) && strings.IndexByte(w.tail, text[e]) >= 0 {
		e++
	}
	return e
}

// deepSeek3 matches the last pattern of DeepSeek-V3,
//
//	[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where [!-/:-~] is ASCII punctuation without digits and letters.
func deepSeek3(text string) int {
	c, n := next(text, 0)
	if c&(punct|sign) != 0 && text[0] < utf8.RuneSelf {
		e := 1
		for e < len(text) && ('a' <= text[e] && text[e] <= 'z' || 'A' <= text[e] && text[e] <= 'Z') {
			e++
		}
		if e > 1 {
			return e
		}
	}
	if c&(punct|sign) == 0 && text[0] != '\r' && text[0] != '\n' {
		if e := run(text, n, letter|mark, noLimit); e > n || c&(letter|mark) != 0 {
			return e
		}
	}
	i := 0
	if text[0] == ' ' {
		i = 1
	}
	if e := run(text, i, punct|sign, noLimit); e > i {
		return e + len(text[e:]) - len(strings.TrimLeft(text[e:], "\r\n"))
	}
	if c&white != 0 {
		return cutLines(text)
	}
	return 0
}

// cutLines returns the length of the first match of \s*[\r\n]+|\s+(?!\S)|\s+ in text, which begins with
// white space.
func cutLines(text string) int {
	e := run(text, 0, white, noLimit)
	if k := strings.LastIndexAny(text[:e], "\r\n"); k >= 0 {
		return k + 1
	}
	return cutWhite(text)
}

// cutWhite returns the length of the first match of \s+(?!\S)|\s+ in text, which begins with white space. The last white character
// before another character belongs to the next piece.
func cutWhite(text string) int {
	i, last := 0, 0
	for {
		c, n := next(text, i)
		if c == end || c&white == 0 && last == 0 {
			return i
		}
		if c&white == 0 {
			return last
		}
		i, last = i+n, i
	}
}

var clitics = [...]string{"'s", "'t", "'m", "'d", "'re", "'ve", "'ll"}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of text, or 0.
func contraction(text string, fold bool) int {
	if text == "" || text[0] != '\'' {
		return 0
	}
	for _, c := range clitics {
		if n := len(c); n <= len(text) && (text[:n] == c || fold && strings.EqualFold(text[:n], c)) {
			return n
		}
	}
	return 0
}

// CutSpaces returns the length of the first word of text with the spaces before it.
func CutSpaces(text string) int {
	word := strings.TrimLeft(text, " ")
	if i := strings.IndexByte(word, ' '); i >= 0 {
		return len(text) - len(word) + i
	}
	return len(text)
}

// CutBeforeSpaces returns the length of the first word of text with one space before it, if there is one.
func CutBeforeSpaces(text string) int {
	if i := strings.IndexByte(text[1:], ' '); i >= 0 {
		return 1 + i
	}
	return len(text)
}

// CutFields cuts off white space, which is left out, or the text before it.
func CutFields(text string) int {
	if e := run(text, 0, white, noLimit); e > 0 {
		return -e
	}
	return run(text, 0, ^white, noLimit)
}

// CutBert cuts off white space, which is left out, a punctuation character, or the text between them.
func CutBert(text string) int {
	if e := run(text, 0, white, noLimit); e > 0 {
		return -e
	}
	breaks := func(r rune) bool { return isPunctuation(r) || classOf(r)&white != 0 }
	if i := strings.IndexFunc(text, breaks); i > 0 {
		return i
	} else if i < 0 {
		return len(text)
	}
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// CutNothing returns the length of text.
func CutNothing(text string) int { return len(text) }
