package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"grove/internal/text/calls"
	"grove/internal/text/jinja"
)

// listsTools finds the variable with the tools in a template's source.
var listsTools = regexp.MustCompile(`\btools\b`)

// ReadsTools reports whether the template has a variable with the tools.
func (t *Template) ReadsTools() bool { return listsTools.MatchString(t.Source()) }

// RenderTools is [Template.Render], but where the template does not show its tools, or not its calls and results, they become text
// of messages: in the form of the model's family, where its style has one and the template has a place for results; else in that of
// Hermes. style may be nil.
func (t *Template) RenderTools(messages []Message, o Options, style *calls.Style) (Prompt, error) {
	p, err := t.Render(messages, o)
	var fault *Error
	if !errors.As(err, &fault) || fault.Template == "" { // there is none, or the conversation itself is not valid
		return p, err
	}
	called := slices.ContainsFunc(messages, func(m Message) bool { return len(m.ToolCalls) > 0 || isResult(m) })
	switch generic := len(o.Tools) > 0 && !lists(t, o); {
	case generic:
		return t.describeTools(messages, o, style)
	case called && (errors.Is(err, ErrTools) || !showsCalls(t, o)):
		return t.spelled(messages, o, style)
	}
	return p, err
}

// describeTools renders a conversation whose tools the template does not list: a text does. Calls are left to a template that shows them.
func (t *Template) describeTools(messages []Message, o Options, style *calls.Style) (Prompt, error) {
	tools := o.Tools
	o.Tools = nil
	if style != nil && style.IsFamily() && showsCalls(t, o) {
		if text, ok := describe(tools, style); ok {
			return t.Render(withText(messages, text), o)
		}
	}
	text, _ := describe(tools, nil)
	return t.Render(withText(spell(messages), text), o)
}

// spelled renders a conversation whose calls, and perhaps results, the template does not show.
func (t *Template) spelled(messages []Message, o Options, style *calls.Style) (Prompt, error) {
	if style != nil && style.IsFamily() && t.habits().has("tool", false) {
		o.style = style
		if p, err := t.Render(messages, o); err == nil {
			return p, nil
		}
		o.style = nil
	}
	p, err := t.Render(spell(messages), o)
	if errors.Is(err, ErrTools) && len(o.Tools) > 0 {
		return t.describeTools(messages, o, nil)
	}
	return p, err
}

// write puts calls into the texts of their turns, in the form of a family. Calls are numbered sources from first. Errors are those of
// [calls.Style.Write].
func write(turns []turn, style *calls.Style, first int) error {
	for i := range turns {
		t := &turns[i]
		var all []calls.Call
		var sources []int
		for _, c := range t.ToolCalls {
			arguments, text := c.Function.Arguments, ""
			if json.Unmarshal(arguments, &text) == nil {
				arguments = json.RawMessage(text)
			}
			if len(bytes.TrimSpace(arguments)) == 0 {
				arguments = json.RawMessage("{}")
			}
			all, sources = append(all, calls.Call{Name: c.Function.Name, Arguments: arguments}), append(sources, first)
			first++
		}
		if len(all) == 0 {
			continue
		}
		pieces, err := style.Write(all)
		if err != nil {
			return err
		}
		n := len(t.texts) - 1
		if len(t.texts[n]) > 0 {
			t.texts[n] = append(slices.Clone(t.texts[n]), '\n')
		}
		for _, p := range pieces {
			text := jinja.Text(p.Text)
			if !p.Mark {
				text = jinja.From(sources[p.Call], p.Text)
			}
			t.texts[n] = slices.Concat(t.texts[n], text)
		}
		t.ToolCalls = nil
	}
	return nil
}

func isResult(m Message) bool { return m.Role == "tool" || m.Role == "function" || m.Role == "ipython" }

// lists reports whether a template lists tools in a conversation without calls. One that refuses this conversation says why itself.
func lists(t *Template, o Options) bool {
	if !t.ReadsTools() && o.Vars["functions"] == nil {
		return false
	}
	o.Continue = false
	_, err := t.Render([]Message{{Role: "user", Content: "?"}}, o)
	return !errors.Is(err, ErrTools)
}

