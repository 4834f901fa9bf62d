package chat

import (
	"encoding/json"
	"fmt"

	"grove/text/jinja"
)

// toValues returns messages as a template sees them, in one of the forms, and the size of their texts in bytes.
func toValues(messages []Message, f form) (list *jinja.List, size int, err error) {
	list = &jinja.List{}
	for i, m := range messages {
		v := &jinja.Map{}
		set := func(key, text string) {
			v.Set(jinja.Text(key), jinja.Input(text))
			size += len(text)
		}
		v.Set(jinja.Text("role"), jinja.Text(m.Role))
		if len(m.ToolCalls) > 0 && m.Content == "" && f.noContent {
			v.Set(jinja.Text("content"), nil)
		} else {
			set("content", m.Content)
		}
		thinking := m.Reasoning
		if m.Content != "" && len(m.ToolCalls) > 0 {
			thinking = "" // gpt-oss refuses it here
		}
		further := [][2]string{{"reasoning_content", m.Reasoning}, {"reasoning", m.Reasoning}, {"thinking", thinking}, {"tool_call_id", m.ToolCallID}, {"name", m.Name}}
		for _, f := range further {
			if f[1] != "" {
				set(f[0], f[1])
			}
		}
		if len(m.ToolCalls) > 0 {
			calls, n, err := callValues(m.ToolCalls, f)
			if err != nil {
				return nil, 0, fmt.Errorf("message %d: %w", i+1, err)
			}
			v.Set(jinja.Text("tool_calls"), calls)
			size += n
		}
		list.Items = append(list.Items, v)
	}
	return list, size, nil
}

func callValues(calls []ToolCall, f form) (list *jinja.List, size int, err error) {
	list = &jinja.List{}
	for _, c := range calls {
		arguments, n, err := argumentsValue(c.Function.Arguments, f)
		if err != nil {
			return nil, 0, fmt.Errorf("arguments of %.40q: %w", c.Function.Name, err)
		}
		function, call := &jinja.Map{}, &jinja.Map{}
		function.Set(jinja.Text("name"), jinja.Input(c.Function.Name))
		function.Set(jinja.Text("arguments"), arguments)
		call.Set(jinja.Text("id"), jinja.Input(c.ID))
		call.Set(jinja.Text("type"), jinja.Text("function"))
		call.Set(jinja.Text("function"), function)
		list.Items = append(list.Items, call)
		size += n + len(c.Function.Name) + len(c.ID)
	}
	return list, size, nil
}

// argumentsValue returns the arguments of a call, as a dict or as a string of JSON, and the size of the JSON in bytes.
func argumentsValue(data json.RawMessage, f form) (v jinja.Value, size int, err error) {
	text := string(data)
	if s := ""; json.Unmarshal(data, &s) == nil { // OpenAI's API holds the object in a string
		text = s
	}
	if text == "" {
		text = "{}"
	}
	if v, err = jinja.FromJSON([]byte(text)); err != nil {
		return nil, 0, err
	}
	if f.textArguments {
		v = jinja.Input(text)
	}
	return v, len(text), nil
}
