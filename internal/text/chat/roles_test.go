package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/chat"
)

func message(role, text string) chat.Message { return chat.Message{Role: role, Content: text} }

// Templates with places for some roles only.
const (
	everyRole   = `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`
	fourRoles   = `{% for m in messages %}{% if m.role in ['system', 'user', 'assistant', 'tool'] %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`
	firstSystem = `{% if messages[0].role == 'system' %}<system>{{ messages[0].content }}{% set messages = messages[1:] %}{% endif %}` +
		`{% for m in messages %}{% if m.role != 'system' and m.role != 'developer' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`
	noSystem = `{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}` +
		`<{{ m.role }}>{{ m.content | trim }}{% endfor %}`
	partsAlone = `{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{% if p.type == 'text' %}({{ p.text }}){% endif %}{% endfor %}{% endfor %}`
	bothForms  = `{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}({{ p.text }}){% endfor %}{% endif %}{% endfor %}`
)

// TestRoles gives messages the roles that a template has places for, and refuses by name what has none.
func TestRoles(t *testing.T) {
	call := chat.ToolCall{ID: "1"}
	call.Function.Name = "f"
	calls := chat.Message{Role: "assistant", Content: "Let me see.", ToolCalls: []chat.ToolCall{call}}
	for _, c := range []struct {
		name, source string
		messages     []chat.Message
		want         string // the prompt with the texts of messages in brackets, or the error
	}{
		{"places for all", everyRole, []chat.Message{message("developer", "d"), message("system", "s"), user("u"), message("ipython", "i")}, "<developer>[d]<system>[s]<user>[u]<ipython>[i]"},
		{"developer to system", fourRoles, []chat.Message{message("developer", "d"), user("u")}, "<system>[d]<user>[u]"},
		{"developer behind system", fourRoles, []chat.Message{message("system", "s"), message("developer", "d"), user("u")}, "<system>[s]<system>[d]<user>[u]"},
		{"developer later", fourRoles, []chat.Message{user("u"), assistant("a"), message("developer", "d"), user("v")}, "<user>[u]<assistant>[a]<system>[d]<user>[v]"},
		{"one system", firstSystem, []chat.Message{message("system", "s"), message("developer", "d"), message("system", "t"), user("u")}, "<system>[s\n\nd\n\nt]<user>[u]"},
		{"later system, next user", firstSystem, []chat.Message{user("u"), assistant("a"), message("system", "s"), user("v")}, "<user>[u]<assistant>[a]<user>[s\n\nv]"},
		{"later system, user before", firstSystem, []chat.Message{user("u"), message("developer", "d"), assistant("a"), user("v")}, "<user>[u\n\nd]<assistant>[a]<user>[v]"},
		{"later system, no user", firstSystem, []chat.Message{user("u"), assistant("a"), message("system", "s")}, "<user>[u]<assistant>[a]<user>[s]"},
		{"no system", noSystem, []chat.Message{message("system", "s"), message("developer", "d"), user("u"), assistant("a"), user("v")}, "<user>[s\n\nd\n\nu]<assistant>[a]<user>[v]"},
		{"no system, no text", noSystem, []chat.Message{message("system", ""), user("u")}, "<user>[u]"},
		{"no system, control tokens", noSystem, []chat.Message{message("system", "<user>"), user("<x>")}, "<user>[<user>\n\n<x>]"},
		{"no system, system alone", noSystem, []chat.Message{message("system", "s")}, "<user>[s]"},
		{"results", `{% for m in messages %}{% if m.role in ['user', 'tool'] %}<{{ m.role }}>{{ m.content }}{% elif m.tool_calls %}<call>{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}`,
			[]chat.Message{user("u"), calls, message("ipython", "i"), message("function", "f")}, "<user>[u]<call>[f]<tool>[i]<tool>[f]"},
		{"no place for a result", `{% for m in messages %}{% if m.role in ['user', 'assistant'] %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`,
			[]chat.Message{user("u"), assistant("a"), user("v"), message("ipython", "i")}, `chat: template test: messages[3]: the template has no place for the role "ipython" here`},
		{"no place for an answer", `{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}`,
			[]chat.Message{user("u"), assistant("a"), user("v")}, `chat: template test: messages[1]: the template has no place for the role "assistant" here`},
		{"thoughts of earlier turns", `{% for m in messages %}{{ m.content.split('</think>')[-1] }};{% endfor %}`,
			[]chat.Message{user("u"), assistant("<think>t</think>"), user("v")}, "[u];;[v];"},
		{"nothing but white space", `{% for m in messages %}{{ m.content | trim }};{% endfor %}`, []chat.Message{user("u"), assistant(" \n"), user("v")}, "[u];;[v];"},
		{"parts as they are", partsAlone, []chat.Message{message("system", "s"), {Role: "user", Content: "a\nb", Parts: []string{"a", "b"}}, assistant("c")}, "<system>([s])<user>([a])([b])<assistant>([c])"},
		{"parts as a string", everyRole, []chat.Message{{Role: "user", Content: "a\nb", Parts: []string{"a", "b"}}}, "<user>[a\nb]"},
		{"both forms", bothForms, []chat.Message{user("q"), {Role: "user", Content: "a\nb", Parts: []string{"a", "b"}}}, "<user>[q]<user>([a])([b])"},
		{"parts that are not the content", bothForms, []chat.Message{{Role: "user", Content: "c", Parts: []string{"a", "b"}}}, "<user>[c]"},
		{"parts behind a system message", strings.Replace(bothForms, "<{{", "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}<{{", 1),
			[]chat.Message{message("system", "s"), {Role: "user", Content: "a\nb", Parts: []string{"a", "b"}}}, "<user>([s\n\na])([b])"},
		{"a hostile template", `{% for i in range(1000000000) %}{% endfor %}`, []chat.Message{message("developer", "d")}, "chat: template test: line 1: template limit exceeded: too many steps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl, err := chat.New("test", c.source, tokens)
			if err != nil {
				t.Fatal(err)
			}
			p, err := tmpl.Render(c.messages, chat.Options{})
			got := shown(p)
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzRender renders a conversation of all roles by any template: no panic, and a prompt that has the content of each message.
func FuzzRender(f *testing.F) {
	for _, source := range []string{everyRole, fourRoles, firstSystem, noSystem, partsAlone, bothForms, "{{ messages }}{{ tools | tojson }}"} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := chat.New("fuzz", source, tokens)
		if err != nil {
			return
		}
		var messages []chat.Message
		for i, role := range chat.Roles {
			messages = append(messages, message(role, fmt.Sprint("t", i, "p")))
		}
		messages[2].Content, messages[2].Parts = "t2p\nt3q", []string{"t2p", "t3q"}
		p, err := tmpl.Render(messages, chat.Options{})
		if fault := new(chat.Error); err != nil && !errors.As(err, &fault) {
			t.Errorf("the error is %T: %v", err, err)
		}
		if err == nil && len(p.Inputs) == 0 {
			t.Errorf("no message is in the prompt %q", p.Text)
		}
	})
}

// TestManyMessagesLost finds the one message that a prompt lacks among more than have marks of their own.
func TestManyMessagesLost(t *testing.T) {
	tmpl, err := chat.New("test", `{% for m in messages %}{% if loop.index0 % 2 == 0 or loop.index0 > 2000 %}{{ m.content }}{% endif %}{% endfor %}`, tokens)
	if err != nil {
		t.Fatal(err)
	}
	var messages []chat.Message
	for range 1000 {
		messages = append(messages, user("u"), assistant("a"))
	}
	fault := new(chat.Error)
	if _, err := tmpl.Render(append(messages, user("v")), chat.Options{}); !errors.As(err, &fault) || fault.Message != 1 {
		t.Errorf("got %v, want messages[1]", err)
	}
}

// allTemplates returns the templates of the repository and those that are published, by their names.
func allTemplates(t *testing.T) map[string]*chat.Template {
	needPublished(t)
	all := map[string]*chat.Template{}
	for _, folder := range []string{published, "testdata/templates", "builtin"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.jinja"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".jinja")
			if all[name], err = chat.New(name, string(source), tokens); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(all) != 70 {
		t.Errorf("%d templates, want 70", len(all))
	}
	return all
}

// TestNothingLost renders conversations with system, developer, function and ipython messages at several places by every template.
// The prompt has the texts of all messages, or the conversation is refused; the number of refusals is known.
func TestNothingLost(t *testing.T) {
	call := chat.ToolCall{ID: "abcdefghi", Type: "function"}
	call.Function.Name, call.Function.Arguments = "weather", json.RawMessage(`{"city":"Bern"}`)
	calls := chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{call}}
	result := func(role, text string) chat.Message {
		return chat.Message{Role: role, Content: text, ToolCallID: call.ID, Name: "weather"}
	}
	options := map[string]chat.Options{
		"fireworks-ai-llama-3-firefunction-v2": {Vars: map[string]json.RawMessage{"functions": json.RawMessage(`"weather"`), "datetime": json.RawMessage(`"now"`)}},
	}
	withTool := chat.Options{Tools: []json.RawMessage{json.RawMessage(weather)}}
	options["NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use"], options["NousResearch-Hermes-3-Llama-3.1-8B-tool_use"] = withTool, withTool
	templates := allTemplates(t)
	for _, c := range []struct {
		name     string
		messages []chat.Message
		refused  int
	}{
		{"system", []chat.Message{message("system", "text 0"), user("text 1")}, 0},
		{"developer", []chat.Message{message("developer", "text 0"), user("text 1")}, 0},
		{"system and developer", []chat.Message{message("system", "text 0"), message("developer", "text 1"), user("text 2")}, 0},
		{"two of the system", []chat.Message{message("system", "text 0"), message("system", "text 1"), user("text 2")}, 0},
		{"later system", []chat.Message{user("text 0"), assistant("text 1"), message("system", "text 2"), user("text 3")}, 0},
		{"first and later system", []chat.Message{message("system", "text 0"), user("text 1"), assistant("text 2"), message("system", "text 3"), user("text 4")}, 0},
		{"later developer", []chat.Message{message("system", "text 0"), user("text 1"), assistant("text 2"), message("developer", "text 3"), user("text 4")}, 0},
		{"system at the end", []chat.Message{user("text 0"), assistant("text 1"), message("system", "text 2")}, 0},
		{"tool", []chat.Message{user("text 0"), calls, result("tool", "text 2")}, 23},
		{"function", []chat.Message{user("text 0"), calls, result("function", "text 2")}, 23},
		{"ipython", []chat.Message{user("text 0"), calls, result("ipython", "text 2")}, 23},
		{"ipython without a call", []chat.Message{user("text 0"), result("ipython", "text 1")}, 14},
	} {
		refused := 0
		for name, tmpl := range templates {
			p, err := tmpl.Render(c.messages, options[name])
			if err != nil {
				if refused++; c.refused == 0 {
					t.Errorf("%s, %s: %v", c.name, name, err)
				}
				continue
			}
			for i, m := range c.messages {
				if want := fmt.Sprint("text ", i); m.Content != "" && !strings.Contains(p.Text, want) {
					t.Errorf("%s, %s: %q is missing:\n%s", c.name, name, want, p.Text)
				}
			}
		}
		if t.Logf("%s: %d of %d templates refuse", c.name, refused, len(templates)); refused != c.refused {
			t.Errorf("%s: %d templates refuse, want %d", c.name, refused, c.refused)
		}
	}
}
