package grove

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"grove/text/answer"
	"grove/text/calls"
	"grove/text/chat"
)

// Reasoning says whether a model thinks before it answers.
type Reasoning string

// The ways of [Reasoning].
const (
	ReasoningAuto Reasoning = "auto" // as the template does; the same as ""
	ReasoningOn   Reasoning = "on"   // the template's variable for thinking is true
	ReasoningOff  Reasoning = "off"  // the variable is false; thoughts that the template begins nevertheless are ended at once
)

// Check returns an [*OptionError] for a way that is not known.
func (r Reasoning) Check() error {
	if r == "" || r == ReasoningAuto || r == ReasoningOn || r == ReasoningOff {
		return nil
	}
	return &OptionError{fmt.Errorf("grove: reasoning is %.40q; it must be auto, on or off", string(r))}
}

// ApplyTemplate returns the prompt of a conversation. Errors: [chat.ErrNone] where neither the model nor the options
// have a template; an [*OptionError] for a way of reasoning that the template has not; those of [chat.Template.Render].
//
// Templates that print the date get it from [chat.Options.Now]. The variables date_string (such as 26 Jul 2024), current_date (the
// same) and datetime can be set in [chat.Options.Vars], so that the prompt does not depend on the day. A template that shows no tools
// gets a text that lists them and asks for calls in the form of Hermes. Reasoning of turns before the last question is left out.
func (m *Model) ApplyTemplate(messages []Message, o ChatOptions) (ChatPrompt, error) {
	t := o.Template
	if t == nil {
		var err error
		if t, err = m.templates.For(o.Options); err != nil {
			return ChatPrompt{}, err
		}
	}
	if o.Reasoning == "" {
		o.Reasoning = m.reasoning
	}
	if err := o.Reasoning.Check(); err != nil {
		return ChatPrompt{}, err
	}
	o.setVariables(t)
	p, err := renderTools(t, forget(messages, o.Vars), o.Options)
	if err != nil {
		return ChatPrompt{}, err
	}
	c := ChatPrompt{Tail: tail(p, messages, o.Continue), Format: answer.FormatOf(t.Source(), m.isSpecial), Style: calls.StyleOf(t.Source(), m.isSpecial)}
	if o.Reasoning == ReasoningOff && !o.Continue && !o.NoAnswer {
		end, err := m.closeThoughts(t, c, len(o.Tools) > 0)
		if err != nil {
			return ChatPrompt{}, err
		}
		p.Text, c.Tail = p.Text+end, c.Tail+end
	}
	c.Text = p.Text
	c.Tokens, err = p.Encode(m.tokenizer, o.Check)
	return c, err
}

// AnswerFormat returns how the model writes thoughts and calls of tools in conversations by its own template.
func (m *Model) AnswerFormat() answer.Format {
	source := ""
	if t, err := m.templates.For(chat.Options{}); err == nil {
		source = t.Source()
	}
	return answer.FormatOf(source, m.isSpecial)
}

// isSpecial reports whether a text is a special token of the vocabulary.
func (m *Model) isSpecial(text string) bool {
	return len(m.marker(text)) == 1
}

// dates are the variables from which published templates take the date, each with its layout.
var dates = map[string]string{"date_string": "02 Jan 2006", "current_date": "02 Jan 2006", "datetime": "Jan 02 2006 15:04:05 GMT"}

