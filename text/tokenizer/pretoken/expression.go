package pretoken

import (
	"fmt"
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
	re, err := regexp2.Compile(expr, regexp2.Multiline)
	if err != nil {
		return nil, fmt.Errorf("expression %.80q: %.80v", expr, err)
	}
	re.MatchTimeout = maxMatch
	return &Expression{re, behavior, invert}, nil
}

// foreign names the part of an expression that Oniguruma reads in another way, or "": sets within sets, possessive quantifiers,
// some escapes.
func foreign(expr string) string {
	inside := false
	for i := 0; i < len(expr); i++ {
		rest := expr[i:]
		switch {
		case expr[i] == '\\' && len(rest) > 1:
			if strings.IndexByte("hHRXKGyY", rest[1]) >= 0 {
				return rest[:2]
			}
			i++
		case inside && (expr[i] == '[' || strings.HasPrefix(rest, "&&")):
			return "a set within a set"
		case inside:
			inside = expr[i] != ']'
		case expr[i] == '[':
			inside = true
		case len(rest) > 1 && rest[1] == '+' && strings.IndexByte("?*+", expr[i]) >= 0:
			return rest[:2]
		}
	}
	return ""
}

// span is a part of a text; it may be a match.
type span struct {
	from, to int
	match    bool
}

// Split calls piece with the pieces of text, in order, without those that are left out. Errors: an expression that takes too
// long.
func (x *Expression) Split(text string, piece func(string) error) error {
	spans, err := x.spans(text)
	if err != nil {
		return err
	}
	for _, s := range spans {
		if s.match && x.behavior == "Removed" {
			continue
		}
		if err := piece(text[s.from:s.to]); err != nil {
			return err
		}
	}
	return nil
}

// spans returns the pieces of text, including those that are left out.
func (x *Expression) spans(text string) ([]span, error) {
	var out []span
	add := func(s span) {
		if s.match = s.match != x.invert; s.from == s.to {
			return
		}
		if n := len(out); n > 0 && x.joins(out[n-1].match, s.match) {
			out[n-1].to, out[n-1].match = s.to, s.match
		} else {
			out = append(out, s)
		}
	}
	last := 0
	err := eachMatch(x.re, text, func(from, to int) {
		add(span{last, from, false})
		add(span{from, to, true})
		last = to
	})
	add(span{last, len(text), false})
	return out, err
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

// eachMatch calls found with the bounds of each match in text.
func eachMatch(re *regexp2.Regexp, text string, found func(from, to int)) error {
	runes := make([]rune, 0, len(text))
	at := make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		runes, at = append(runes, r), append(at, i)
		i += n
	}
	at = append(at, len(text))
	start := time.Now()
	late := false
	err := re.FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
		i, n, _ := m.GroupRange(0)
		found(at[i], at[i+n])
		late = time.Since(start) > maxSplit
		return !late
	})
	if late {
		return fmt.Errorf("tokenizer: expression %.80q takes too long", re.String())
	} else if err != nil {
		return fmt.Errorf("tokenizer: expression %.80q: %w", re.String(), err)
	}
	return nil
}
