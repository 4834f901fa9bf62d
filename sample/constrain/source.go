package constrain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"grove/sample/constrain/grammar"
	"grove/sample/constrain/paths"
	"grove/sample/constrain/pattern"
	"grove/sample/constrain/regex"
)

// The bounds of a list of choices.
const (
	maxChoices     = 1 << 20
	maxChoiceBytes = 16 << 20 // of all
)

// source returns the grammar of a spec.
func (spec *Spec) source(v *Vocabulary) (grammar.Source, error) {
	var kinds []string
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"Schema", spec.Schema != nil}, {"Regex", spec.Regex != ""}, {"Grammar", spec.Grammar != ""}, {"Choices", spec.Choices != nil}, {"Source", spec.Source != nil},
	} {
		if k.set {
			kinds = append(kinds, k.name)
		}
	}
	switch {
	case len(kinds) == 0:
		return nil, errors.New("constrain: the constraint says nothing: set one of its kinds")
	case len(kinds) > 1:
		return nil, fmt.Errorf("constrain: the constraint is of several kinds (%s): set one", strings.Join(kinds, ", "))
	case spec.FreeOrder && spec.Schema == nil:
		return nil, errors.New("constrain: FreeOrder is of Schema, and there is none")
	}
	switch kinds[0] {
	case "Regex":
		return regexSource(spec.Regex)
	case "Choices":
		return choices(spec.Choices)
	case "Source":
		return spec.Source()
	}
	return nil, fmt.Errorf("constrain: %s is not built yet", kinds[0])
}

// regexSource returns the grammar of a regular expression.
func regexSource(text string) (grammar.Source, error) {
	s := regex.New(regex.Limits{})
	id, err := pattern.Whole(s, text)
	if err != nil {
		return nil, fmt.Errorf("constrain: the regular expression: %w", err)
	}
	return grammar.Lexeme(s, id)
}

// choices returns the grammar of a list of texts.
func choices(list []string) (grammar.Source, error) {
	n := 0
	for _, text := range list {
		n += len(text)
	}
	if len(list) == 0 || len(list) > maxChoices || n > maxChoiceBytes {
		return nil, fmt.Errorf("constrain: %d choices of %d bytes; there must be 1 to %d, of %d bytes at most", len(list), n, maxChoices, maxChoiceBytes)
	}
	s := regex.New(regex.Limits{})
	all := regex.Nothing
	if slices.Contains(list, "") {
		all = regex.Epsilon
		list = slices.DeleteFunc(slices.Clone(list), func(text string) bool { return text == "" })
	}
	if len(list) > 0 {
		texts, err := paths.NewTexts(list)
		if err != nil {
			return nil, fmt.Errorf("constrain: %w", err)
		}
		all = s.Or(all, s.Machine(texts, paths.Start))
	}
	return grammar.Lexeme(s, all)
}
