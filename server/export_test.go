package server

import (
	"encoding/json"

	"grove/token"
)

// SetTemplate gives the first model a template: tools, then each message behind its role, on lines.
func (s *Server) SetTemplate() { s.hosts[0].renderer = lines{s.hosts[0]} }

type lines struct{ h *host }

func (l lines) render(c conversation) (string, []token.ID, error) {
	var text string
	for _, t := range c.tools {
		text += string(t) + "\n"
	}
	for name, v := range c.vars {
		text += name + "=" + string(v) + "\n"
	}
	for _, m := range c.messages {
		if m.Role != "user" && m.Role != "system" && m.Role != "assistant" && m.Role != "tool" {
			return "", nil, refuse("", "role %q is not known", m.Role)
		}
		text += m.Role + ": " + string(m.Content) + "\n"
		for _, call := range m.ToolCalls {
			b, err := json.Marshal(call)
			if err != nil {
				return "", nil, err
			}
			text += string(b) + "\n"
		}
	}
	if !c.noAnswer {
		text += "assistant:"
	}
	ids, err := l.h.model.Tokenize(text, true, true)
	return text, ids, err
}

// Calls reads the calls of an answer that comes in pieces.
func Calls(names []string, pieces ...string) (content string, calls []string) {
	r := callReader{names: names}
	note := func(text string, found []functionCall) {
		content += text
		for _, f := range found {
			calls = append(calls, f.Name+f.Arguments)
		}
	}
	for _, p := range pieces {
		note(r.add(p))
	}
	note(r.end())
	return content, calls
}
