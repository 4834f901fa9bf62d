package chat_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"grove/internal/text/calls"
	"grove/internal/text/chat"
)

var lookTool = json.RawMessage(`{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}}`)

// toolTalk is a conversation with two calls and their results.
func toolTalk() []chat.Message {
	first, second := callOf("1", "look"), callOf("2", "look")
	first.Function.Arguments = json.RawMessage(`"{\"x\":\"a<|im_end|>\",\"n\":[1,true,null],\"o\":{\"k\":\"v\"}}"`)
	second.Function.Arguments = json.RawMessage(``)
	return []chat.Message{user("q"), {Role: "assistant", Content: "I look.", ToolCalls: []chat.ToolCall{first, second}}, {Role: "tool", ToolCallID: "1", Content: "3"}, {Role: "tool", ToolCallID: "2", Content: "4"}}
}

// TestFamilyHistory: a template that lists tools and shows results, but no calls, gets calls in the form of its family, whose marks may
// be special tokens and whose texts may not.
func TestFamilyHistory(t *testing.T) {
	const roles = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
	for _, c := range []struct{ name, source, want string }{
		{"LFM2", "{% if tools %}<|tool_list_start|>{{ tools|tojson }}<|tool_list_end|>{% endif %}" + roles,
			"<|im_start|>assistant\n[I look.]\n<|tool_call_start|>[[look(x=\"a<|im_end|>\", n=[1, True, None], o={\"k\": \"v\"}), look()]]<|tool_call_end|><|im_end|>\n<|im_start|>tool\n[3]<|im_end|>\n<|im_start|>tool\n[4]<|im_end|>\n"},
		{"Granite 3.3", "{% if tools %}Answer with <|tool_call|> and a list.\n{{ tools|tojson }}{% endif %}" + roles,
			"<|im_start|>assistant\n[I look.]\n<|tool_call|>[{\"name\": [\"look\", \"arguments\": {\"x\": \"a<|im_end|>\", \"n\": [1, true, null], \"o\": {\"k\": \"v\"}}]}[, ]{\"name\": [\"look\", \"arguments\": {}]}[]]<|im_end|>\n<|im_start|>tool\n[3]<|im_end|>\n<|im_start|>tool\n[4]<|im_end|>\n"},
		{"Qwen3-Coder", "{% if tools %}<function=NAME><parameter=KEY>{{ tools|tojson }}{% endif %}" + roles,
			"<|im_start|>assistant\n[I look.]\n<tool_call>\n<function=[look]>\n<parameter=[x]>\n[a<|im_end|>]\n</parameter>[\n]<parameter=[n]>\n[[1, true, null]]\n</parameter>[\n]<parameter=[o]>\n[{\"k\": \"v\"}]\n</parameter>[\n]</function>\n</tool_call>[\n]<tool_call>\n<function=[look]>\n</function>\n</tool_call><|im_end|>\n"},
		{"Apertus", "{% if tools %}<|tools_prefix|>{{ tools|tojson }}{% endif %}" + roles,
			"[I look.]\n<|tools_prefix|>[{[\"look\": {\"x\": \"a<|im_end|>\", \"n\": [1, true, null], \"o\": {\"k\": \"v\"}}]}[, ]{[\"look\": {}]}]<|tools_suffix|><|im_end|>"},
		{"no family", "{% if tools %}{{ tools|tojson }}{% endif %}" + roles,
			"<|im_start|>user\n[<tool_response>\n3\n</tool_response>\n<tool_response>\n4\n</tool_response>]<|im_end|>\n"},
		{"a family whose results have no place", "{% if tools %}<|tool_list_start|>{{ tools|tojson }}{% endif %}{% for m in messages %}{% if m.role != 'tool' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}",
			"<user>[<tool_response>\n3\n</tool_response>\n<tool_response>\n4\n</tool_response>]"},
	} {
		tmpl, err := chat.New("test", c.source, tokens)
		if err != nil {
			t.Fatal(err)
		}
		style := calls.StyleOf(c.source, func(string) bool { return false })
		p, err := tmpl.RenderTools(toolTalk(), chat.Options{Tools: []json.RawMessage{lookTool}, NoAnswer: true}, style)
		if err != nil {
			t.Fatal(c.name, err)
		}
		got := strings.ReplaceAll(shown(p), "][", "")
		if want := strings.ReplaceAll(c.want, "][", ""); !strings.Contains(got, want) {
			t.Errorf("%s: the prompt is\n%s\nwant in it\n%s", c.name, got, want)
		}
	}
}

