package constrain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"grove/sample/constrain/gbnf"
	"grove/sample/constrain/grammar"
	"grove/sample/constrain/paths"
	"grove/sample/constrain/pattern"
	"grove/sample/constrain/regex"
	"grove/sample/constrain/vocab"
	"grove/text/token"
)

// The bounds of a list of choices.
const (
	maxChoices     = 1 << 20
	maxChoiceBytes = 16 << 20 // of all
)

// kind returns the name of a spec's kind.
func (spec *Spec) kind() (string, error) {
	var kinds []string
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"Schema", spec.Schema != nil}, {"Regex", spec.Regex != ""}, {"Grammar", spec.Grammar != ""}, {"Choices", spec.Choices != nil},
		{"Source", spec.Source != nil}, {"Check", spec.Check != nil}, {"Monitor", spec.Monitor != nil},
	} {
		if k.set {
			kinds = append(kinds, k.name)
		}
	}
	switch {
	case len(kinds) == 0:
		return "", errors.New("constrain: the constraint says nothing: set one of its kinds")
	case len(kinds) > 1:
		return "", fmt.Errorf("constrain: the constraint is of several kinds (%s): set one", strings.Join(kinds, ", "))
	case spec.FreeOrder && spec.Schema == nil:
		return "", errors.New("constrain: FreeOrder is of Schema, and there is none")
	case spec.Ends != nil && spec.Check == nil:
		return "", errors.New("constrain: Ends is of Check, and there is none")
	}
	return kinds[0], nil
}

// source returns the grammar of a spec of a kind.
func (spec *Spec) source(kind string, v *Vocabulary) (grammar.Source, error) {
	switch kind {
	case "Grammar":
		return spec.notation(v)
	case "Regex":
		return regexSource(spec.Regex)
	case "Choices":
		return choices(spec.Choices)
	case "Source":
		return spec.Source()
	}
	return nil, fmt.Errorf("constrain: %s is not built yet", kind)
}

// notation returns the grammar of a text in one of the notations.
func (spec *Spec) notation(v *Vocabulary) (grammar.Source, error) {
	if !strings.Contains(spec.Grammar, "::=") {
		return nil, errors.New("constrain: grammars of Lark are not built yet")
	}
	return gbnf.Parse([]byte(spec.Grammar), gbnf.Options{
		Token: v.text.ID, Special: func(id token.ID) bool { return v.trie.Kind(id) == vocab.Special },
	})
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
