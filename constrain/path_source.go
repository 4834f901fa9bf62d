package constrain

import (
	"grove/constrain/grammar"
	"grove/constrain/regex"
)

// PathSource returns a function that makes the grammar of a machine's texts, as the field Source of a constraint takes it.
// The machine is comparable, as Go has it: all of this package are.
func PathSource(m PathMachine) func() (grammar.Source, error) {
	return func() (grammar.Source, error) {
		s := regex.New(regex.Limits{})
		return grammar.Lexeme(s, s.Machine(m, PathStart))
	}
}
