package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove/internal/weights/gguf"
	"grove/server"
)

// fewRoles is a template that skips roles which it does not know, takes a system message at the beginning alone, and takes parts.
const fewRoles = `{% macro say(c) %}{% if c is string %}{{ c }}{% else %}{% for p in c %}({{ p.text }}){% endfor %}{% endif %}{% endmacro %}` +
	`{% if messages[0].role == 'system' %}<system>{{ say(messages[0].content) }}{% endif %}` +
	`{% for m in messages %}{% if m.role in ['user', 'assistant'] %}<{{ m.role }}>{{ say(m.content) }}{% endif %}{% endfor %}`

// TestRoles: every message of a request is in its prompt, or the request is refused by the name of the message, without names of
// packages, templates and files.
func TestRoles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "few.jinja")
	if err := os.WriteFile(file, []byte(fewRoles), 0o644); err != nil {
		t.Fatal(err)
	}
	chosen := options
	chosen.ChatTemplate = file
	s := serveModels(t, server.Config{}, source(modelName, served(), chosen))
	for _, tt := range []struct{ messages, prompt string }{
		{`{"role":"developer","content":"d"},{"role":"user","content":"u"}`, "<system>d<user>u"},
		{`{"role":"system","content":"s"},{"role":"developer","content":"d"},{"role":"user","content":"u"}`, "<system>s\n\nd<user>u"},
		{`{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"system","content":"s"},{"role":"user","content":"v"}`, "<user>u<assistant>a<user>s\n\nv"},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "<user>(a)(b)"},
		{`{"role":"user","content":"u"},{"role":"tool","tool_call_id":"1","content":"r"}`, "<user>u\n<tool_response>\nr\n</tool_response>"},
	} {
		if got := s.post(t, "/apply-template", `{"messages":[`+tt.messages+`]}`)["prompt"]; got != tt.prompt {
			t.Errorf("%s: %q, want %q", tt.messages, got, tt.prompt)
		}
	}
	plain := serveChat(t)
	if got := plain.post(t, "/apply-template", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`)["prompt"]; !strings.Contains(got.(string), "a\nb") {
		t.Errorf("parts for a template of strings: %q", got)
	}

	userAlone := `{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}`
	for _, tt := range []struct{ template, path, body, wants string }{
		{userAlone, "/v1/chat/completions", `{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":"v"}]}`, `messages[1]: the template has no place for the role "assistant" here`},
		{userAlone, "/v1/responses", `{"instructions":"s","input":[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":"v"}]}`, `input[1]: the template has no place for the role "assistant" here`},
		{userAlone, "/v1/messages", `{"max_tokens":1,"system":"s","messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":"v"}]}`, `messages[1]: the template has no place for the role "assistant" here`},
		{userAlone, "/api/chat", `{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":"v"}]}`, `messages[1]: the template has no place for the role "assistant" here`},
		{userAlone, "/v1/chat/completions", `{"messages":[{"role":"user","content":"u"}],"chat_template_kwargs":{"messages":[]}}`, `variable "messages": reserved`},
		{`{{ messages[0].content | nope }}`, "/v1/chat/completions", `{"messages":[{"role":"user","content":"u"}]}`, `the template: line 1: filter "nope": not supported`},
		{`{{ raise_exception('only poems') }}`, "/api/chat", `{"messages":[{"role":"user","content":"u"}]}`, "the template refuses this: only poems"},
	} {
		edit := gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of(tt.template)}
		s := serveModels(t, server.Config{}, source(modelName, edited(t, served(), edit), options))
		status, text, _ := s.do(t, "POST", tt.path, tt.body)
		if message := strings.ReplaceAll(text, `\"`, `"`); status != 400 || !strings.Contains(message, tt.wants) ||
			strings.Contains(text, "chat:") || strings.Contains(text, "jinja") || strings.Contains(text, "tokenizer.chat_template") {
			t.Errorf("%s %s: %d %s, want %q", tt.path, tt.body, status, text, tt.wants)
		}
	}
	if _, text, _ := serve(t, server.Config{}).do(t, "POST", "/v1/chat/completions", "{"+hello+"}"); strings.Contains(text, "chat:") {
		t.Errorf("a model without a template: %s", text)
	}
}
