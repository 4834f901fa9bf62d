package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/chat"
	"grove/internal/text/jinja"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

var tokens = chat.Tokens{BOS: "<s>", EOS: "</s>"}

func testTemplate(t *testing.T, name string) *chat.Template {
	t.Helper()
	source, err := os.ReadFile("testdata/templates/" + name + ".jinja")
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := chat.New(name, string(source), tokens)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func user(text string) chat.Message      { return chat.Message{Role: "user", Content: text} }
func assistant(text string) chat.Message { return chat.Message{Role: "assistant", Content: text} }

// shown returns a prompt with the text of messages in brackets.
func shown(p chat.Prompt) string {
	at, out := 0, ""
	for _, s := range p.Inputs {
		out += p.Text[at:s.From] + "[" + p.Text[s.From:s.To] + "]"
		at = s.To
	}
	return out + p.Text[at:]
}

// TestRender marks the parts of prompts that came from messages, and tries the options.
func TestRender(t *testing.T) {
	chatml, err := chat.NewBuiltin("chatml", tokens)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		messages []chat.Message
		o        chat.Options
		want     string
	}{
		{"question", []chat.Message{user("a<|im_end|>b")}, chat.Options{}, "<|im_start|>user\n[a<|im_end|>b]<|im_end|>\n<|im_start|>assistant\n"},
		{"no answer", []chat.Message{user("a")}, chat.Options{NoAnswer: true}, "<|im_start|>user\n[a]<|im_end|>\n"},
		{"answer that goes on", []chat.Message{user("a"), assistant("so far ")}, chat.Options{Continue: true}, "<|im_start|>user\n[a]<|im_end|>\n<|im_start|>assistant\n[so far ]"},
		{"content that is no UTF-8", []chat.Message{user("a\xff")}, chat.Options{NoAnswer: true}, "<|im_start|>user\n[a\ufffd]<|im_end|>\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := chatml.Render(c.messages, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, shown(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestContinueTrimmed continues an answer whose end the template trims.
func TestContinueTrimmed(t *testing.T) {
	llama3, err := chat.NewBuiltin("llama3", tokens)
	if err != nil {
		t.Fatal(err)
	}
	p, err := llama3.Render([]chat.Message{user("1"), assistant("1"), user("1"), assistant("1 \n")}, chat.Options{Continue: true})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(p.Text, "assistant<|end_header_id|>\n\n1") || strings.Count(p.Text, "<|eot_id|>") != 3 {
		t.Errorf("the prompt is %q", p.Text)
	}
}

// TestContinueMarks continues answers that the template shows in parts, changed, or twice.
func TestContinueMarks(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"parts", "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{{ m.content | map(attribute='text') | join('+') }}{% endif %}{% endfor %}</s>", "<user>a\nb<assistant>a+b"},
		{"upper case", "{% for m in messages %}<{{ m.role }}>{{ m.content | upper }}{% endfor %}</s>", "<user>A\nB<assistant>A\nB"},
	} {
		tmpl, err := chat.New("test", c.source, tokens)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tmpl.Render([]chat.Message{user("a\nb"), {Role: "assistant", Content: "a\nb", Parts: []string{"a", "b"}}}, chat.Options{Continue: true})
		if err != nil || p.Text != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, p.Text, err, c.want)
		}
	}
	tmpl, err := chat.New("test", "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}", tokens)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render([]chat.Message{user("a"), assistant("b</think>")}, chat.Options{Continue: true}); err == nil || !strings.Contains(err.Error(), "does not show the answer") {
		t.Errorf("an answer that is not shown: %v", err)
	}
}

const weather = `{"type":"function","function":{"name":"weather","description":"says <it>","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`

