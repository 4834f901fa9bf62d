package chat

import (
	"encoding/json"
	"fmt"

	"grove/internal/text/jinja"
)

// size returns the bytes of the texts of a message, as often as a template sees them.
func (m *Message) size() int {
	n := len(m.Content) + 3*len(m.Reasoning) + len(m.ToolCallID) + len(m.Name)
	for _, c := range m.ToolCalls {
		n += len(c.ID) + len(c.Function.Name) + len(c.Function.Arguments)
	}
	return n
}

// toValues returns messages as a template sees them, in one of the forms. Calls are numbered sources from first.
func toValues(turns []turn, f form, first int) (*jinja.List, error) {
	list := &jinja.List{}
	for _, t := range turns {
		v := &jinja.Map{}
		v.Set(jinja.Text("role"), jinja.Text(t.Role))
		if len(t.ToolCalls) > 0 && t.Content == "" && f.noContent {
			v.Set(jinja.Text("content"), nil)
		} else {
			v.Set(jinja.Text("content"), t.content())
		}
		thinking := t.Reasoning
		if t.Content != "" && len(t.ToolCalls) > 0 {
			thinking = "" // gpt-oss refuses it here
		}
		further := [][2]string{{"reasoning_content", t.Reasoning}, {"reasoning", t.Reasoning}, {"thinking", thinking}, {"tool_call_id", t.ToolCallID}, {"name", t.Name}}
		for _, f := range further {
			if f[1] != "" {
				v.Set(jinja.Text(f[0]), jinja.Input(f[1]))
			}
		}
		if len(t.ToolCalls) > 0 {
			calls, err := callValues(t.ToolCalls, f, first)
			if err != nil {
				return nil, blame(t.at, "%w", err)
			}
			v.Set(jinja.Text("tool_calls"), calls)
			first += len(t.ToolCalls)
		}
		list.Items = append(list.Items, v)
	}
	return list, nil
}

func callValues(calls []ToolCall, f form, first int) (*jinja.List, error) {
	list := &jinja.List{}
	for i, c := range calls {
		text := string(c.Function.Arguments)
		if s := ""; json.Unmarshal(c.Function.Arguments, &s) == nil { // OpenAI's API holds the object in a string
			text = s
		}
		if text == "" {
			text = "{}"
		}
		arguments, err := jinja.FromJSON(first+i, []byte(text))
		if err != nil {
			return nil, fmt.Errorf("arguments of %.40q: %w", c.Function.Name, err)
		}
		if f.textArguments {
			arguments = jinja.From(first+i, text)
		}
		function, call := &jinja.Map{}, &jinja.Map{}
		function.Set(jinja.Text("name"), jinja.From(first+i, c.Function.Name))
		function.Set(jinja.Text("arguments"), arguments)
		call.Set(jinja.Text("id"), jinja.From(first+i, c.ID))
		call.Set(jinja.Text("type"), jinja.Text("function"))
		call.Set(jinja.Text("function"), function)
		list.Items = append(list.Items, call)
	}
	return list, nil
}
