// Package chat turns conversations into prompts, by the template of a model's file or of a known family. Messages cannot write the
// control tokens of a template.
package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"grove/internal/text/calls"
	"grove/internal/text/jinja"
)

// Message is one message of a conversation, in the form of OpenAI's API.
type Message struct {
	Role       string     `json:"role"` // one of Roles
	Content    string     `json:"content"`
	Parts      []string   `json:"-"` // texts that are Content with line ends between, for templates that read parts; nil: Content is one
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // in role tool: the call that the message answers
	Name       string     `json:"name,omitempty"`
}

// ToolCall is a call of a tool in a message of the assistant.
type ToolCall struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"` // function
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object, or a string that holds one
	} `json:"function"`
}

// Roles are the roles that messages can have. Templates build control tokens of roles, so other roles are refused.
var Roles = []string{"system", "developer", "user", "assistant", "tool", "function", "ipython"}

// Options describe a prompt. The zero value asks for the next answer.
type Options struct {
	Tools    []json.RawMessage          // tools that the assistant may call, in the form of OpenAI's API
	Vars     map[string]json.RawMessage // further variables of the template, such as enable_thinking
	NoAnswer bool                       // the prompt ends behind the last message; it begins no answer
	Continue bool                       // the model continues the last message, an answer; implies NoAnswer
	Now      time.Time                  // time for templates that print the date; zero: the time of the call
	Check    func(tokens int) error     // is asked now and then, with the tokens so far, and ends the work by an error; nil: nobody is

	style *calls.Style // calls of messages are texts in this form; nil: the template shows them
}

// Prompt is a conversation as text. Inputs are the spans of messages, options and tools in it, in order: control tokens in them are text.
type Prompt struct {
	Text   string
	Inputs []jinja.Span
}

// Tokens are the texts of the special tokens that templates print; "" where the model has no such token.
type Tokens struct{ BOS, EOS, UNK, PAD string }

// ErrTools reports a conversation with tools whose names a template does not show.
var ErrTools = errors.New("the template does not show the tools; use a template with tools")

// Error is a conversation that is not valid, or that a template does not render.
type Error struct {
	Template string // its name; "": no template is at fault
	Message  int    // index of the message to blame; -1: none
	Err      error
}

// Error returns the fault, behind the template and the message.
func (e *Error) Error() string {
	text := "chat: "
	if e.Template != "" {
		text += "template " + e.Template + ": "
	}
	if e.Message >= 0 {
		text += fmt.Sprintf("messages[%d]: ", e.Message)
	}
	return text + e.Err.Error()
}

// Unwrap returns the fault.
func (e *Error) Unwrap() error { return e.Err }

// blame returns an error of a message.
func blame(i int, format string, args ...any) *Error {
	return &Error{Message: i, Err: fmt.Errorf(format, args...)}
}

// Template renders conversations. It does not change and is safe for concurrent use.
type Template struct {
	Name   string // metadata key, file or name in [Builtin], for errors
	source string
	tmpl   *jinja.Template
	tokens Tokens
	habits func() *habits // found once
}

// New reads a template. Errors: those of [jinja.Parse], with the name.
func New(name, source string, tokens Tokens) (*Template, error) {
	tmpl, err := jinja.Parse(source)
	if err != nil {
		return nil, &Error{name, -1, err}
	}
	t := &Template{Name: name, source: source, tmpl: tmpl, tokens: tokens}
	t.habits = sync.OnceValue(t.probe)
	return t, nil
}

// Source returns the template's text.
func (t *Template) Source() string { return t.source }

// Render makes the prompt of a conversation. Messages whose roles the template has no place for take other roles, as docs/answers.md
// says. Errors are [*Error] values: a message or option that is not valid; a message that the prompt would lack; a
// [*jinja.RaisedError] if the template refuses the conversation; a [*jinja.Error] if the template has a fault or exceeds its limits;
// [ErrTools].
func (t *Template) Render(messages []Message, o Options) (Prompt, error) {
	if err := check(messages, o); err != nil {
		return Prompt{}, err
	}
	vars, err := t.variables(o, len(messages))
	if err != nil {
		return Prompt{}, err
	}
	text, err := t.render(messages, o, vars)
	if err == nil && o.Continue && !text.Cut(len(messages)-1) {
		err = errors.New("the template does not show the answer that is to be continued")
	}
	if fault := new(Error); err != nil && !errors.As(err, &fault) {
		err = &Error{t.Name, -1, err}
	}
	if err != nil {
		return Prompt{}, err
	}
	return Prompt{text.String(), text.Inputs()}, nil
}

