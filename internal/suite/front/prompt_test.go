package front_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grove"
	parts "grove/internal/text/answer"
	"grove/internal/text/chat"
)

// weatherTool is a tool that the assistant may call.
const weatherTool = `{"type":"function","function":{"name":"weather","description":"Tells it.","parameters":{"type":"object","properties":{"city":{"type":"string","description":"c"}},"required":["city"]}}}`

// toolTalk is a conversation in which the assistant thinks and calls, twice.
func toolTalk() []grove.Message {
	call := chat.ToolCall{ID: "abcdefghi", Type: "function"}
	call.Function.Name, call.Function.Arguments = "weather", json.RawMessage(`{"city":"Bern"}`)
	return []grove.Message{
		{Role: "user", Content: "Weather in Bern?"},
		{Role: "assistant", Reasoning: "Old thought.", ToolCalls: []chat.ToolCall{call}},
		{Role: "tool", Content: `{"sky": "clear"}`, ToolCallID: "abcdefghi", Name: "weather"},
		{Role: "assistant", Reasoning: "Old thought.", Content: "It is clear."},
		{Role: "user", Content: "And now?"},
		{Role: "assistant", Reasoning: "New thought.", ToolCalls: []chat.ToolCall{call}},
		{Role: "tool", Content: `{"sky": "grey"}`, ToolCallID: "abcdefghi", Name: "weather"},
	}
}

// publishedTemplates returns the published templates of ../shared, by their names.
func publishedTemplates(t *testing.T, m *grove.Model) map[string]*chat.Template {
	t.Helper()
	const folder = "../../../../shared/data/templates"
	if _, err := os.Stat(folder); err != nil {
		if _, err := os.Stat("../../../../shared"); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("%s is missing", folder)
		}
		t.Skipf("needs %s: not there", folder)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jinja"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d templates, %v; want 40 or more", len(files), err)
	}
	all := map[string]*chat.Template{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		if all[name], err = m.Templates().New(name, string(source)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// noPrompt names the published templates that refuse a conversation with calls, each with the error.
var noPrompt = map[string]string{
	"Kimi-K2-Instruct": `attribute "append" of list is undefined`, "Kimi-K2-Thinking": `attribute "append" of list is undefined`, // jinja2's sandbox refuses it, too
	"llama-cpp-deepseek-r1": "a generator has no text and no JSON", // nor has it JSON in jinja2
}

// forgets names the published templates that show thoughts of the turn that goes on; each other one has no place for them.
var forgets = strings.Fields("Bielik-11B-v3.0-Instruct ByteDance-Seed-OSS GLM-4.6 MiniMax-M2 NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 Qwen3.5-4B StepFun3.5-Flash " +
	"google-gemma-4-31B-it-interleaved openai-gpt-oss-120b stepfun-ai-Step-3.5-Flash upstage-Solar-Open-100B deepseek-ai-DeepSeek-V3.2 Reka-Edge")

// TestPublishedPrompts renders a conversation with calls by each published template: tools, calls and results are shown, also where
// the template has no place for them, and thoughts only behind the last question.
func TestPublishedPrompts(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Context: 16})
	shows := map[string]bool{}
	for _, name := range forgets {
		shows[name] = true
	}
	for name, tmpl := range publishedTemplates(t, m) {
		t.Run(name, func(t *testing.T) {
			o := grove.ChatOptions{Template: tmpl, Reasoning: grove.ReasoningOn}
			o.Tools = []json.RawMessage{json.RawMessage(weatherTool)}
			p, err := m.ApplyTemplate(toolTalk(), o)
			if want := noPrompt[name]; err != nil || want != "" {
				if want == "" || err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
				return
			}
			for _, want := range []string{"Weather in Bern?", "Tells it.", `clear`, "It is clear.", "And now?", "grey"} {
				if !strings.Contains(p.Text, want) {
					t.Errorf("%q is missing in the prompt\n%s", want, p.Text)
				}
			}
			if n := strings.Count(p.Text, "Bern"); n < 2 {
				t.Errorf("the arguments of the calls are missing in the prompt\n%s", p.Text)
			}
			if strings.Contains(p.Text, "Old thought.") {
				t.Errorf("thoughts of an earlier turn in the prompt\n%s", p.Text)
			}
			if got := strings.Contains(p.Text, "New thought."); got != shows[name] {
				t.Errorf("thoughts of the turn that goes on: %v, want %v\n%s", got, shows[name], p.Text)
			}
		})
	}
}