// setVariables sets the variables that the template reads and the request does not set: those of the date, those of thinking, and
// the tools of a template that reads them as a text.
func (o *ChatOptions) setVariables(t *chat.Template) {
	vars := map[string]json.RawMessage{}
	set := func(name, value string) {
		if strings.Contains(t.Source(), name) {
			vars[name] = json.RawMessage(value)
		}
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	for name, layout := range dates {
		now := o.Now
		if strings.HasSuffix(layout, "GMT") {
			now = now.UTC()
		}
		set(name, `"`+now.Format(layout)+`"`)
	}
	switch o.Reasoning {
	case ReasoningOn:
		set("enable_thinking", "true")
		set("thinking", "true")
	case ReasoningOff:
		set("enable_thinking", "false")
		set("thinking", "false")
		set("thinking_budget", "0")
		set("reasoning_effort", `"low"`)
	}
	if !listsTools.MatchString(t.Source()) {
		all := []byte{}
		if len(o.Tools) > 0 {
			all, _ = json.Marshal(o.Tools) // what is no JSON is refused when it is rendered
		}
		text, _ := json.Marshal(string(all)) // a string has no error
		set("functions", string(text))
	}
	for name, value := range o.Vars {
		vars[name] = value
	}
	o.Vars = vars
}

// keepers are variables of templates that decide which thoughts are shown.
var keepers = []string{"keep_past_thinking", "clear_thinking", "truncate_history_thinking", "preserve_thinking", "think_render_option"}

// forget leaves the reasoning before the last question out, unless the request says which reasoning the template shows.
func forget(messages []Message, vars map[string]json.RawMessage) []Message {
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

// tail returns the end of a prompt that the template wrote; with an answer that goes on, the answer too.
func tail(p chat.Prompt, messages []Message, goesOn bool) string {
	end := len(p.Text)
	if goesOn {
		if at := strings.LastIndex(p.Text, strings.TrimSpace(messages[len(messages)-1].Content)); at >= 0 {
			end = at
		}
	}
	for _, s := range slices.Backward(p.Inputs) {
		if s.To <= end {
			return p.Text[s.To:]
		}
	}
	return p.Text
}

// closeThoughts returns the text behind a prompt with which the model answers at once: it ends the thoughts that the template
// begins, or is empty thoughts where the template leaves their beginning to the model.
func (m *Model) closeThoughts(t *chat.Template, c ChatPrompt, tools bool) (string, error) {
	if strings.HasSuffix(c.Tail, "<|start|>assistant") {
		if tools {
			return "", &OptionError{errors.New("grove: reasoning is off; this template's model calls tools out of its thoughts alone: use reasoning_effort low instead")}
		}
		return "<|channel|>final<|message|>", nil
	}
	if open, ok := c.Format.Inside(c.Tail); ok {
		if strings.HasSuffix(c.Tail, "\n") {
			return "\n" + open.End + "\n\n", nil
		}
		return open.End, nil
	}
	begin, end := m.thinks[0], m.thinks[1]
	if m.thinking.Begin == nil || !strings.Contains(t.Source(), end) || strings.Contains(c.Tail, end) || strings.Contains(t.Source(), "enable_thinking") {
		return "", nil
	}
	return begin + "\n\n" + end + "\n\n", nil
}

// listsTools finds the variable with the tools in a template's source.
var listsTools = regexp.MustCompile(`\btools\b`)

// renderTools renders a conversation. Where the template does not show its tools, or not its calls and results, they become text of
// messages.
func renderTools(t *chat.Template, messages []Message, o chat.Options) (chat.Prompt, error) {
	p, err := t.Render(messages, o)
	var fault *chat.Error
	if !errors.As(err, &fault) || fault.Template == "" { // there is none, or the conversation itself is not valid
		return p, err
	}
	calls := slices.ContainsFunc(messages, func(m Message) bool { return len(m.ToolCalls) > 0 || isResult(m) })
	generic := len(o.Tools) > 0 && !lists(t, o)
	if !generic && calls && (errors.Is(err, chat.ErrTools) || !showsCalls(t, o)) {
		p, err = t.Render(spell(messages, ""), o)
		generic = errors.Is(err, chat.ErrTools) && len(o.Tools) > 0
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
func lists(t *chat.Template, o chat.Options) bool {
	if !listsTools.MatchString(t.Source()) && o.Vars["functions"] == nil {
		return false
	}
	o.Continue = false
	_, err := t.Render([]Message{{Role: "user", Content: "?"}}, o)
	return !errors.Is(err, chat.ErrTools)
}

// showsCalls reports whether a template shows the name of a function that is called and is none of the tools.
func showsCalls(t *chat.Template, o chat.Options) bool {
	call := chat.ToolCall{ID: "abcdefghi", Type: "function"}
	call.Function.Name, call.Function.Arguments = "grove_shows_calls", json.RawMessage(`{"a":1}`)
	o.Continue, o.NoAnswer = false, true
	_, err := t.Render([]Message{{Role: "user", Content: "?"}, {Role: "assistant", ToolCalls: []chat.ToolCall{call}}}, o)
	return !errors.Is(err, chat.ErrTools)
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
func spellCall(c chat.ToolCall) string {
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
