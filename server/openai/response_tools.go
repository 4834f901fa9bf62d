package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"grove/server/wire"
)

// responseTool is a function, a tool whose input is a text, a namespace of both, or one that the server does not offer.
type responseTool struct {
	toolFields
	raw json.RawMessage // as it came
}

// toolFields are the fields of the tools that the server offers.
type toolFields struct {
	Type        string           `json:"type" bytes:"256"`
	Name        string           `json:"name" bytes:"1024"`
	Description *string          `json:"description"`
	Parameters  json.RawMessage  `json:"parameters"`
	Strict      *bool            `json:"strict"`
	Format      *customFormat    `json:"format"`            // of custom: the form of the text; nil: any
	Tools       []namespacedTool `json:"tools" most:"1024"` // of a namespace
}

// Tolerated implements [wire.Tolerant].
func (toolFields) Tolerated() []wire.Toleration {
	return []wire.Toleration{
		{Names: "defer_loading allowed_callers output_schema", Values: "*", Client: "OpenAI, Codex", Reason: "tools are always there, and the model calls them itself"},
	}
}

// customFormat is the form of the text of a custom tool.
type customFormat struct {
	Type       string `json:"type" bytes:"256"`
	Syntax     string `json:"syntax,omitempty" bytes:"256"`
	Definition string `json:"definition,omitempty" bytes:"1048576"`
}

// namespacedTool is a tool of a namespace.
type namespacedTool struct{ toolFields }

// The types of tools that the server offers to the model.
const (
	toolFunction  = "function"
	toolCustom    = "custom"
	toolNamespace = "namespace"
)

// ReadJSON implements [wire.Own]. Tools that the server does not offer may have any fields.
func (t *responseTool) ReadJSON(r *wire.Reader) (err error) {
	t.raw, err = t.read(r)
	return err
}

// ReadJSON implements [wire.Own].
func (t *namespacedTool) ReadJSON(r *wire.Reader) error {
	_, err := t.read(r)
	return err
}

func (t *toolFields) read(r *wire.Reader) (json.RawMessage, error) {
	raw, kind, err := r.Typed()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "", toolFunction, toolCustom, toolNamespace:
		return raw, r.Within(raw, t)
	}
	t.Type = kind
	return raw, nil
}

// MarshalJSON shows a tool as it came; a function has all its fields.
func (t responseTool) MarshalJSON() ([]byte, error) {
	if t.Type != toolFunction {
		return t.raw, nil
	}
	return wire.Marshal(struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description *string         `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	}{t.Type, t.Name, t.Description, t.Parameters, t.Strict})
}

// Like implements [wire.Like].
func (responseTool) Like() any { return toolFields{} }

// offered is a tool as its calls name it.
type offered struct {
	name, namespace string
	custom          bool
}

// offers are the tools of a request as the model sees them: functions.
type offers struct {
	list  []json.RawMessage  // in the form of the chat route
	named map[string]offered // by the names that the model has for them
	kinds map[string]bool    // the types of tools that the model does not see
	left  []string           // the places and types of those
}

// inNamespace returns the name that the model has for a tool of a namespace.
func inNamespace(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return strings.TrimSuffix(namespace, "__") + "__" + name
}

// offer returns the tools as the model sees them.
func (q *responsesRequest) offer() (*offers, error) {
	o := &offers{named: map[string]offered{}, kinds: map[string]bool{}}
	var refused []error
	for i, t := range q.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if t.Type != toolNamespace {
			refused = append(refused, o.add(at, "", &t.toolFields))
			continue
		}
		if t.Name == "" {
			refused = append(refused, wire.Refuse(at, "%s: the namespace has no name", at))
		}
		for j, one := range t.Tools {
			refused = append(refused, o.add(fmt.Sprintf("%s.tools[%d]", at, j), t.Name, &one.toolFields))
		}
	}
	return o, wire.All(refused...)
}

// add adds a tool that is at a place of the request.
func (o *offers) add(at, namespace string, t *toolFields) error {
	name := inNamespace(namespace, t.Name)
	_, taken := o.named[name]
	switch {
	case t.Type == "":
		return wire.Refuse(at, "%s has no type", at)
	case t.Type != toolFunction && t.Type != toolCustom:
		o.kinds[t.Type] = true
		o.left = append(o.left, at+" "+wire.Clip(t.Type))
		return nil
	case t.Name == "":
		return wire.Refuse(at, "%s is not a %s with a name", at, t.Type)
	case taken:
		return wire.Refuse(at, "%s: two tools are called %q", at, wire.Clip(name))
	}
	raw, err := t.function(at, name)
	if err != nil {
		return err
	}
	o.list = append(o.list, raw)
	o.named[name] = offered{t.Name, namespace, t.Type == toolCustom}
	return nil
}

// chatFunction is a function in the form of the chat route, with the fields in the order of their names.
type chatFunction struct {
	Function struct {
		Description *string         `json:"description,omitempty"`
		Format      *customFormat   `json:"format,omitempty"`
		Name        string          `json:"name"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      bool            `json:"strict,omitempty"`
	} `json:"function"`
	Type string `json:"type"`
}

