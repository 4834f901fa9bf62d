package structured

import (
	"encoding/json"
	"fmt"
	"strings"

	exact "github.com/go-json-experiment/json" // names of fields are those of their case

	"grove/internal/text/calls"
	"grove/server/wire"
)

// tags are structural tags: free text, in which a trigger begins a structure.
type tags struct {
	Structures []structure `json:"structures"`
	Triggers   []string    `json:"triggers"`
}

// structure is a value of a schema between two texts.
type structure struct {
	Begin  string          `json:"begin"`
	Schema json.RawMessage `json:"schema"`
	End    string          `json:"end"`
}

// tagged returns the grammar of the structural tags of a document.
func tagged(field string, raw json.RawMessage) (calls.Grammar, error) {
	var t struct {
		Type   string          `json:"type"`
		Format json.RawMessage `json:"format"`
		tags   `json:",inline"`
	}
	if err := exact.Unmarshal(raw, &t); err != nil {
		return calls.Grammar{}, wire.Refuse(field, "%s: it must be an object with structures and triggers", field)
	}
	if len(t.Format) > 0 && string(t.Format) != "null" {
		return calls.Grammar{}, wire.Unsupported(field, "structures and triggers are supported, a format is not")
	}
	return t.grammar(field)
}

// The bounds of structural tags.
const (
	maxStructures = 1024
	maxTriggers   = 64
)

// grammar returns the grammar of texts with structures; no text begins a trigger without its structure.
func (t tags) grammar(field string) (calls.Grammar, error) {
	switch {
	case len(t.Structures) == 0 || len(t.Structures) > maxStructures:
		return calls.Grammar{}, wire.Refuse(field, "%s: %d structures; it must have from 1 to %d", field, len(t.Structures), maxStructures)
	case len(t.Triggers) == 0 || len(t.Triggers) > maxTriggers:
		return calls.Grammar{}, wire.Refuse(field, "%s: %d triggers; it must have from 1 to %d", field, len(t.Triggers), maxTriggers)
	}
	for i, begin := range t.Triggers {
		if begin == "" {
			return calls.Grammar{}, wire.Refuse(field, "%s.triggers[%d]: it is empty", field, i)
		}
	}
	var all []calls.Grammar
	for i, s := range t.Structures {
		found := false
		for _, begin := range t.Triggers {
			found = found || strings.HasPrefix(s.Begin, begin)
		}
		if !found {
			return calls.Grammar{}, wire.Refuse(field, "%s.structures[%d].begin: %q begins with no trigger", field, i, wire.Clip(s.Begin))
		}
		schema := s.Schema
		if len(schema) == 0 {
			schema = json.RawMessage("true")
		}
		one := calls.All(calls.Mark(s.Begin), calls.Value(schema), calls.Mark(s.End))
		one.Name = fmt.Sprintf("structures[%d]", i)
		all = append(all, one)
	}
	free := calls.Any(t.Triggers...)
	return calls.All(free, calls.Times(calls.All(calls.One(all...), free), 0, -1)), nil
}
