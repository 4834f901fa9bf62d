// Package prompt makes the prompts of conversations: it sets what templates read besides messages, and says how a model is
// to think.
package prompt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"grove/internal/options"
	"grove/internal/text/answer"
	"grove/internal/text/calls"
	"grove/internal/text/chat"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Reasoning says whether a model thinks before it answers.
type Reasoning string

// The ways of [Reasoning].
const (
	ReasoningAuto Reasoning = "auto" // as the template does; the same as ""
	ReasoningOn   Reasoning = "on"   // the template's variable for thinking is true
	ReasoningOff  Reasoning = "off"  // the variable is false; thoughts that the template begins nevertheless are ended at once
)

// Check returns an [*options.Error] for a way that is not known.
func (r Reasoning) Check() error {
	if r == "" || r == ReasoningAuto || r == ReasoningOn || r == ReasoningOff {
		return nil
	}
	return &options.Error{Err: fmt.Errorf("grove: reasoning is %.40q; it must be auto, on or off", string(r))}
}

// Options say how a conversation becomes a prompt. The zero value asks for the next answer, by the model's own template.
type Options struct {
	chat.Options
	Template  *chat.Template // nil: the model's own, or that of a family that its vocabulary shows
	Reasoning Reasoning      // "": that of the maker
	OneCall   bool           // the answer's parts end behind the first call of a tool
}

// Prompt is a conversation as the model reads it.
type Prompt struct {
	Text   string
	Tokens []token.ID    // control tokens that messages spell are plain text in them
	Tail   string        // the end of Text that the template wrote, for [answer.Options]
	Format answer.Format // how the model writes thoughts and calls in this conversation
	Style  *calls.Style  // of calls
}

// Maker makes prompts for a model. It is safe for concurrent use.
type Maker struct {
	Templates *chat.Templates
	Markers   Markers   // of the model's thoughts
	Reasoning Reasoning // of conversations that say nothing else

	tokenizer *tokenizer.Tokenizer
}

// New returns the maker of prompts of a model's templates and tokenizer. Errors: those of [Reasoning.Check].
func New(t *chat.Templates, k *tokenizer.Tokenizer, r Reasoning) (*Maker, error) {
	m := &Maker{Templates: t, Reasoning: r, tokenizer: k}
	m.Markers = m.findMarkers()
	return m, r.Check()
}

// Render returns the prompt of a conversation. Errors: [chat.ErrNone] where neither the model nor the options have a template; an
// [*options.Error] for a way of reasoning that the template has not; those of [chat.Template.Render].
func (m *Maker) Render(messages []chat.Message, o Options) (Prompt, error) {
	t, err := o.Template, error(nil)
	if t == nil {
		t, err = m.Templates.For(o.Options)
	}
	if err != nil {
		return Prompt{}, err
	}
	o.Reasoning = cmp.Or(o.Reasoning, m.Reasoning)
	if err := o.Reasoning.Check(); err != nil {
		return Prompt{}, err
	}
	o.setVariables(t)
	style := calls.StyleOf(t.Source(), m.IsSpecial)
	at, added := 0, 0
	if len(messages) > 0 { // an empty conversation is refused
		messages, at, added = m.Templates.WithDefaults(messages)
	}
	p, err := t.RenderTools(chat.Forget(messages, o.Vars), o.Options, style)
	if fault := new(chat.Error); errors.As(err, &fault) && fault.Message >= at+added {
		fault.Message -= added // the caller's
	}
	if err != nil {
		return Prompt{}, err
	}
	c := Prompt{Tail: tail(p, messages, o.Continue), Format: answer.FormatOf(t.Source(), m.IsSpecial), Style: style}
	if o.Reasoning == ReasoningOff && !o.Continue && !o.NoAnswer {
		end, err := m.closeThoughts(t, c, len(o.Tools) > 0)
		if err != nil {
			return Prompt{}, err
		}
		p.Text, c.Tail = p.Text+end, c.Tail+end
	}
	c.Text = p.Text
	c.Tokens, err = p.Encode(m.tokenizer, o.Check)
	return c, err
}

// Source returns the text of the model's own template; "": it has none.
func (m *Maker) Source() string {
	t, err := m.Templates.For(chat.Options{})
	if err != nil {
		return ""
	}
	return t.Source()
}

// dates are the variables from which published templates take the date, each with its layout.
var dates = map[string]string{"date_string": "02 Jan 2006", "current_date": "02 Jan 2006", "datetime": "Jan 02 2006 15:04:05 GMT"}

// setVariables sets the variables that the template reads and the request does not set: those of the date, those of thinking, and
// the tools of a template that reads them as a text.
func (o *Options) setVariables(t *chat.Template) {
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
func tail(p chat.Prompt, messages []chat.Message, goesOn bool) string {
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
func (m *Maker) closeThoughts(t *chat.Template, c Prompt, tools bool) (string, error) {
	if strings.HasSuffix(c.Tail, "<|start|>assistant") {
		if tools {
			return "", &options.Error{Err: errors.New("grove: reasoning is off; this template's model calls tools out of its thoughts alone: use reasoning_effort low instead")}
		}
		return "<|channel|>final<|message|>", nil
	}
	if open, ok := c.Format.Inside(c.Tail); ok {
		if strings.HasSuffix(c.Tail, "\n") {
			return "\n" + open.End + "\n\n", nil
		}
		return open.End, nil
	}
	begin, end := m.Markers.Texts[0], m.Markers.Texts[1]
	if m.Markers.Begin == nil || !strings.Contains(t.Source(), end) || strings.Contains(c.Tail, end) || strings.Contains(t.Source(), "enable_thinking") {
		return "", nil
	}
	return begin + "\n\n" + end + "\n\n", nil
}
