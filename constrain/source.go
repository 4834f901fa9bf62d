package constrain

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"grove/constrain/grammar"
	"grove/constrain/lark"
	"grove/constrain/regex"
	"grove/constrain/schema"
	"grove/constrain/vocab"
	"grove/internal/text/token"
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
		{"Tree", spec.Tree != nil}, {"Automaton", spec.Automaton != nil}, {"Source", spec.Source != nil}, {"Check", spec.Check != nil}, {"Monitor", spec.Monitor != nil},
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
	case spec.FreeOrder && spec.Schema == nil && spec.Tree == nil:
		return "", errors.New("constrain: FreeOrder is of Schema, and there is none")
	case spec.Whitespace != "" && spec.Schema == nil && spec.Tree == nil:
		return "", errors.New("constrain: Whitespace is of Schema, and there is none")
	case (spec.Ends != nil || spec.Weights) && spec.Check == nil:
		return "", errors.New("constrain: Ends and Weights are of Check, and there is none")
	}
	return kinds[0], nil
}

// source returns the grammar of a spec of a kind.
func (spec *Spec) source(kind string, v *Vocabulary) (grammar.Source, error) {
	switch kind {
	case "Schema":
		return spec.schema(spec.Schema, newStore())
	case "Tree":
		return spec.tree(v)
	case "Grammar":
		return notation(spec.Grammar, v)
	case "Regex":
		return regexSource(spec.Regex)
	}
	return spec.Source()
}

// whitespaces are the values of [Spec]'s Whitespace.
var whitespaces = map[string]schema.Whitespace{"": schema.Bounded, "compact": schema.Compact, "spaced": schema.Spaced, "any": schema.Any}

// storeNodes bounds the expressions of one constraint: they take about 32 MiB.
const storeNodes = 500_000

// newStore returns a store for the lexemes of one constraint.
func newStore() *regex.Store { return regex.New(regex.Limits{Nodes: storeNodes}) }

// schema returns the grammar of a JSON Schema, with its lexemes in a store.
func (spec *Spec) schema(text []byte, store *regex.Store) (grammar.Source, error) {
	o := schema.Options{Store: store, PlainIntegers: !spec.FreeOrder && !spec.AnyNumbers}
	if spec.FreeOrder {
		o.Order = schema.Free
	}
	var ok bool
	if o.Whitespace, ok = whitespaces[spec.Whitespace]; !ok {
		return nil, fmt.Errorf("constrain: Whitespace is %.40q; it must be compact, spaced, any or empty", spec.Whitespace)
	}
	if o.Whitespace == schema.Any {
		o.Escapes = schema.AnyEscape
	}
	return schema.Compile(text, o)
}

// tree returns the grammar of a tree.
func (spec *Spec) tree(v *Vocabulary) (grammar.Source, error) {
	store := newStore()
	if spec.Whitespace != "any" {
		store.PlainQuotes()
	}
	return CompileNest(*spec.Tree, NestOptions{
		Store: store, Spell: v.Spell, Ends: func(id token.ID) bool { return v.trie.Kind(id) == vocab.End },
		Value: func(text json.RawMessage) (grammar.Source, error) { return spec.schema(text, store) },
		Texts: func(text json.RawMessage) (regex.ID, error) { return schema.Texts(text, schema.Options{Store: store}) },
		Held: func(syntax, text string) (grammar.Source, error) {
			if syntax == "regex" {
				id, err := regex.Whole(store, text)
				if err != nil {
					return nil, err
				}
				return grammar.Lexeme(store, id)
			}
			return lark.Parse([]byte(text), lark.Options{Store: store, Special: func(token.ID) bool { return false }})
		},
	})
}

// Grammars returns the names that [Spec]'s Grammar may have.
func Grammars() []string { return lark.Names() }

// notation returns the grammar of a text in one of the notations, or of a name.
func notation(text string, v *Vocabulary) (grammar.Source, error) {
	special := func(id token.ID) bool { return v.trie.Kind(id) == vocab.Special }
	if slices.Contains(lark.Names(), text) {
		shipped, err := lark.Shipped(text)
		if err != nil {
			return nil, err
		}
		text = string(shipped)
	}
	if lark.Detect([]byte(text)) == lark.GBNF {
		return grammar.ParseGBNF([]byte(text), grammar.GBNFOptions{Store: newStore(), Token: v.text.ID, Special: special})
	}
	return lark.Parse([]byte(text), lark.Options{Store: newStore(), Token: v.text.ID, Special: special})
}

// regexSource returns the grammar of a regular expression.
func regexSource(text string) (grammar.Source, error) {
	s := newStore()
	id, err := regex.Whole(s, text)
	if err != nil {
		return nil, fmt.Errorf("constrain: the regular expression: %w", err)
	}
	return grammar.Lexeme(s, id)
}
