package regex

import (
	"fmt"
)

// Bounds of an expression.
const (
	PatternMaxLength = 1 << 16 // bytes of a source
	PatternMaxDepth  = 1000    // groups within groups
	PatternMaxCount  = 1 << 20 // the number in {n,m}
	maxWork          = 1 << 21 // ranges of characters that classes make
	maxCopies        = 256     // copies of a repetition whose parts look around
)

// PatternError says why an expression is refused.
type PatternError struct {
	Source  string // the expression
	At      int    // byte of Source
	Problem string // what is wrong there
}

// Error returns the problem and its place.
func (e *PatternError) Error() string {
	return fmt.Sprintf("pattern: %.60q: byte %d: %s", e.Source, e.At, e.Problem)
}

// ECMA returns the texts in which an expression of ECMA-262 matches anywhere, as JSON Schema's keyword pattern asks. An
// expression that is refused is an [*Error]; a spent budget of s is its error.
func ECMA(s *Store, source string) (ID, error) {
	return compile(s, source, true)
}

// Whole returns the texts that an expression in the notation of RE2, Rust and Python matches from end to end. An
// expression that is refused is an [*Error]; a spent budget of s is its error.
func Whole(s *Store, source string) (ID, error) {
	return compile(s, source, false)
}

func compile(s *Store, source string, ecma bool) (ID, error) {
	p := &parser{source: source, ecma: ecma}
	root, err := p.parse()
	if err != nil {
		return Nothing, err
	}
	c := newCompiler(s, p)
	id := Nothing
	if ecma {
		id = c.search(root)
	} else {
		id = c.language(root, c.all(Epsilon))[0]
	}
	if c.err != nil {
		return Nothing, c.err
	}
	return id, s.Err()
}
