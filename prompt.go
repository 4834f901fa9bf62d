package grove

import (
	"encoding/json"
	"errors"
	"fmt"
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
	return &OptionError{Err: fmt.Errorf("grove: reasoning is %.40q; it must be auto, on or off", string(r))}
}

// ApplyTemplate returns the prompt of a conversation. Errors: [chat.ErrNone] where neither the model nor the options
// have a template; an [*OptionError] for a way of reasoning that the template has not, and where the model reads a source ([ErrSource]) and has no template or
// is to continue an answer; those of [chat.Template.Render].
//
// Templates that print the date get it from [chat.Options.Now]. The variables date_string (such as 26 Jul 2024), current_date (the
// same) and datetime can be set in [chat.Options.Vars], so that the prompt does not depend on the day. A template that shows no tools
// gets a text that lists them and asks for calls in the form of Hermes. Reasoning of turns before the last question is left out.
func (m *Model) ApplyTemplate(messages []Message, o ChatOptions) (ChatPrompt, error) {
	t, err := o.Template, error(nil)
	if t == nil {
		t, err = m.templates.For(o.Options)
	}
	if source := m.engine.CheckSource("it holds conversations by a chat template alone, and continues no answer"); source != nil && (o.Continue || errors.Is(err, chat.ErrNone)) {
		err = &OptionError{Err: source}
	}
	if err != nil {
		return ChatPrompt{}, err
	}
	if o.Reasoning == "" {
		o.Reasoning = m.reasoning
	}
	if err := o.Reasoning.Check(); err != nil {
		return ChatPrompt{}, err
	}
	o.setVariables(t)
	p, err := t.RenderTools(chat.Forget(messages, o.Vars), o.Options)
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
	return answer.FormatOf(m.ownTemplate(), m.isSpecial)
}

// ownTemplate returns the text of the model's own template; "": it has none.
func (m *Model) ownTemplate() string {
	t, err := m.templates.For(chat.Options{})
	if err != nil {
		return ""
	}
	return t.Source()
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
	if !t.ReadsTools() {
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
			return "", &OptionError{Err: errors.New("grove: reasoning is off; this template's model calls tools out of its thoughts alone: use reasoning_effort low instead")}
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
