package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pre is a way of cutting text into words before merging, by its names in tokenizer.ggml.pre.
type pre struct {
	names  []string
	cut    func(text string) int
	whole  bool // a word that is a token is that token, whatever the merges say
	addBOS bool // a begin token is added unless the file says otherwise
}

var pres = []pre{
	{
		names: []string{"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "mellum", "a.x-4.0", "exaone4"},
		cut:   cutGPT2,
	},
	{
		names: []string{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
		cut:   cutLlama,
		whole: true, addBOS: true,
	},
}

func findPre(name string) (pre, error) {
	var known []string
	for _, p := range pres {
		for _, n := range p.names {
			if n == name {
				return p, nil
			}
		}
		known = append(known, p.names...)
	}
	if name == "" {
		return pre{}, fmt.Errorf("tokenizer: the file names no pre-tokenizer; known: %s", strings.Join(known, ", "))
	}
	return pre{}, fmt.Errorf("tokenizer: pre-tokenizer %.40q is not supported; known: %s", name, strings.Join(known, ", "))
}

// class is what the patterns tell apart: \p{L}, \p{N}, \s and the rest.
type class uint8

const (
	other class = iota
	letter
	number
	white
	end // of the text
)

var ascii = func() (cs [utf8.RuneSelf]class) {
	for r := range cs {
		cs[r] = classOf(rune(r))
	}
	return cs
}()

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return white
	}
	return other
}

// next returns the class and the length of the character at text[i:]. A byte that is no UTF-8 is
// a character of class other by itself.
func next(text string, i int) (class, int) {
	if i >= len(text) {
		return end, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return ascii[b], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return classOf(r), n
}

// run returns the end of the characters of class c from text[i] on, at most limit of them.
func run(text string, i int, c class, limit int) int {
	for ; limit > 0; limit-- {
		got, n := next(text, i)
		if got != c {
			break
		}
		i += n
	}
	return i
}

const noLimit = int(^uint(0) >> 1)

// cutGPT2 returns the length of the first match in text, which is not empty, of
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// which matches everywhere.
func cutGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	i := 0
	if text[0] == ' ' {
		i = 1
	}
	if c, n := next(text, i); c != white && c != end {
		return run(text, i+n, c, noLimit)
	}
	return cutWhite(text)
}

// cutLlama returns the length of the first match in text, which is not empty, of
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// which matches everywhere; s, t and so on fold as ASCII does.
func cutLlama(text string) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	c, n := next(text, 0)
	if c == letter {
		return run(text, n, letter, noLimit)
	}
	if c == number {
		return run(text, n, number, 2)
	}
	if text[0] != '\r' && text[0] != '\n' {
		if e := run(text, n, letter, noLimit); e > n {
			return e
		}
	}
	i := 0
	if text[0] == ' ' {
		i = 1
	}
	if e := run(text, i, other, noLimit); e > i {
		return e + len(text[e:]) - len(strings.TrimLeft(text[e:], "\r\n"))
	}
	e := run(text, n, white, noLimit)
	if k := strings.LastIndexAny(text[:e], "\r\n"); k >= 0 {
		return k + 1
	}
	return cutWhite(text)
}

// cutWhite returns the length of the first match of \s+(?!\S)|\s+ in text, which begins with white
// space: the last white character before anything else belongs to what follows.
func cutWhite(text string) int {
	i, last := 0, 0
	for {
		c, n := next(text, i)
		if c == end || c != white && last == 0 {
			return i
		}
		if c != white {
			return last
		}
		i, last = i+n, i
	}
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of text, or 0.
func contraction(text string, fold bool) int {
	if text[0] != '\'' || len(text) < 2 {
		return 0
	}
	lower := func(b byte) byte {
		if fold && 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	switch lower(text[1]) {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	switch string([]byte{lower(text[1]), lower(text[2])}) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

// cutSpaces returns the length of the first word of text with the spaces before it.
func cutSpaces(text string) int {
	i := 0
	for i < len(text) && text[i] == ' ' {
		i++
	}
	for i < len(text) && text[i] != ' ' {
		i++
	}
	return i
}

// cutNothing returns the length of text.
func cutNothing(text string) int { return len(text) }
