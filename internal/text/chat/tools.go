package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// listsTools finds the variable with the tools in a template's source.
var listsTools = regexp.MustCompile(`\btools\b`)

// ReadsTools reports whether the template has a variable with the tools.
func (t *Template) ReadsTools() bool { return listsTools.MatchString(t.Source()) }

// RenderTools is [Template.Render], but where the template does not show its tools, or not its calls and results, they become text
// of messages.
func (t *Template) RenderTools(messages []Message, o Options) (Prompt, error) {
	p, err := t.Render(messages, o)
	var fault *Error
	if !errors.As(err, &fault) || fault.Template == "" { // there is none, or the conversation itself is not valid
		return p, err
	}
	calls := slices.ContainsFunc(messages, func(m Message) bool { return len(m.ToolCalls) > 0 || isResult(m) })
	generic := len(o.Tools) > 0 && !lists(t, o)
	if !generic && calls && (errors.Is(err, ErrTools) || !showsCalls(t, o)) {
		p, err = t.Render(spell(messages, ""), o)
		generic = errors.Is(err, ErrTools) && len(o.Tools) > 0
	}
	if generic {
		text := describe(o.Tools)
		o.Tools = nil
		return t.Render(spell(messages, text), o)
	}
	return p, err
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

// describe returns a text that lists tools and asks for calls in the form of Hermes.
func describe(tools []json.RawMessage) string {
	var b bytes.Buffer
	b.WriteString("You can call functions. These are their descriptions, one a line:\n<tools>\n")
	for _, tool := range tools {
		if json.Compact(&b, tool) == nil {
			b.WriteByte('\n')
		}
	}
	b.WriteString("</tools>\nTo call a function, answer with its name and its arguments as JSON, between tags:\n" +
		"<tool_call>\n{\"name\": \"the function\", \"arguments\": {\"a parameter\": \"its value\"}}\n</tool_call>\n" +
		"Write one pair of tags for each call and nothing behind the last one. The results come between <tool_response> tags.")
	return b.String()
}

// spell returns messages whose calls and results are text, and a text about the tools in the system message. Results are messages of
// the user, who says nothing twice in a row.
func spell(messages []Message, text string) (all []Message) {
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
	switch isSystem := all[0].Role == "system" || all[0].Role == "developer"; {
	case text == "":
	case isSystem:
		all[0].Content += "\n\n" + text
	default:
		all = slices.Insert(all, 0, Message{Role: "system", Content: text})
	}
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