// called is a conversation in which the assistant calls a tool.
func called(arguments string) []chat.Message {
	call := chat.ToolCall{ID: "abcdefghi", Type: "function"}
	call.Function.Name, call.Function.Arguments = "weather", json.RawMessage(arguments)
	return []chat.Message{
		user("How is Rome?"), {Role: "assistant", ToolCalls: []chat.ToolCall{call}},
		{Role: "tool", Content: "21 degrees", ToolCallID: "abcdefghi", Name: "weather"},
	}
}

// TestTools gives each template the calls in the form that it expects, and refuses tools that a template does not show.
func TestTools(t *testing.T) {
	for _, c := range []struct {
		name  string
		tools bool
		want  string // a part of the prompt
	}{
		{"qwen2.5-style", true, `<tool_call>` + "\n" + `{"name": "[weather]", "arguments": {"[city]": "[Rome]"}}`},
		{"qwen3-style", true, `<tool_call>` + "\n" + `{"name": "[weather]", "arguments": {"[city]": "[Rome]"}}`},
		{"qwen3-coder-style", true, "<function=[weather]>\n<parameter=[city]>\n[Rome]\n</parameter>"},
		{"mistral-nemo-style", true, `[TOOL_CALLS][{"name": "[weather]", "arguments": {"[city]": "[Rome]"}, "id": "[abcdefghi]"}]`},
		{"llama-3.1-style", true, `{"name": "[weather]", "parameters": {"[city]": "[Rome]"}}`},
		{"deepseek-r1-style", false, "function<｜tool▁sep｜>[weather]\n```json\n[{\"city\": \"Rome\"}]\n```"},
		{"deepseek-v3.1-style", false, "<｜tool▁call▁begin｜>[weather]<｜tool▁sep｜>[{\"city\": \"Rome\"}]"},
		{"granite-4-style", true, `<tool_call>` + "\n" + `{"name": "[weather]", "arguments": {"[city]": "[Rome]"}}`},
		{"falcon-h1-style", true, `<tool_call>` + "\n" + `{"name": "[weather]", "arguments": {"[city]": "[Rome]"}}`},
		{"jamba-style", true, "<tool_calls>[\n" + `{"name": "[weather]", "arguments": {"[city]": "[Rome]"}}` + "\n]</tool_calls>"},
		{"nemotron-h-style", true, `<TOOLCALL>[{"name": "[weather]", "arguments": {"[city]": "[Rome]"}}]</TOOLCALL>`},
		{"gpt-oss-style", true, "<|channel|>commentary json<|message|>{\"[city]\": \"[Rome]\"}<|call|>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o chat.Options
			if c.tools {
				o.Tools = []json.RawMessage{json.RawMessage(weather)}
			}
			for _, arguments := range []string{`{"city": "Rome"}`, `"{\"city\": \"Rome\"}"`} {
				p, err := testTemplate(t, c.name).Render(called(arguments), o)
				if err != nil {
					t.Fatal(err)
				}
				if got := shown(p); !strings.Contains(got, c.want) || !strings.Contains(got, "[21 degrees]") && !strings.Contains(got, `"[21 degrees]"`) {
					t.Errorf("the prompt is\n%s\nwhich should hold\n%s", got, c.want)
				}
			}
		})
	}
	for _, name := range chat.Builtin() {
		tmpl, err := chat.NewBuiltin(name, tokens)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Render([]chat.Message{user("a")}, chat.Options{Tools: []json.RawMessage{json.RawMessage(weather)}}); !errors.Is(err, chat.ErrTools) {
			t.Errorf("%s with a tool: %v, want ErrTools", name, err)
		}
		if _, err := tmpl.Render(called("{}"), chat.Options{}); err == nil {
			t.Errorf("%s with a call of a tool: no error", name)
		}
	}
}

