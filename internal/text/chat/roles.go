package chat

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"grove/internal/text/jinja"
)

// thoughts are what templates cut off the answers of earlier turns.
var thoughts = regexp.MustCompile(`(?s)^.*(</think>|</seed:think>|\[/THINK\]|<channel\|>)`)

// mustShow reports whether a prompt must show the content of a message: it is not empty, nor thoughts alone, nor beside calls, where
// some published templates leave it out.
func (m *Message) mustShow() bool {
	text := m.Content
	if m.Role == "assistant" {
		text = thoughts.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(text) != "" && len(m.ToolCalls) == 0
}

// place is where a message stands: a role, and for a system or developer message whether others are before it.
type place struct {
	role  string
	later bool
}

// contents are the forms of a content that a template shows.
type contents struct {
	text  bool // a string
	parts bool // a list of parts
}

// habits are how a template takes conversations. The zero value takes all messages as they are.
type habits struct {
	calls  form
	ids    idHabit
	places map[place]contents // nil: they are not known
}

func (h *habits) has(role string, later bool) bool {
	return h.places == nil || h.places[place{role, later}] != contents{}
}

func isSystem(role string) bool { return role == "system" || role == "developer" }

// instead has for a role without a place the role that takes its messages.
var instead = map[string]string{"developer": "system", "system": "user", "function": "tool", "ipython": "tool"}

// turn is a message as a template sees it.
type turn struct {
	Message              // its role is one that the template has a place for
	at      int          // its index in the conversation
	texts   []jinja.Text // of the content
	parts   bool         // the content is a list
	kind    jinja.Text   // type of its parts
	moved   bool         // a system message whose text the user says
}

// turn gives message i a role and its content a form. Its texts are source i.
func (h *habits) turn(i int, m Message) turn {
	t := turn{Message: m, at: i, kind: jinja.Text("text")}
	later := isSystem(m.Role) && i > 0
	for !h.has(t.Role, later) && instead[t.Role] != "" {
		t.Role = instead[t.Role]
	}
	t.moved = t.Role == "user" && isSystem(m.Role)
	texts, how := []string{m.Content}, h.places[place{t.Role, later && !t.moved}]
	t.parts = how.parts && !how.text
	if how.parts && !t.moved && len(m.Parts) > 1 && strings.Join(m.Parts, "\n") == m.Content {
		texts, t.parts = m.Parts, true
	}
	for _, text := range texts {
		t.texts = append(t.texts, jinja.From(i, text))
	}
	return t
}

// content returns the content as the template expects it.
func (t *turn) content() jinja.Value {
	if !t.parts {
		return t.texts[0]
	}
	list := &jinja.List{}
	for _, text := range t.texts {
		part := &jinja.Map{}
		part.Set(jinja.Text("type"), t.kind)
		part.Set(jinja.Text("text"), text)
		list.Items = append(list.Items, part)
	}
	return list
}

// join puts the texts of the next turn behind those of t, with an empty line between.
func (t *turn) join(next turn) {
	n := len(t.texts) - 1
	if t.moved {
		t.Message = next.Message
	}
	t.texts[n] = slices.Concat(t.texts[n], jinja.Input("\n\n"), next.texts[0])
	t.texts, t.parts, t.moved = append(t.texts, next.texts[1:]...), t.parts || next.parts, t.moved && next.moved
}

// fit returns the turns of a conversation. A system message without a place becomes text of the system message before it; else the
// user says it: at the end of the message before, at the beginning of the next one, or in one of its own.
func (h *habits) fit(messages []Message) (all []turn) {
	for i, m := range messages {
		t, n := h.turn(i, m), len(all)-1
		switch {
		case t.moved && m.Content == "":
		case n >= 0 && (t.moved || all[n].moved) && (all[n].Role == t.Role || t.moved && isSystem(all[n].Role)):
			all[n].join(t)
		default:
			all = append(all, t)
		}
	}
	return all
}

// callSource is a source that no conversation of a probe has besides.
const callSource = 8

// probe finds the template's habits by rendering short conversations.
func (t *Template) probe() *habits {
	h := &habits{calls: t.callForm()}
	h.ids = t.idHabit(h.calls)
	found := map[place]contents{}
	for _, role := range Roles {
		found[place{role, false}] = t.try(h, role, false)
		if isSystem(role) {
			found[place{role, true}] = t.try(h, role, true)
		}
	}
	if (found[place{"user", false}] != contents{}) {
		h.places = found
	}
	return h
}

var question = Message{Role: "user", Content: "q"}

// called returns a question, a call and its result.
func called(role string) []Message {
	call := ToolCall{ID: "abcdefghi"}
	call.Function.Name, call.Function.Arguments = "f", json.RawMessage(`{"p":"v"}`)
	return []Message{question, {Role: "assistant", ToolCalls: []ToolCall{call}}, {Role: role, Content: "m", ToolCallID: call.ID, Name: call.Function.Name}}
}

// callForm returns the first form in which the template shows a call.
func (t *Template) callForm() form {
	for _, talk := range [][]Message{called("tool"), called("tool")[:2]} {
		for _, f := range forms {
			if t.shows(new(habits).fit(talk), f, func(shown []bool) bool { return shown[callSource] }) {
				return f
			}
		}
	}
	return forms[0]
}

// try tells how the template shows a message at a place.
func (t *Template) try(h *habits, role string, later bool) (how contents) {
	m, all, i := Message{Role: role, Content: "m"}, called(role), 2
	switch {
	case role == "user":
		all, i = []Message{m}, 0
	case role == "assistant":
		all, i = []Message{question, m, question}, 1
	case later:
		all, i = []Message{{Role: "system", Content: "s"}, question, {Role: "assistant", Content: "a"}, m, question}, 3
	case isSystem(role):
		all, i = []Message{m, question}, 0
	}
	turns, n := h.fit(all), len(all)
	how.text = t.shows(turns, h.calls, func(shown []bool) bool { return shown[0] && shown[i] })
	// A template that prints the list as it is shows the type of its parts, too.
	turns[i].texts = append(turns[i].texts, jinja.From(n, "2"))
	for j := range turns {
		turns[j].parts, turns[j].kind = len(turns[j].ToolCalls) == 0, jinja.From(n+1, "text")
	}
	how.parts = t.shows(turns, h.calls, func(shown []bool) bool { return shown[0] && shown[i] && shown[n] && !shown[n+1] })
	return how
}

// shows renders turns without tools and with one, up to a render that shows what is wanted. Each render is bounded.
func (t *Template) shows(turns []turn, f form, wanted func(shown []bool) bool) bool {
	tool := Options{
		Tools: []json.RawMessage{[]byte(`{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"p":{"type":"string"}}}}}`)},
		Vars:  map[string]json.RawMessage{"functions": []byte(`"f"`), "datetime": []byte(`"now"`)}, // Firefunction
	}
	return slices.ContainsFunc([]Options{{}, tool}, func(o Options) bool {
		vars, err := t.variables(o, callSource+1)
		if err == nil {
			vars["messages"], err = toValues(turns, f, callSource)
		}
		if err != nil {
			return false
		}
		text, err := t.run(vars, jinja.Options{Steps: 100_000, Output: 1 << 17})
		return err == nil && wanted(text.Sources(callSource+1))
	})
}