// check refuses messages that no template renders. It does not look at their calls.
func check(messages []Message, o Options) error {
	if len(messages) == 0 {
		return blame(-1, "the conversation is empty")
	}
	for i, m := range messages {
		if !slices.Contains(Roles, m.Role) {
			return blame(i, "the role %.40q is not known; it must be one of %s", m.Role, strings.Join(Roles, ", "))
		}
	}
	if last := messages[len(messages)-1]; o.Continue && (last.Role != "assistant" || strings.TrimSpace(last.Content) == "") {
		return blame(-1, "the last message cannot be continued; it must be an answer of the assistant that is not empty")
	}
	return nil
}

// variables returns the variables of the template, without the messages. Tools are numbered sources from first.
func (t *Template) variables(o Options, first int) (map[string]jinja.Value, error) {
	vars := map[string]jinja.Value{"add_generation_prompt": !o.NoAnswer && !o.Continue, "tools": nil, "documents": nil}
	for name, text := range map[string]string{
		"bos_token": t.tokens.BOS, "eos_token": t.tokens.EOS, "unk_token": t.tokens.UNK, "pad_token": t.tokens.PAD,
	} {
		if text != "" {
			vars[name] = jinja.Text(text)
		}
	}
	for name, data := range o.Vars {
		if slices.Contains([]string{"messages", "tools", "add_generation_prompt"}, name) {
			return nil, blame(-1, "variable %q: reserved; its value comes from the conversation", name)
		}
		v, err := jinja.FromJSON(-1, data)
		if err != nil {
			return nil, blame(-1, "variable %.40q: %w", name, err)
		}
		vars[name] = v
	}
	if len(o.Tools) > 0 {
		tools := &jinja.List{}
		for i, data := range o.Tools {
			v, err := jinja.FromJSON(first+i, data)
			if err != nil {
				return nil, blame(-1, "tool %d: %w", i+1, err)
			}
			var tool struct{ Function struct{ Name string } }
			if json.Unmarshal(data, &tool) != nil || tool.Function.Name == "" {
				return nil, blame(-1, "tool %d: function.name is missing; give each function a name", i+1)
			}
			tools.Items = append(tools.Items, v)
		}
		vars["tools"] = tools
	}
	return vars, nil
}

// form is the form in which a template sees messages that call tools. Templates differ in the form that they expect.
type form struct {
	noContent     bool // an empty content is None
	textArguments bool // arguments are a string of JSON, not a dict
}

var forms = []form{{false, false}, {false, true}, {true, false}, {true, true}}

// render renders messages in the form that the template takes.
func (t *Template) render(messages []Message, o Options, vars map[string]jinja.Value) (*jinja.Output, error) {
	h, options, size, sources := t.habits(), jinja.Options{Now: o.Now}, 0, len(messages)+len(o.Tools)
	given := messages
	if h.ids != idsAny {
		given = withIDs(messages, h.ids == idsSome)
	}
	turns := h.fit(given)
	if o.style != nil {
		if err := write(turns, o.style, sources); err != nil {
			return nil, err
		}
	}
	list, err := toValues(turns, h.calls, sources)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		size += m.size()
		sources += len(m.ToolCalls)
	}
	options.Steps, options.Output = 500_000+2_000*len(messages)+4*size, 1<<18+4*size
	if o.Check != nil {
		options.Check = func() error { return o.Check(0) }
	}
	if o.Now.IsZero() {
		options.Now = time.Now()
	}
	vars["messages"] = list
	text, err := t.run(vars, options)
	if err != nil {
		return nil, err
	}
	return text, t.loss(messages, text.Sources(sources))
}

// run renders the template. Tools and documents that there are not are None, as transformers has them; a template that has a fault then
// gets them undefined, as others have them.
func (t *Template) run(vars map[string]jinja.Value, o jinja.Options) (*jinja.Output, error) {
	text, err := t.tmpl.Render(vars, o)
	if fault := new(jinja.Error); !errors.As(err, &fault) || errors.Is(err, jinja.ErrLimit) || fault.Err != nil {
		return text, err
	}
	less := maps.Clone(vars)
	for _, name := range []string{"tools", "documents"} {
		if v, ok := less[name]; ok && v == nil {
			delete(less, name)
		}
	}
	if len(less) < len(vars) {
		if other, err := t.tmpl.Render(less, o); err == nil {
			return other, nil
		}
	}
	return text, err
}

// loss returns the error of a prompt that does not show all of its sources: messages, tools and calls.
func (t *Template) loss(messages []Message, shown []bool) error {
	if slices.Contains(shown[len(messages):], false) {
		return ErrTools
	}
	for i, m := range messages {
		if !shown[i] && m.mustShow() {
			return &Error{t.Name, i, fmt.Errorf("the template has no place for the role %q here", m.Role)}
		}
	}
	return nil
}