// TestPublishedOff switches the thoughts of each published template off: no prompt ends inside them.
func TestPublishedOff(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Context: 16})
	ask := []grove.Message{{Role: "user", Content: "Weather?"}}
	opened := 0
	for name, tmpl := range publishedTemplates(t, m) {
		o := grove.ChatOptions{Template: tmpl, Reasoning: grove.ReasoningOn}
		if strings.HasSuffix(name, "-tool_use") { // it needs tools
			continue
		}
		on, err := m.ApplyTemplate(ask, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		o.Reasoning = grove.ReasoningOff
		off, err := m.ApplyTemplate(ask, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, ok := off.Format.Inside(off.Tail); ok || strings.HasSuffix(off.Text, "<|start|>assistant") {
			t.Errorf("%s: the prompt ends with %q", name, off.Tail)
		}
		if _, ok := on.Format.Inside(on.Tail); ok || strings.HasSuffix(on.Text, "<|start|>assistant") {
			opened++
		}
	}
	if opened < 12 {
		t.Errorf("%d templates begin thoughts; the test expects 12", opened)
	}
}

// TestReasoningOff sets variables, closes thoughts, and refuses where neither helps.
func TestReasoningOff(t *testing.T) {
	m := open(t, thinker(t), grove.Options{})
	option := new(grove.OptionError)
	for _, tt := range []struct {
		source, vars string
		how          grove.Reasoning
		tools        bool
		want         string // the prompt, or the error
	}{
		{"{{ enable_thinking }}", "", grove.ReasoningOff, false, "False"},
		{"{{ enable_thinking }}", "", grove.ReasoningOn, false, "True"},
		{"{{ enable_thinking }}", "", grove.ReasoningAuto, false, ""},
		{"{{ enable_thinking }}", "true", grove.ReasoningOff, false, "True"},
		{"A<think>\n{# </think> #}", "", grove.ReasoningOff, false, "A<think>\n\n</think>\n\n"},
		{"A<think>{# </think> #}", "", grove.ReasoningOff, false, "A<think></think>"},
		{"A<think>{# </think> #}", "", grove.ReasoningAuto, false, "A<think>"},
		{"A{# </think> #}", "", grove.ReasoningOff, false, "A<think>\n\n</think>\n\n"},
		{"A", "", grove.ReasoningOff, false, "A"},
		{"<|start|>assistant", "", grove.ReasoningOff, false, "<|start|>assistant<|channel|>final<|message|>"},
		{"{{ tools[0].function.name }} Tells it.<|start|>assistant", "", grove.ReasoningOff, true, "reasoning is off"},
		{"A", "", "sometimes", false, `reasoning is "sometimes"; it must be auto, on or off`},
	} {
		tmpl, err := m.Templates().New("test", tt.source)
		if err != nil {
			t.Fatal(err)
		}
		o := grove.ChatOptions{Template: tmpl, Reasoning: tt.how}
		if tt.vars != "" {
			o.Vars = map[string]json.RawMessage{"enable_thinking": json.RawMessage(tt.vars)}
		}
		if tt.tools {
			o.Tools = []json.RawMessage{json.RawMessage(weatherTool)}
		}
		p, err := m.ApplyTemplate([]grove.Message{{Role: "user"}}, o)
		if err != nil {
			if !errors.As(err, &option) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q: %v, want %q", tt.source, err, tt.want)
			}
		} else if p.Text != tt.want {
			t.Errorf("%q, %s: %q, want %q", tt.source, tt.how, p.Text, tt.want)
		}
	}
	if _, err := grove.Open(goldenModel, threaded(grove.Options{Reasoning: "never"})); !errors.As(err, &option) {
		t.Errorf("a model is opened with reasoning never: %v", err)
	}
}

// TestDates: templates that read a variable of the date get the day of the prompt, unless the request sets it.
func TestDates(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	tmpl, err := m.Templates().New("test", "{{ date_string }}, {{ datetime }}, {{ strftime_now('%d %b %Y') }}")
	if err != nil {
		t.Fatal(err)
	}
	o := grove.ChatOptions{Template: tmpl}
	o.Now = time.Date(2026, 3, 5, 23, 30, 0, 0, time.FixedZone("", -3600))
	for want, vars := range map[string]map[string]json.RawMessage{
		"05 Mar 2026, Mar 06 2026 00:30:00 GMT, 05 Mar 2026": nil,
		"today, Mar 06 2026 00:30:00 GMT, 05 Mar 2026":       {"date_string": json.RawMessage(`"today"`)},
	} {
		o.Vars = vars
		if p, err := m.ApplyTemplate([]grove.Message{{Role: "user"}}, o); err != nil || p.Text != want {
			t.Errorf("%q, %v; want %q", p.Text, err, want)
		}
	}
}