// TestNativeCalls: a template that shows calls, but lists no tools, shows calls as it does, beside a text that lists the tools and asks
// for calls in its own form.
func TestNativeCalls(t *testing.T) {
	const source = "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% endif %}{% endfor %}{% for m in messages %}{% if m.role == 'user' %}<｜User｜>{{ m.content }}{% elif m.role == 'tool' %}<｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>" +
		"{% elif m.tool_calls %}<｜Assistant｜><｜tool▁calls▁begin｜>{% for c in m.tool_calls %}<｜tool▁call▁begin｜>{{ c.function.name + '<｜tool▁sep｜>' + c.function.arguments }}<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>{% elif m.role == 'assistant' %}<｜Assistant｜>{{ m.content }}{% endif %}{% endfor %}"
	tmpl, err := chat.New("test", source, tokens)
	if err != nil {
		t.Fatal(err)
	}
	style := calls.StyleOf(source, func(string) bool { return false })
	if style.Family != "DeepSeek V3.1" {
		t.Fatalf("the style is that of %s", style.Family)
	}
	p, err := tmpl.RenderTools(toolTalk(), chat.Options{Tools: []json.RawMessage{lookTool}, NoAnswer: true}, style)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<tools>\n" + string(lookTool), "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{\"PARAMETER\": \"its value\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{\"x\":\"a<|im_end|>\"", "<｜tool▁output▁begin｜>3<｜tool▁output▁end｜>"} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("%q is not in the prompt:\n%s", want, p.Text)
		}
	}
	if strings.Contains(p.Text, "<tool_call>") || strings.Contains(p.Text, "<tool_response>") {
		t.Errorf("the prompt has calls as Hermes writes them:\n%s", p.Text)
	}
}

// TestPublishedHistory: published templates that show no calls get those of their family.
func TestPublishedHistory(t *testing.T) {
	for _, name := range []string{"LFM2-8B-A1B", "LFM2.5-Instruct"} {
		source, err := os.ReadFile("../../../../shared/data/templates/" + name + ".jinja")
		if err != nil {
			t.Skip("needs the published templates")
		}
		tmpl, err := chat.New(name, string(source), tokens)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tmpl.RenderTools(toolTalk(), chat.Options{Tools: []json.RawMessage{lookTool}}, calls.StyleOf(string(source), func(piece string) bool { return piece == "<|tool_call_start|>" }))
		if err != nil || !strings.Contains(p.Text, "<|im_start|>assistant\nI look.\n<|tool_call_start|>[look(x=") || !strings.Contains(p.Text, "<|im_start|>tool\n") || strings.Contains(p.Text, "<tool_response>") {
			t.Errorf("%s: %v:\n%s", name, err, p.Text)
		}
	}
}

// TestNoTools: tools that there are not are None; a template that has a fault then gets them undefined.
func TestNoTools(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"{% for t in tools %}x{% endfor %}{{ messages[0].content }}", "q"},
		{"{% if tools|length > 0 %}x{% endif %}{{ messages[0].content }}{{ documents is defined }}", "qFalse"},
		{"{{ tools is none }}{{ tools is defined }}{{ messages[0].content }}", "TrueTrueq"},
		{"{% if tools is none %}{{ raise_exception('no tools') }}{% endif %}{{ messages[0].content }}", ""},
	} {
		tmpl, err := chat.New("test", c.source, tokens)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tmpl.Render([]chat.Message{user("q")}, chat.Options{})
		if p.Text != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v; want %q", c.source, p.Text, err, c.want)
		}
	}
}
