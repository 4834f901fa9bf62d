package structured

import (
	"encoding/json"
	"slices"
	"strings"

	exact "github.com/go-json-experiment/json" // names of fields are those of their case

	"grove/server/wire"
)

// Tools says which tools a request's answer may call, and whether it must.
type Tools struct {
	Off     bool     // none may be called
	Must    bool     // one or more are called
	Allowed []string // the names of those that may be called; nil: all
}

// named is a function that a choice names, in the forms of chat and of responses.
type named struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Function *struct {
		Name string `json:"name"`
	} `json:"function"`
}

func (n named) name() string {
	if n.Function != nil {
		return n.Function.Name
	}
	return n.Name
}

// ChoiceOf reads tool_choice, in the forms of OpenAI's chat and responses: auto, none, required, a function, or allowed tools.
func ChoiceOf(raw json.RawMessage) (t Tools, err error) {
	const field = "tool_choice"
	if text := strings.TrimSpace(string(raw)); text == "" || text == "null" {
		return t, nil
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return mode(field, word)
	}
	var o struct {
		named `json:",inline"`
		Mode  string  `json:"mode"`
		Tools []named `json:"tools"`
		Of    *struct {
			Mode  string  `json:"mode"`
			Tools []named `json:"tools"`
		} `json:"allowed_tools"`
	}
	if err := exact.Unmarshal(raw, &o); err != nil {
		return t, wire.Refuse(field, "%s: it must be auto, none, required, a function or allowed tools", field)
	}
	switch o.Type {
	case "function":
		if o.name() == "" {
			return t, wire.Refuse(field, "%s: the function has no name", field)
		}
		return Tools{Must: true, Allowed: []string{o.name()}}, nil
	case "allowed_tools":
		if o.Of != nil {
			o.Mode, o.Tools = o.Of.Mode, o.Of.Tools
		}
		if t, err = mode(field+".mode", o.Mode); err != nil {
			return t, err
		}
		for i, n := range o.Tools {
			if n.Type != "function" || n.name() == "" {
				return t, wire.Refuse(field, "%s.tools[%d] is not a function with a name", field, i)
			}
			t.Allowed = append(t.Allowed, n.name())
		}
		if len(t.Allowed) == 0 {
			return t, wire.Refuse(field, "%s: no tool is allowed; none says that", field)
		}
		return t, nil
	}
	return t, wire.Refuse(field, "%s: type %q is not known; function and allowed_tools are", field, wire.Clip(o.Type))
}

// mode reads a choice that is a word.
func mode(field, word string) (Tools, error) {
	switch word {
	case "auto":
		return Tools{}, nil
	case "none":
		return Tools{Off: true}, nil
	case "required":
		return Tools{Must: true}, nil
	}
	return Tools{}, wire.Refuse(field, "%s %q is not known; auto, none and required are", field, wire.Clip(word))
}

// Check refuses a choice of tools that there are not.
func (t Tools) Check(names []string) error {
	for _, name := range t.Allowed {
		if !slices.Contains(names, name) {
			return wire.Refuse("tool_choice", "tool_choice: there is no tool %q", wire.Clip(name))
		}
	}
	if t.Must && len(names) == 0 {
		return wire.Refuse("tool_choice", "tool_choice: a call is asked for, and there is no tool")
	}
	return nil
}
