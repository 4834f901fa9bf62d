package schema

import (
	"fmt"
	"strings"
)

// expression is the regular expressions of common parts with groups in groups as deep as said.
func expression(depth int) string {
	const (
		plain   = `[^\\^$.|?*+()\[\]{}\x00-\x1f]`
		escape  = `\\(?:[dDwWsStnrfv\\/^$.|?*+()\[\]{}]|x[0-7][0-9A-Fa-f])`
		inClass = `[^\\\[\]^\x00-\x1f&~-]|\\(?:[dDwWsStnrfv\\/^$.|?*+()\[\]{}-])`
	)
	class := `\[\^?(?:` + ordered('0', '9') + `|` + ordered('A', 'Z') + `|` + ordered('a', 'z') + `|` + inClass + `)+-?\]`
	count := `\{(?:[0-9]{1,3},?|` + pairs() + `)\}`
	quantifier := `(?:(?:[*+?]|` + count + `)\??)?`
	term := `(?:` + plain + `|` + escape + `|\.|` + class + `)` + quantifier + `|[\^$|]|\\[bB]`
	level := `(?:` + term + `)*`
	for range depth {
		level = `(?:` + term + `|\((?:\?:)?` + level + `\)` + quantifier + `)*`
	}
	return level
}

// ordered is the ranges x-y of a class where x is not after y.
func ordered(lo, hi byte) string {
	var ways []string
	for c := lo; c <= hi; c++ {
		ways = append(ways, fmt.Sprintf(`%c-[%c-%c]`, c, c, hi))
	}
	return strings.Join(ways, "|")
}

// pairs is n,m with n <= m, of one digit each or of more digits in m.
func pairs() string {
	return strings.ReplaceAll(ordered('0', '9'), "-[", ",[") + `|[0-9],[1-9][0-9]|[1-9][0-9],[1-9][0-9]{2}`
}