// textParameters are the parameters of a tool whose input is a text.
const textParameters = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// function returns a tool as a function of a name. The calls of one whose text has a grammar are held to it.
func (t *toolFields) function(at, name string) (json.RawMessage, error) {
	f := chatFunction{Type: toolFunction}
	f.Function.Description, f.Function.Name, f.Function.Parameters = t.Description, name, t.Parameters
	f.Function.Strict = t.Strict != nil && *t.Strict
	if t.Type == toolCustom {
		f.Function.Parameters, f.Function.Strict = json.RawMessage(textParameters), false
		switch c := t.Format; {
		case c == nil, c.Type == "text":
		case c.Type != "grammar", c.Syntax != "lark" && c.Syntax != "regex":
			return nil, wire.Refuse(at+".format", "%s.format: type %q with syntax %q is not known; text, and grammar with syntax lark or regex, are", at, wire.Clip(c.Type), wire.Clip(c.Syntax))
		case c.Definition == "":
			return nil, wire.Refuse(at+".format", "%s.format: the grammar has no definition", at)
		default:
			f.Function.Format, f.Function.Strict = c, true
		}
	}
	raw, err := wire.Marshal(f)
	if err != nil {
		return nil, wire.Refuse(at, "%s: %v", at, err)
	}
	return raw, nil
}

// chosen is a tool that tool_choice names, or the list of those that it allows.
type chosen struct {
	Type      string            `json:"type"`
	Name      string            `json:"name,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Mode      string            `json:"mode,omitempty"`
	Tools     []json.RawMessage `json:"tools,omitempty"`
}

// choice returns tool_choice in the form of the chat route. A tool that the model does not see cannot be forced; where some are allowed, it is
// left out of them.
func (o *offers) choice(raw json.RawMessage) (json.RawMessage, error) {
	var c chosen
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &c) != nil {
		return raw, nil // a word, or what the chat route refuses
	}
	if c.Type != "allowed_tools" {
		return o.forced(raw, &c)
	}
	var all []json.RawMessage
	for i, one := range c.Tools {
		var t chosen
		if json.Unmarshal(one, &t) != nil || t.Type == "" {
			return raw, nil // what the chat route refuses
		}
		if o.kinds[t.Type] {
			o.left = append(o.left, fmt.Sprintf("tool_choice.tools[%d] %s", i, wire.Clip(t.Type)))
			continue
		}
		named, err := o.forced(one, &t)
		if err != nil {
			return nil, err
		}
		all = append(all, named)
	}
	if c.Tools = all; len(all) == 0 && len(o.left) > 0 && c.Mode == "auto" {
		return json.RawMessage(`"none"`), nil
	}
	return wire.Marshal(c)
}

// forced returns the choice of one tool, as a function.
func (o *offers) forced(raw json.RawMessage, c *chosen) (json.RawMessage, error) {
	switch {
	case c.Type == toolFunction, c.Type == toolCustom:
		if raw, err := wire.Marshal(chosen{Type: toolFunction, Name: o.nameOf(c.Namespace, c.Name)}); c.Name != "" || err != nil {
			return raw, err
		}
	case o.kinds[c.Type]:
		return nil, wire.Unsupported("tool_choice", fmt.Sprintf("a call of the tool %q is asked for, and the server does not offer it to the model", wire.Clip(c.Type)))
	}
	return raw, nil
}

// nameOf returns the name that the model has for a tool. A tool of a namespace may be named without it, where no other has the name.
func (o *offers) nameOf(namespace, name string) string {
	full := inNamespace(namespace, name)
	if _, known := o.named[full]; known || namespace != "" {
		return full
	}
	var found []string
	for full, t := range o.named {
		if t.name == name {
			found = append(found, full)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return full
}
