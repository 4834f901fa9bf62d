package pretoken

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Expression cuts text by a regular expression that has no cutter.
type Expression struct {
	re       *regexp2.Regexp
	behavior string // what becomes of matches, by its name in a tokenizer.json
	invert   bool   // what lies between the matches is what counts as one
}

// A match may take one second, cutting a text ten seconds.
const (
	maxMatch = time.Second
	maxSplit = 10 * time.Second
)

// behaviors are the ways to treat matches: a piece of its own, left out, part of the piece before or after, one piece with
// neighbouring matches.
var behaviors = []string{"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"}

// Compile compiles an expression of a tokenizer.json, in Oniguruma's dialect, with the behavior of its matches or, with invert, of
// the text between them. Errors: an unknown behavior, an expression that has another meaning here or that does not compile.
func Compile(expr, behavior string, invert bool) (*Expression, error) {
	if !slices.Contains(behaviors, behavior) {
		return nil, fmt.Errorf("behavior %.40q is not supported", behavior)
	}
	if strange := foreign(expr); strange != "" {
		return nil, fmt.Errorf("expression %.80q: %s is not supported", expr, strange)
	}
	re, err := regexp2.Compile(rewritten(expr), regexp2.Multiline)
	if err != nil {
		return nil, fmt.Errorf("expression %.80q: %.80v", expr, err)
	}
	re.MatchTimeout = maxMatch
	return &Expression{re, behavior, invert}, nil
}

// foreign names the part of an expression that Oniguruma reads in another way and that [rewritten] does not write anew, or "": sets within sets
// that are no intersection with a complement, some escapes.
func foreign(expr string) string {
	depth := 0
	for i := 0; i < len(expr); i++ {
		rest := expr[i:]
		switch {
		case expr[i] == '\\' && len(rest) > 1:
			if strings.IndexByte("hHRXKGyY", rest[1]) >= 0 {
				return rest[:2]
			}
			i++
		case depth == 1 && strings.HasPrefix(rest, "&&[^"):
			depth, i = 2, i+3
		case depth > 0 && (expr[i] == '[' || strings.HasPrefix(rest, "&&")):
			return "a set within a set"
		case depth == 2 && expr[i] == ']':
			if len(rest) < 2 || rest[1] != ']' {
				return "a set within a set"
			}
			depth = 1
		case depth > 0:
			if expr[i] == ']' {
				depth = 0
			}
		case expr[i] == '[':
			depth = 1
		}
	}
	return ""
}

// wordSet is what Oniguruma's \w stands for, within a set: no joiners, which this engine's has, but letters in circles.
const wordSet = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}`

// escapedWord finds \w in a set: an odd number of backslashes stands before the letter.
var escapedWord = regexp.MustCompile(`((?:^|[^\\])(?:\\\\)*)\\w`)

// rewritten writes an expression of Oniguruma for this engine: X?+ is (?>X?), \w is wordSet, and a set [A&&[^B]] is [A-[B]].
func rewritten(expr string) string {
	var out []byte
	atom := 0        // where the last atom begins in out
	var groups []int // where open groups do
	for i := 0; i < len(expr); i++ {
		rest := expr[i:]
		switch c := expr[i]; {
		case c == '\\' && len(rest) > 1:
			n := 2
			if strings.IndexByte("pPx", rest[1]) >= 0 && len(rest) > 2 && rest[2] == '{' {
				if end := strings.IndexByte(rest, '}'); end > 0 {
					n = end + 1
				}
			}
			atom = len(out)
			atomText := rest[:n]
			switch atomText {
			case `\w`:
				atomText = "[" + wordSet + "]"
			case `\W`:
				atomText = "[^" + wordSet + "]"
			}
			out, i = append(out, atomText...), i+n-1
		case c == '[':
			atom = len(out)
			n := setLength(rest)
			set := strings.Replace(rest[:n], "&&[^", "-[", 1)
			out, i = append(out, escapedWord.ReplaceAllString(set, "${1}"+wordSet)...), i+n-1
		case c == '(':
			groups = append(groups, len(out))
			out = append(out, c)
		case c == ')':
			if n := len(groups) - 1; n >= 0 {
				atom, groups = groups[n], groups[:n]
			}
			out = append(out, c)
		case strings.IndexByte("?*+", c) >= 0 && len(rest) > 1 && rest[1] == '+' && !strings.HasSuffix(string(out), "("):
			last := string(out[atom:])
			out = append(append(out[:atom], "(?>"+last...), c, ')')
			i++
		case strings.IndexByte("?*+{}|", c) >= 0 || c >= '0' && c <= '9' || c == ',':
			if c == '|' || c >= '0' && c <= '9' || c == ',' {
				atom = len(out)
			}
			out = append(out, c)
		default:
			_, n := utf8.DecodeRuneInString(rest)
			atom = len(out)
			out, i = append(out, rest[:n]...), i+n-1
		}
	}
	return string(out)
}

// setLength returns the bytes of the set at the beginning of an expression, with a set within it.
func setLength(expr string) int {
	depth := 0
	for i := 0; i < len(expr); i++ {
		switch expr[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(expr)
}

// Split calls piece with the pieces of text, in order, without those that are left out. Errors: an expression that takes too
// long, and those of piece.
func (x *Expression) Split(text string, piece func(string) error) (err error) {
	from, to, kind := 0, 0, false // the piece that may go on, and whether it counts as a match
	pass := func() bool {
		if from < to && (!kind || x.behavior != "Removed") {
			err = piece(text[from:to])
		}
		from = to
		return err == nil
	}
	add := func(end int, match bool) bool {
		if match = match != x.invert; to == end || from < to && !x.joins(kind, match) && !pass() {
			return err == nil
		}
		to, kind = end, match
		return true
	}
	read, at := 0, 0 // characters, and their bytes
	index := func(i int) int {
		for ; read < i; read++ {
			_, n := utf8.DecodeRuneInString(text[at:])
			at += n
		}
		return at
	}
	var took time.Duration // without that of piece
	start := time.Now()
	failed := x.re.FindRunesMatches([]rune(text), 0, func(m regexp2.MatchView) bool {
		took += time.Since(start)
		i, n, _ := m.GroupRange(0)
		goes := add(index(i), false) && add(index(i+n), true)
		start = time.Now()
		return goes && took <= maxSplit
	})
	switch {
	case err != nil:
		return err
	case took > maxSplit:
		return fmt.Errorf("tokenizer: expression %.80q takes too long", x.re.String())
	case failed != nil:
		return fmt.Errorf("tokenizer: expression %.80q: %w", x.re.String(), failed)
	}
	if add(len(text), false) {
		pass()
	}
	return err
}

// joins reports whether a span belongs to the piece before it.
func (x *Expression) joins(before, match bool) bool {
	switch x.behavior {
	case "Contiguous":
		return before == match
	case "MergedWithPrevious":
		return match && !before
	case "MergedWithNext":
		return before && !match
	}
	return false
}
