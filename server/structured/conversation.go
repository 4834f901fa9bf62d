package structured

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	exact "github.com/go-json-experiment/json" // names of fields are those of their case

	"grove"
	"grove/internal/text/calls"
	"grove/server/wire"
)

// Conversation has the values that decide the form of an answer to a conversation, besides the fields.
type Conversation struct {
	Options *grove.ChatOptions // with the tools that the prompt shows
	Prompt  *grove.ChatPrompt
	Choice  Tools
	Strict  []string // names of the tools whose calls are held to their functions
}

// tool is a function of a conversation.
type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name   string `json:"name"`
		Strict bool   `json:"strict"`
	} `json:"function"`
}

// Names returns the names of tools, and of those that are strict. Errors name the tool that is no function, or has the name of another.
func Names(tools []json.RawMessage) (names, strict []string, err error) {
	for i, raw := range tools {
		var t tool
		name := fmt.Sprintf("tools[%d]", i)
		switch err := exact.Unmarshal(raw, &t); {
		case err != nil || t.Type != "function" || t.Function.Name == "":
			return nil, nil, wire.Refuse(name, "%s is not a function with a name", name)
		case slices.Contains(names, t.Function.Name):
			return nil, nil, wire.Refuse(name, "%s: two tools are called %q", name, wire.Clip(t.Function.Name))
		}
		if names = append(names, t.Function.Name); t.Function.Strict {
			strict = append(strict, t.Function.Name)
		}
	}
	return names, strict, nil
}

// Form returns the form of the answers to a conversation, of which the fields ask for another: nil, or a form of the content. Calls are
// held to their functions where one must be made, where only some tools are allowed, and where a function is strict or the content has a
// schema; then the arguments of all functions keep to their schemas.
func (c *Conversation) Form(content *Form) (*Form, error) {
	strict, functions, err := c.functions()
	if err != nil {
		return nil, err
	}
	held := c.Choice.Must || c.Choice.Allowed != nil || strict || content != nil && content.Kind == Schema
	switch {
	case len(functions) == 0:
		return c.behindThoughts(content)
	case content != nil && content.Kind != Schema:
		return nil, wire.Refuse(content.Field, "%s: the answer may have calls of tools, which the field does not know; set tool_choice to none, or use response_format", content.Field)
	case !held:
		return nil, nil
	}
	o := calls.Options{Functions: functions, Remarks: !c.Choice.Must, Tail: c.Prompt.Tail, Quiet: c.quiet()}
	if c.Choice.Must {
		o.Least, content = 1, nil
	}
	if c.Options.OneCall {
		o.Most = 1
	}
	field := "tools"
	if content != nil {
		value := calls.Value(content.Schema)
		o.Content, field = &value, content.Field
	}
	tree, err := c.Prompt.Style.Answer(c.Prompt.Format, o)
	if err != nil {
		return nil, wire.Refuse("tools", "tools: %s", strings.TrimPrefix(err.Error(), "calls: "))
	}
	return &Form{Field: field, Kind: Tree, Tree: tree}, nil
}

// quiet reports whether the model does not think.
func (c *Conversation) quiet() bool { return c.Options.Reasoning == grove.ReasoningOff }

// functions returns the functions that may be called, and whether one of them is strict.
func (c *Conversation) functions() (strict bool, all []calls.Function, err error) {
	if c.Choice.Off {
		return false, nil, nil
	}
	read, err := calls.Functions(c.Options.Tools)
	if err != nil {
		return false, nil, wire.Refuse("tools", "%s", strings.TrimPrefix(err.Error(), "calls: "))
	}
	for _, f := range read {
		if c.Choice.Allowed != nil && !slices.Contains(c.Choice.Allowed, f.Name) {
			continue
		}
		f.Loose = !slices.Contains(c.Strict, f.Name)
		strict = strict || !f.Loose
		all = append(all, f)
	}
	return strict, all, nil
}

// behindThoughts returns the form of content, which comes behind thoughts, and with gpt-oss in a channel of its own.
func (c *Conversation) behindThoughts(content *Form) (*Form, error) {
	if content == nil {
		return nil, nil
	}
	form := *content
	switch channels := c.Prompt.Format.Channels(); {
	case form.Kind == Tree:
		form.Tree = calls.Behind(c.Prompt.Format, c.Prompt.Tail, form.Tree, c.quiet())
	case channels && form.Kind != Schema:
		return nil, wire.Unsupported(content.Field, "answers of this model are messages in channels, which are held to schemas alone")
	case channels:
		form.Kind, form.Tree = Tree, calls.Behind(c.Prompt.Format, c.Prompt.Tail, calls.Value(content.Schema), c.quiet())
	default:
		form.Thoughts = !c.quiet()
	}
	return &form, nil
}