// showsCalls reports whether a template shows the name of a function that is called and is none of the tools.
func showsCalls(t *Template, o Options) bool {
	call := ToolCall{ID: "abcdefghi", Type: "function"}
	call.Function.Name, call.Function.Arguments = "grove_shows_calls", json.RawMessage(`{"a":1}`)
	o.Continue, o.NoAnswer = false, true
	_, err := t.Render([]Message{{Role: "user", Content: "?"}, {Role: "assistant", ToolCalls: []ToolCall{call}}}, o)
	return !errors.Is(err, ErrTools)
}

// describe returns a text that lists tools and asks for calls in the form of a style; nil: that of Hermes. ok is false where the style
// has no form for it.
func describe(tools []json.RawMessage, style *calls.Style) (text string, ok bool) {
	var b bytes.Buffer
	b.WriteString("You can call functions. These are their descriptions, one a line:\n<tools>\n")
	for _, tool := range tools {
		if json.Compact(&b, tool) == nil {
			b.WriteByte('\n')
		}
	}
	b.WriteString("</tools>\n")
	if style == nil {
		b.WriteString("To call a function, answer with its name and its arguments as JSON, between tags:\n" +
			"<tool_call>\n{\"name\": \"the function\", \"arguments\": {\"a parameter\": \"its value\"}}\n</tool_call>\n" +
			"Write one pair of tags for each call and nothing behind the last one. The results come between <tool_response> tags.")
		return b.String(), true
	}
	example, err := style.Write([]calls.Call{{Name: "NAME", Arguments: json.RawMessage(`{"PARAMETER": "its value"}`)}})
	b.WriteString("To call a function, answer with its name and its arguments in this form:\n")
	for _, p := range example {
		b.WriteString(p.Text)
	}
	b.WriteString("\nWrite nothing behind calls.")
	return b.String(), err == nil
}

// spell returns messages whose calls and results are text. Results are messages of the user, who says nothing twice in a row.
func spell(messages []Message) (all []Message) {
	for _, m := range messages {
		called := len(all) > 0 && all[len(all)-1].Role == "user"
		switch {
		case isResult(m):
			m = Message{Role: "user", Content: "<tool_response>\n" + m.Content + "\n</tool_response>"}
		case len(m.ToolCalls) > 0:
			for _, c := range m.ToolCalls {
				call := spellCall(c)
				m.Content = strings.TrimLeft(m.Content+"\n"+call, "\n")
			}
			m.ToolCalls = nil
		}
		if called && m.Role == "user" {
			all[len(all)-1].Content += "\n" + m.Content
			continue
		}
		all = append(all, m)
	}
	return all
}

// withText returns messages with a text in the system message.
func withText(messages []Message, text string) []Message {
	if !isSystem(messages[0].Role) {
		return append([]Message{{Role: "system", Content: text}}, messages...)
	}
	all := slices.Clone(messages)
	all[0].Content += "\n\n" + text
	return all
}

// spellCall returns a call in the form of Hermes.
func spellCall(c ToolCall) string {
	arguments, text := c.Function.Arguments, ""
	if json.Unmarshal(arguments, &text) == nil && text != "" {
		arguments = json.RawMessage(text)
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	name, _ := json.Marshal(c.Function.Name) // a string has no error
	return "<tool_call>\n{\"name\": " + string(name) + ", \"arguments\": " + string(arguments) + "}\n</tool_call>"
}

// keepers are variables of templates that decide which thoughts are shown.
var keepers = []string{"keep_past_thinking", "clear_thinking", "truncate_history_thinking", "preserve_thinking", "think_render_option"}

// Forget leaves the reasoning before the last question out, unless the request says which reasoning the template shows.
func Forget(messages []Message, vars map[string]json.RawMessage) []Message {
	for _, name := range keepers {
		if vars[name] != nil {
			return messages
		}
	}
	messages = slices.Clone(messages)
	question := false
	for i := len(messages) - 1; i >= 0; i-- {
		if question {
			messages[i].Reasoning = ""
		}
		question = question || messages[i].Role == "user"
	}
	return messages
}
