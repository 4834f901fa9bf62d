package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
	list, values := &jinja.List{}, 0
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
			calls, err := callValues(t.ToolCalls, f, first, &values)
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

// MaxValues bounds the names and values of JSON in the arguments of the calls of a conversation together.
const MaxValues = 100_000

// ErrValues reports arguments of calls with more values.
var ErrValues = fmt.Errorf("the arguments of calls have more than %d values of JSON", MaxValues)

// jsonValues returns how many names and values a text of JSON has, up to where it is none. It holds no more than the text.
func jsonValues(text string) (n int) {
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for n <= MaxValues {
		t, err := d.ReadToken()
		if err != nil {
			break
		}
		if k := t.Kind(); k != jsontext.KindEndObject && k != jsontext.KindEndArray {
			n++
		}
	}
	return n
}

// callValues returns calls as a template sees them. It adds the values of their arguments to those of calls before.
func callValues(calls []ToolCall, f form, first int, values *int) (*jinja.List, error) {
	list := &jinja.List{}
	for i, c := range calls {
		text := string(c.Function.Arguments)
		if s := ""; json.Unmarshal(c.Function.Arguments, &s) == nil { // OpenAI's API holds the object in a string
			text = s
		}
		if text == "" {
			text = "{}"
		}
		if *values += jsonValues(text); *values > MaxValues {
			return nil, ErrValues
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