// TestRefused refuses messages, options and templates that are not valid.
func TestRefused(t *testing.T) {
	chatml, err := chat.NewBuiltin("chatml", tokens)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(s string) []json.RawMessage { return []json.RawMessage{json.RawMessage(s)} }
	for _, c := range []struct {
		name     string
		messages []chat.Message
		o        chat.Options
		want     string
	}{
		{"no message", nil, chat.Options{}, "chat: the conversation is empty"},
		{"role", []chat.Message{{Role: "user<|im_end|>"}}, chat.Options{}, `chat: messages[0]: the role "user<|im_end|>" is not known; it must be one of system, developer, user, assistant, tool, function, ipython`},
		{"question that goes on", []chat.Message{user("a")}, chat.Options{Continue: true}, "chat: the last message cannot be continued; it must be an answer of the assistant that is not empty"},
		{"nothing that goes on", []chat.Message{assistant(" ")}, chat.Options{Continue: true}, "chat: the last message cannot be continued; it must be an answer of the assistant that is not empty"},
		{"tool", []chat.Message{user("a")}, chat.Options{Tools: raw(`{"function": 1}`)}, "chat: tool 1: function.name is missing; give each function a name"},
		{"tool that is no JSON", []chat.Message{user("a")}, chat.Options{Tools: raw(`{`)}, "chat: tool 1: JSON: unexpected EOF"},
		{"arguments", called(`[`), chat.Options{}, `chat: messages[1]: arguments of "weather": JSON: unexpected EOF`},
		{"variable", []chat.Message{user("a")}, chat.Options{Vars: map[string]json.RawMessage{"x": json.RawMessage("1 2")}}, `chat: variable "x": JSON: data follow the value; give one value`},
		{"variable of the conversation", []chat.Message{user("a")}, chat.Options{Vars: map[string]json.RawMessage{"messages": json.RawMessage("[]")}}, `chat: variable "messages": reserved; its value comes from the conversation`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := chatml.Render(c.messages, c.o); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := chat.New("x", "{% include 'y' %}", tokens); err == nil || err.Error() != `chat: template x: line 1: statement "include": not supported; use one of break, call, continue, filter, for, generation, if, macro, raw, set, with` {
		t.Errorf("got %v", err)
	}
	if _, err := chat.NewBuiltin("y", tokens); err == nil || !strings.Contains(err.Error(), `template "y": not known; use one of chatml, `) {
		t.Errorf("got %v", err)
	}
	raised := new(jinja.RaisedError)
	if _, err := testTemplate(t, "gemma-style").Render([]chat.Message{user("a"), user("b")}, chat.Options{}); !errors.As(err, &raised) {
		t.Errorf("got %v", err)
	}
}

// TestManyMessages: the limits of a template grow with the conversation.
func TestManyMessages(t *testing.T) {
	messages := []chat.Message{{Role: "system", Content: strings.Repeat("word ", 200_000)}}
	for range 500 {
		messages = append(messages, user(strings.Repeat("question ", 50)), assistant(strings.Repeat("answer ", 50)))
	}
	messages = append(messages, user("?"))
	for _, name := range []string{"qwen3-style", "gpt-oss-style", "deepseek-r1-style", "granite-3.3-style", "phi-3.5-style"} {
		if p, err := testTemplate(t, name).Render(messages, chat.Options{}); err != nil || len(p.Text) < 1_000_000 {
			t.Errorf("%s: %d bytes, %v", name, len(p.Text), err)
		}
	}
	bad := new(jinja.Error)
	endless, err := chat.New("endless", "{% for i in range(1000000000) %}x{% endfor %}", tokens)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := endless.Render([]chat.Message{user("a")}, chat.Options{}); !errors.As(err, &bad) || !errors.Is(err, jinja.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
}

// vocabulary is a file with a vocabulary alone: single bytes, and control tokens.
func vocabulary(t *testing.T, controls []string, more ...gguf.KV) *gguf.File {
	t.Helper()
	list, types := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}
	for b := range 256 {
		list, types = append(list, "<0x"+strings.ToUpper(string("0123456789abcdef"[b>>4])+string("0123456789abcdef"[b&15]))+">"), append(types, 6)
	}
	for _, c := range controls {
		list, types = append(list, c), append(types, 3)
	}
	var b strings.Builder
	err := gguf.Write(&b, append([]gguf.KV{
		{Key: "general.architecture", Value: gguf.Of("llama")},
		{Key: "tokenizer.ggml.model", Value: gguf.Of("llama")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.ArrayOf(list)},
		{Key: "tokenizer.ggml.scores", Value: gguf.ArrayOf(make([]float32, len(list)))},
		{Key: "tokenizer.ggml.token_type", Value: gguf.ArrayOf(types)},
		{Key: "tokenizer.ggml.add_space_prefix", Value: gguf.Of(false)},
	}, more...), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFromGGUF finds the templates of a file, and a family where the file has none.
func TestFromGGUF(t *testing.T) {
	kv := func(name, text string) gguf.KV {
		return gguf.KV{Key: "tokenizer.chat_template" + name, Value: gguf.Of(text)}
	}
	withTool := chat.Options{Tools: []json.RawMessage{json.RawMessage(weather)}}
	for _, c := range []struct {
		name     string
		controls []string
		more     []gguf.KV
		o        chat.Options
		want     string // the template's name, or the error
	}{
		{"own", nil, []gguf.KV{kv("", "x")}, chat.Options{}, "tokenizer.chat_template"},
		{"own before family", []string{"<|im_start|>", "<|im_end|>"}, []gguf.KV{kv("", "x")}, chat.Options{}, "tokenizer.chat_template"},
		{"default by name", nil, []gguf.KV{kv(".default", "x")}, chat.Options{}, "tokenizer.chat_template.default"},
		{"tools", nil, []gguf.KV{kv("", "x"), kv(".tool_use", "y")}, withTool, "tokenizer.chat_template.tool_use"},
		{"without tools", nil, []gguf.KV{kv("", "x"), kv(".tool_use", "y")}, chat.Options{}, "tokenizer.chat_template"},
		{"chatml", []string{"<|im_start|>", "<|im_end|>"}, nil, chat.Options{}, "chatml"},
		{"llama3", []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, nil, chat.Options{}, "llama3"},
		{"gemma", []string{"<start_of_turn>", "<end_of_turn>"}, nil, chat.Options{}, "gemma"},
		{"phi3", []string{"<|user|>", "<|end|>", "<|assistant|>"}, nil, chat.Options{}, "phi3"},
		{"mistral", []string{"[INST]", "[/INST]"}, nil, chat.Options{}, "mistral"},
		{"deepseek", []string{"<｜User｜>", "<｜Assistant｜>"}, nil, chat.Options{}, "deepseek"},
		{"granite", []string{"<|start_of_role|>", "<|end_of_role|>"}, nil, chat.Options{}, "granite"},
		{"half of one", []string{"<|im_start|>"}, nil, chat.Options{}, chat.ErrNone.Error()},
		{"none", nil, nil, chat.Options{}, chat.ErrNone.Error()},
		{"broken", nil, []gguf.KV{kv("", "{% if %}")}, chat.Options{}, `chat: template tokenizer.chat_template: line 1: unexpected '%}'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := vocabulary(t, c.controls, c.more...)
			k, err := tokenizer.FromGGUF(f)
			if err != nil {
				t.Fatal(err)
			}
			ts, err := chat.FromGGUF(f, k)
			if err != nil {
				t.Fatal(err)
			}
			tmpl, err := ts.For(c.o)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = tmpl.Name
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestChoose: a chosen template is the template of all conversations.
func TestChoose(t *testing.T) {
	file := filepath.Join(t.TempDir(), "of a file")
	if err := os.WriteFile(file, []byte("z"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := vocabulary(t, nil, gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of("x")},
		gguf.KV{Key: "tokenizer.chat_template.tool_use", Value: gguf.Of("y")}, gguf.KV{Key: "tokenizer.chat_template.bad", Value: gguf.Of("{% if %}")})
	k, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want string }{
		{"tool_use", "tokenizer.chat_template.tool_use"}, {"chatml", "chatml"}, {file, file},
		{"bad", `chat: template tokenizer.chat_template.bad: line 1: unexpected '%}'`},
		{"none", `chat: template "none" is none of bad, tool_use, chatml, llama3, gemma, granite, phi3, deepseek, mistral, llama2, and no file that can be read: open none: no such file or directory`},
	} {
		ts, err := chat.FromGGUF(f, k)
		if err != nil {
			t.Fatal(err)
		}
		if err := ts.Choose(c.name); err != nil {
			if err.Error() != c.want {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
			continue
		}
		for _, o := range []chat.Options{{}, {Tools: []json.RawMessage{json.RawMessage(weather)}}} {
			if got, err := ts.For(o); err != nil || got.Name != c.want {
				t.Errorf("%s: %v, %v", c.name, got, err)
			}
		}
	}
}

// TestEncode: control tokens come from the template alone, and a prompt has one begin token.
func TestEncode(t *testing.T) {
	f := vocabulary(t, []string{"<|im_start|>", "<|im_end|>"})
	k, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	ts, err := chat.FromGGUF(f, k)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		"<|im_start|>{{ messages[0].content|trim }}<|im_end|>",
		"{{ bos_token }}<|im_start|>{{ messages[0]['content'].split('!')|join('!') }}<|im_end|>",
	} {
		tmpl, err := ts.New("test", source)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tmpl.Render([]chat.Message{user("<s>!<|im_end|>")}, chat.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := p.Encode(k, nil)
		if err != nil {
			t.Fatal(err)
		}
		control := 0
		for _, id := range ids {
			if k.Type(id) == tokenizer.Control {
				control++
			}
		}
		text, err := k.Decode(ids, true)
		if want := "<s><|im_start|><s>!<|im_end|><|im_end|>"; err != nil || text != want || control != 3 || ids[0] != k.BOS() {
			t.Errorf("%s: %d control tokens in %q, %v; want 3 in %q", source, control, text, err, want)
		}
	}
}

// FuzzMessages makes prompts of hostile conversations, tools and variables: there is an answer within the limits of templates.
func FuzzMessages(f *testing.F) {
	f.Add(`[{"role":"user","content":"a"}]`, `[{"type":"function","function":{"name":"f"}}]`, `{"enable_thinking":true}`)
	f.Add(`[{"role":"system","content":"a"},{"role":"assistant","tool_calls":[{"id":"b","function":{"name":"f","arguments":"{\"c\":1}"}}]},{"role":"tool","content":"d","tool_call_id":"b"}]`, `[]`, `{}`)
	f.Add(`[{"role":"root"},{"role":"ipython","content":"<|im_end|>"}]`, `[3,null,"x"]`, `{"messages":1}`)
	var all []*chat.Template
	for i, source := range []string{
		"{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}{% endfor %}{{ tools }}",
		"{{ messages[0].content|trim }}{% if messages[1].role != 'user' %}{{ raise_exception('order') }}{% endif %}",
	} {
		tmpl, err := chat.New(fmt.Sprint(i), source, chat.Tokens{})
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, tmpl)
	}
	f.Fuzz(func(t *testing.T, text, tools, vars string) {
		var messages []chat.Message
		var o chat.Options
		if json.Unmarshal([]byte(text), &messages) != nil || json.Unmarshal([]byte(tools), &o.Tools) != nil || json.Unmarshal([]byte(vars), &o.Vars) != nil {
			return
		}
		for _, tmpl := range all {
			start := time.Now()
			if _, err := tmpl.Render(messages, o); err != nil && err.Error() == "" {
				t.Errorf("%s: an error without a text", text)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%s: %v", text, took)
			}
		}
	})
}
