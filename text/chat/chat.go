// Package chat turns conversations into prompts, by the template of a model's file or of a known family. Messages cannot write the
// control tokens of a template.
package chat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"grove/text/jinja"
)

// Message is one message of a conversation, in the form of OpenAI's API.
type Message struct {
	Role       string     `json:"role"` // one of Roles
	Content    string     `json:"content"`
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

// Template renders conversations. It does not change and is safe for concurrent use.
type Template struct {
	Name   string // metadata key, file or name in [Builtin], for errors
	source string
	tmpl   *jinja.Template
	tokens Tokens
}

// New reads a template. Errors: those of [jinja.Parse], with the name.
func New(name, source string, tokens Tokens) (*Template, error) {
	tmpl, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("chat: template %s: %w", name, err)
	}
	return &Template{name, source, tmpl, tokens}, nil
}

// Source returns the template's text.
func (t *Template) Source() string { return t.source }

// Render makes the prompt of a conversation. Errors: a message or option that is not valid; a [*jinja.RaisedError] if the template
// refuses the conversation; a [*jinja.Error] if the template has a fault or exceeds its limits; [ErrTools].
func (t *Template) Render(messages []Message, o Options) (Prompt, error) {
	if err := check(messages, o); err != nil {
		return Prompt{}, err
	}
	vars, err := t.vars(o)
	if err != nil {
		return Prompt{}, err
	}
	text, err := t.render(messages, o, vars)
	if err == nil && o.Continue {
		text, err = cutAfter(text, messages[len(messages)-1].Content)
	}
	if err != nil {
		return Prompt{}, fmt.Errorf("chat: template %s: %w", t.Name, err)
	}
	return Prompt{text.String(), text.Inputs()}, nil
}

// check refuses conversations that no template renders.
func check(messages []Message, o Options) error {
	if len(messages) == 0 {
		return errors.New("chat: the conversation is empty")
	}
	for i, m := range messages {
		if !slices.Contains(Roles, m.Role) {
			return fmt.Errorf("chat: message %d has the role %.40q; known are %s", i+1, m.Role, strings.Join(Roles, ", "))
		}
	}
	if last := messages[len(messages)-1]; o.Continue && (last.Role != "assistant" || strings.TrimSpace(last.Content) == "") {
		return errors.New("chat: the last message cannot be continued; it must be an answer of the assistant that is not empty")
	}
	return nil
}

// reserved are the variables that options cannot set.
var reserved = []string{"messages", "tools", "add_generation_prompt"}

// vars returns the variables of the template, without the messages.
func (t *Template) vars(o Options) (map[string]jinja.Value, error) {
	vars := map[string]jinja.Value{
		"add_generation_prompt": !o.NoAnswer && !o.Continue, "tools": nil, "documents": nil,
	}
	for name, text := range map[string]string{
		"bos_token": t.tokens.BOS, "eos_token": t.tokens.EOS, "unk_token": t.tokens.UNK, "pad_token": t.tokens.PAD,
	} {
		if text != "" {
			vars[name] = jinja.Text(text)
		}
	}
	for name, data := range o.Vars {
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("chat: variable %q: reserved; its value comes from the conversation", name)
		}
		v, err := jinja.FromJSON(data)
		if err != nil {
			return nil, fmt.Errorf("chat: variable %.40q: %w", name, err)
		}
		vars[name] = v
	}
	if len(o.Tools) > 0 {
		tools := &jinja.List{}
		for i, data := range o.Tools {
			v, err := jinja.FromJSON(data)
			if err != nil {
				return nil, fmt.Errorf("chat: tool %d: %w", i+1, err)
			}
			if toolName(v) == "" {
				return nil, fmt.Errorf("chat: tool %d: function.name is missing; give each function a name", i+1)
			}
			tools.Items = append(tools.Items, v)
		}
		vars["tools"] = tools
	}
	return vars, nil
}

// toolName returns the name of a tool's function.
func toolName(tool jinja.Value) string {
	m, _ := tool.(*jinja.Map)
	if m == nil {
		return ""
	}
	f, _ := m.Get(jinja.Text("function"))
	if m, _ = f.(*jinja.Map); m == nil {
		return ""
	}
	name, _ := m.Get(jinja.Text("name"))
	t, _ := name.(jinja.Text)
	return t.String()
}

// form is the form in which a template sees messages that call tools. Templates differ in the form that they expect.
type form struct {
	noContent     bool // an empty content is None
	textArguments bool // arguments are a string of JSON, not a dict
}

var forms = []form{{false, false}, {false, true}, {true, false}, {true, true}}

// render renders messages. If they call tools, it uses the form in which the prompt shows most of the calls.
func (t *Template) render(messages []Message, o Options, vars map[string]jinja.Value) (best jinja.Text, err error) {
	names := toolNames(messages, vars)
	options := jinja.Options{Now: o.Now}
	if o.Now.IsZero() {
		options.Now = time.Now()
	}
	tried := forms
	if !slices.ContainsFunc(messages, func(m Message) bool { return len(m.ToolCalls) > 0 }) {
		tried = forms[:1]
	}
	most := -1
	for _, f := range tried {
		list, size, e := toValues(messages, f)
		if e != nil {
			return nil, e
		}
		vars["messages"] = list
		options.Steps, options.Output = limits(len(messages), size)
		text, e := t.tmpl.Render(vars, options)
		if e != nil {
			err = cmp.Or(err, e)
			continue
		}
		if n := mentions(text, names); n > most {
			best, most = text, n
		}
	}
	switch {
	case most < 0:
		return nil, err
	case most < distinct(names):
		return nil, ErrTools
	}
	return best, nil
}

// limits returns the steps and the characters of output that a template may use for messages whose texts have size characters.
func limits(messages, size int) (steps, output int) {
	return 500_000 + 2_000*messages + 4*size, 1<<18 + 4*size
}

// toolNames returns the names of the tools that may be called and of those that are called, sorted.
func toolNames(messages []Message, vars map[string]jinja.Value) (names []string) {
	if tools, ok := vars["tools"].(*jinja.List); ok && tools != nil {
		for _, tool := range tools.Items {
			names = append(names, toolName(tool))
		}
	}
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			names = append(names, c.Function.Name)
		}
	}
	slices.Sort(names)
	return names
}

func distinct(names []string) int { return len(slices.Compact(slices.Clone(names))) }

// mentions counts the names in a text, each at most as often as in names, which are sorted: fewer than distinct(names) if one is missing.
func mentions(text jinja.Text, names []string) (n int) {
	all := text.String()
	missing := 0
	for i := 0; i < len(names); {
		k := i
		for k < len(names) && names[k] == names[i] {
			k++
		}
		found := min(k-i, strings.Count(all, names[i]))
		if found == 0 {
			missing++
		}
		n, i = n+found, k
	}
	if missing > 0 {
		return min(n, distinct(names)-missing)
	}
	return n
}

// cutAfter returns text up to the end of the last occurrence of content.
func cutAfter(text jinja.Text, content string) (jinja.Text, error) {
	for _, c := range []string{content, strings.TrimLeft(content, " \t\n"), strings.TrimSpace(content)} {
		if at := strings.LastIndex(text.String(), c); at >= 0 {
			return text[:len([]rune(text.String()[:at+len(c)]))], nil
		}
	}
	return nil, errors.New("the template does not show the answer that is to be continued")
}
