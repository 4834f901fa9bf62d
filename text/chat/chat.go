// Package chat turns conversations into prompts, by the template that a model's file carries or by one of a
// known family. What a message says stays apart from what the template says: only the template can write
// tokens that begin and end turns.
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
	Role       string     `json:"role"` // one of [Roles]
	Content    string     `json:"content"`
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // of role tool: the call that this answers
	Name       string     `json:"name,omitempty"`
}

// ToolCall is a call that an assistant's message asks for.
type ToolCall struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"` // function
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object, or a string that holds one
	} `json:"function"`
}

// Roles are the roles that messages can have. Templates build control tokens of them, so no other is let in.
var Roles = []string{"system", "developer", "user", "assistant", "tool", "function", "ipython"}

// Options says what a prompt is for. The zero value asks for the next answer.
type Options struct {
	Tools    []json.RawMessage          // that the assistant may call, in the form of OpenAI's API
	Vars     map[string]json.RawMessage // further variables of the template, such as enable_thinking
	NoAnswer bool                       // do not begin an answer behind the last message
	Continue bool                       // the last message is an answer that goes on; implies NoAnswer
	Now      time.Time                  // for templates that write the date; zero: the time of the call
}

// Prompt is a conversation as text. Control tokens written in the stretches Inputs, which came from
// messages, are plain text.
type Prompt struct {
	Text   string
	Inputs []jinja.Span
}

// Tokens are the texts of special tokens that templates write; "" where the model has none.
type Tokens struct{ BOS, EOS, UNK, PAD string }

// ErrTools reports a conversation with tools, for a template that has no place for them.
var ErrTools = errors.New("the template has no place for tools")

// Template renders conversations. It does not change and is safe for concurrent use.
type Template struct {
	Name   string // where it comes from, for people
	source string
	tmpl   *jinja.Template
	tokens Tokens
}

// New reads a template. Its errors name it.
func New(name, source string, tokens Tokens) (*Template, error) {
	tmpl, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("chat: template %s: %w", name, err)
	}
	return &Template{name, source, tmpl, tokens}, nil
}

// Source returns the template's text.
func (t *Template) Source() string { return t.source }

// Render makes the prompt of a conversation. Errors: a message or option that makes no sense; what the
// template refuses, a [*jinja.RaisedError]; what is wrong with it or exceeds its limits, a [*jinja.Error];
// [ErrTools].
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
		text, err = cutBehind(text, messages[len(messages)-1].Content)
	}
	if err != nil {
		return Prompt{}, fmt.Errorf("chat: template %s: %w", t.Name, err)
	}
	return Prompt{text.String(), text.Inputs()}, nil
}

// check refuses conversations that no template could render.
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
		return errors.New("chat: the last message is no answer that could go on")
	}
	return nil
}

// reserved are variables that no option sets.
var reserved = []string{"messages", "tools", "add_generation_prompt"}

// vars returns what the template sees besides the messages.
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
			return nil, fmt.Errorf("chat: variable %q has its value from the conversation", name)
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
				return nil, fmt.Errorf("chat: tool %d has no function.name", i+1)
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

// form is how messages with calls of tools are shown to a template; templates differ in what they expect.
type form struct{ noContent, textArguments bool }

var forms = []form{{false, false}, {false, true}, {true, false}, {true, true}}

// render renders messages. Where they call tools it takes the form that shows most of the calls.
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

// limits returns the steps and the characters of output for a conversation: what any template of sense
// needs, tied to what it is given.
func limits(messages, size int) (steps, output int) {
	return 500_000 + 2_000*messages + 4*size, 1<<18 + 4*size
}

// toolNames returns the names of tools that may be and are called, sorted.
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

// mentions counts how often input in a text reads a name, at most as often as it stands in names; fewer than
// distinct(names) if one is missing.
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

// cutBehind returns text up to the end of its last stretch that reads content.
func cutBehind(text jinja.Text, content string) (jinja.Text, error) {
	for _, c := range []string{content, strings.TrimLeft(content, " \t\n"), strings.TrimSpace(content)} {
		if at := strings.LastIndex(text.String(), c); at >= 0 {
			return text[:len([]rune(text.String()[:at+len(c)]))], nil
		}
	}
	return nil, errors.New("the prompt does not show the answer that is to go on")
}
