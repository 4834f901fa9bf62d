package chat

import (
	"encoding/json"
	"fmt"

	"grove/text/jinja/value"
)

// toValues returns messages as a template sees them, in one of the forms, and their characters.
func toValues(messages []Message, f form) (list *value.List, size int, err error) {
	list = &value.List{}
	for i, m := range messages {
		v := &value.Map{}
		set := func(key, text string) {
			v.Set(value.Template(key), value.Input(text))
			size += len(text)
		}
		v.Set(value.Template("role"), value.Template(m.Role))
		if len(m.ToolCalls) > 0 && m.Content == "" && f.noContent {
			v.Set(value.Template("content"), nil)
		} else {
			set("content", m.Content)
		}
		for _, further := range [][2]string{{"reasoning_content", m.Reasoning}, {"tool_call_id", m.ToolCallID}, {"name", m.Name}} {
			if further[1] != "" {
				set(further[0], further[1])
			}
		}
		if len(m.ToolCalls) > 0 {
			calls, n, err := callValues(m.ToolCalls, f)
			if err != nil {
				return nil, 0, fmt.Errorf("message %d: %w", i+1, err)
			}
			v.Set(value.Template("tool_calls"), calls)
			size += n
		}
		list.Items = append(list.Items, v)
	}
	return list, size, nil
}

func callValues(calls []ToolCall, f form) (list *value.List, size int, err error) {
	list = &value.List{}
	for _, c := range calls {
		arguments, n, err := argumentsValue(c.Function.Arguments, f)
		if err != nil {
			return nil, 0, fmt.Errorf("arguments of %.40q: %w", c.Function.Name, err)
		}
		function, call := &value.Map{}, &value.Map{}
		function.Set(value.Template("name"), value.Input(c.Function.Name))
		function.Set(value.Template("arguments"), arguments)
		call.Set(value.Template("id"), value.Input(c.ID))
		call.Set(value.Template("type"), value.Template("function"))
		call.Set(value.Template("function"), function)
		list.Items = append(list.Items, call)
		size += n + len(c.Function.Name) + len(c.ID)
	}
	return list, size, nil
}

// argumentsValue returns a call's arguments: the object, or its JSON as text.
func argumentsValue(data json.RawMessage, f form) (v value.Value, size int, err error) {
	text := string(data)
	if s := ""; json.Unmarshal(data, &s) == nil { // OpenAI's API holds the object in a string
		text = s
	}
	if text == "" {
		text = "{}"
	}
	if v, err = value.FromJSON([]byte(text)); err != nil {
		return nil, 0, err
	}
	if f.textArguments {
		v = value.Input(text)
	}
	return v, len(text), nil
}