// TestGenericTools makes tools and calls text where a template has no place for them.
func TestGenericTools(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	const turns = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
	const calls = "<assistant><tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\":\"Bern\"}}\n</tool_call>"
	for _, tt := range []struct {
		name, source string
		system       string
		starts, has  string
	}{
		{"system", turns, "", "<system>You can call functions.", calls + "<user><tool_response>\n{\"sky\": \"clear\"}\n</tool_response><assistant>It is clear.<user>And now?" + calls},
		{"more of the system", turns, "Be brief.", "<system>Be brief.\n\nYou can call functions.", calls},
		{"no system", "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + turns, "", "<user>You can call functions.", "between <tool_response> tags.\n\nWeather in Bern?" + calls},
		{"no system, with one", "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + turns, "Be brief.", "<user>Be brief.\n\nYou can call functions.", calls},
		{"calls alone", "{{ tools[0].function.name }} Tells it.:" + turns, "", "weather Tells it.:<user>Weather in Bern?<assistant><tool_call>", calls},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := m.Templates().New("test", tt.source)
			if err != nil {
				t.Fatal(err)
			}
			o := grove.ChatOptions{Template: tmpl}
			o.Tools = []json.RawMessage{json.RawMessage(weatherTool)}
			messages := toolTalk()
			if tt.system != "" {
				messages = append([]grove.Message{{Role: "system", Content: tt.system}}, messages...)
			}
			p, err := m.ApplyTemplate(messages, o)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(p.Text, tt.starts) || !strings.Contains(p.Text, tt.has) || !strings.Contains(p.Text, "Tells it.") {
				t.Errorf("the prompt is\n%s", p.Text)
			}
			r := parts.NewReader(parts.Options{Format: p.Format, Tools: o.Tools, Tail: p.Tail})
			if got := r.Add("<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>", ""); len(got) != 1 || got[0].Call == nil {
				t.Errorf("the call that the prompt asks for is read as %v", got)
			}
		})
	}
	refuses, err := m.Templates().New("test", "{{ raise_exception('never') }}")
	if err != nil {
		t.Fatal(err)
	}
	o := grove.ChatOptions{Template: refuses}
	o.Tools = []json.RawMessage{json.RawMessage(weatherTool)}
	if _, err := m.ApplyTemplate(toolTalk(), o); err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("a template that refuses everything: %v", err)
	}
}

// TestGenericToolsRefused: tools and messages that any template refuses are not made text.
func TestGenericToolsRefused(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	tmpl, err := m.Templates().New("test", "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, tool string
		messages   []grove.Message
		want       string
	}{
		{"no messages", weatherTool, nil, "the conversation is empty"},
		{"a role", weatherTool, []grove.Message{{Role: "king", Content: "A"}}, `the role "king"`},
		{"no JSON", `{"type":`, toolTalk(), "tool 1: "},
		{"no name", `{"type":"function","function":{}}`, toolTalk(), "tool 1: function.name is missing"},
		{"no object", `[1]`, toolTalk(), "tool 1: function.name is missing"},
	} {
		o := grove.ChatOptions{Template: tmpl}
		o.Tools = []json.RawMessage{json.RawMessage(tt.tool)}
		if p, err := m.ApplyTemplate(tt.messages, o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v; want %s", tt.name, p.Text, err, tt.want)
		}
	}
}

// TestParts tells thoughts and content of an answer apart.
func TestParts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	m := open(t, thinker(t), grove.Options{})
	for source, want := range map[string]string{
		"A{# </think> #}":             "1xxx|0B",
		"A<think>{# </think> #}":      "1xxx|0B",
		"A<think></think>{# again #}": "0B",
	} {
		tmpl, err := m.Templates().New("test", source)
		if err != nil {
			t.Fatal(err)
		}
		budget := 3
		g, err := m.Chat(t.Context(), []grove.Message{{Role: "user"}}, grove.ChatOptions{Template: tmpl}, grove.Request{MaxTokens: 20, Thinking: &budget})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		last := parts.CallPart
		for read, err := range g.Parts() {
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range read.Parts {
				if p.Kind != last {
					got = append(got, string('0'+rune(p.Kind)))
				}
				last = p.Kind
				got[len(got)-1] += p.Text
			}
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

// TestTail is the end of the prompt that belongs to the answer: what the template begins, or the answer that goes on.
func TestTail(t *testing.T) {
	m := open(t, goldenModel, grove.Options{})
	const turns = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant><think>{% endif %}{# </think> #}"
	tmpl, err := m.Templates().New("test", turns)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		last   string // the answer that goes on; "": none does
		want   string
		inside bool
	}{
		{"", "<assistant><think>", true}, {"<think>so far", "<assistant><think>so far", true}, {"<think>a</think>so far", "<assistant><think>a</think>so far", false},
	} {
		messages := []grove.Message{{Role: "user", Content: "What is <think>?"}}
		o := grove.ChatOptions{Template: tmpl}
		if tt.last != "" {
			o.Continue = true
			messages = append(messages, grove.Message{Role: "assistant", Content: tt.last})
		}
		p, err := m.ApplyTemplate(messages, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, inside := p.Format.Inside(p.Tail); p.Tail != tt.want || inside != tt.inside {
			t.Errorf("%q: the tail is %q, inside thoughts: %v", tt.last, p.Tail, inside)
		}
	}
}
