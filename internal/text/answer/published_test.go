package answer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/answer"
	"grove/internal/text/chat"
)

// published is a folder with the templates of published models.
const published = "../../../../shared/data/templates"

// templates returns the published templates by their names. It skips the test where the shared data are missing. Where CI is set
// and there are shared data, a missing folder is a failure.
func templates(t *testing.T) map[string]*chat.Template {
	t.Helper()
	if _, err := os.Stat(published); err != nil {
		if _, err := os.Stat("../../../../shared"); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("%s is missing", published)
		}
		t.Skipf("needs %s: not there", published)
	}
	files, err := filepath.Glob(filepath.Join(published, "*.jinja"))
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
		if all[name], err = chat.New(name, string(source), chat.Tokens{BOS: "<s>", EOS: "</s>"}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func calls(all ...[2]string) (list []chat.ToolCall) {
	for _, c := range all {
		call := chat.ToolCall{ID: "call12345", Type: "function"}
		call.Function.Name, call.Function.Arguments = c[0], json.RawMessage(c[1])
		list = append(list, call)
	}
	return list
}

// ends are the markers that end a turn, and what templates write around turns.
var ends = []string{"<|im_end|>", "</s>", "<|eot_id|>", "<|eom_id|>", "<seed:eos>", "[e~[", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "<sep>", "<turn|>", "<|end|>", "<|return|>", "<SPECIAL_12>"}

// turn returns what a template writes for an answer behind the prompt, without the marker that ends the turn, and the end of the
// prompt.
func turn(t *testing.T, tmpl *chat.Template, m chat.Message, vars map[string]json.RawMessage) (text, tail string, err error) {
	t.Helper()
	question := []chat.Message{{Role: "user", Content: "Weather?"}}
	before, err := tmpl.Render(question, chat.Options{Tools: published2, Vars: vars})
	if err != nil {
		return "", "", err
	}
	all, err := tmpl.Render(append(question, m), chat.Options{Tools: published2, Vars: vars, NoAnswer: true})
	if err != nil {
		return "", "", err
	}
	tail = before.Text
	if n := len(before.Inputs); n > 0 {
		tail = tail[before.Inputs[n-1].To:]
	}
	text, ok := strings.CutPrefix(all.Text, before.Text)
	if !ok { // the prompt has thoughts that the answer has not
		at := 0
		for at < min(len(before.Text), len(all.Text)) && before.Text[at] == all.Text[at] {
			at++
		}
		at = strings.LastIndex(before.Text[:at+1], "<")
		text, tail = all.Text[at:], tail[:max(0, len(tail)-len(before.Text)+at)]
	}
	for cut := true; cut; {
		text, cut = strings.TrimSpace(text), false
		for _, end := range ends {
			if rest, ok := strings.CutSuffix(text, end); ok {
				text, cut = rest, true
			}
		}
	}
	return text, tail, nil
}

// published2 are the two functions of the tests.
var published2 = []json.RawMessage{
	tool("get_weather", `"city":{"type":"string","description":"c"},"days":{"type":"integer","description":"d"}`),
	tool("add", `"a":{"type":"array","description":"x","items":{"type":"number"}},"b":{"type":"object","description":"x"},"c":{"type":"boolean","description":"d"}`),
}

// noCalls names the published templates that do not show two calls, each with the reason.
var noCalls = map[string]string{
	"HuggingFaceTB-SmolLM3-3B": "it shows no tools", "llama-cpp-rwkv-world": "it shows no tools", "microsoft-Phi-3.5-mini-instruct": "it shows no tools",
	"deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "it shows no tools", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "it shows no tools", "google-gemma-2-2b-it": "it shows no tools",
	"LFM2-8B-A1B": "it shows no calls", "LFM2.5-Instruct": "it shows no calls",
	"Kimi-K2-Instruct": "it changes a list, which jinja2's sandbox refuses, too", "Kimi-K2-Thinking": "it changes a list, which jinja2's sandbox refuses, too",
	"fireworks-ai-llama-3-firefunction-v2": "its tools are in the variable functions",
	"llama-cpp-deepseek-r1":                "it shows a generator as JSON, which jinja2 refuses, too",
}

// TestPublishedCalls renders calls by each published template and reads them back, whole and cut at every byte.
func TestPublishedCalls(t *testing.T) {
	passed := 0
	all := templates(t)
	for name, tmpl := range all {
		t.Run(name, func(t *testing.T) {
			two := calls([2]string{"get_weather", `{"city":"Bern <x> \"y\"","days":2}`}, [2]string{"add", `{"a":[1,2.5],"b":{"k":"v"},"c":true}`})
			text, tail, err := turn(t, tmpl, chat.Message{Role: "assistant", ToolCalls: two}, nil)
			if err != nil {
				text, tail, err = turn(t, tmpl, chat.Message{Role: "assistant", ToolCalls: two[:1]}, nil)
			}
			if noCalls[name] != "" {
				if err == nil && strings.Contains(text, "get_weather") {
					t.Errorf("it shows calls now: %q", text)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			for _, c := range two {
				if strings.Contains(text, c.Function.Name) {
					want += "«" + c.Function.Name + string(c.Function.Arguments) + "»"
				}
			}
			got := cuts(t, answer.Options{Format: answer.FormatOf(tmpl.Source(), noPiece), Tools: published2, Tail: tail}, text)
			if diff := cmp.Diff(want, got); diff != "" || want == "" {
				t.Errorf("of %q behind %q (-want +got):\n%s", text, tail, diff)
				return
			}
			passed++
		})
	}
	t.Logf("the calls of %d of %d templates are read back", passed, len(all))
}

// showsThoughts are the published templates that show the thoughts of an answer; others leave them out, or let the model begin them.
var showsThoughts = strings.Fields("Bielik-11B-v3.0-Instruct ByteDance-Seed-OSS GLM-4.6 MiniMax-M2 NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 Qwen3.5-4B Reka-Edge " +
	"StepFun3.5-Flash deepseek-ai-DeepSeek-V3.2 google-gemma-4-31B-it-interleaved openai-gpt-oss-120b stepfun-ai-Step-3.5-Flash upstage-Solar-Open-100B")

// TestPublishedThoughts renders thoughts by each published template and reads them back, with the content and the call that the
// template shows beside them.
func TestPublishedThoughts(t *testing.T) {
	passed := 0
	for name, tmpl := range templates(t) {
		vars := map[string]json.RawMessage{"enable_thinking": json.RawMessage("true"), "thinking": json.RawMessage("true")}
		one := calls([2]string{"get_weather", `{"city":"Bern","days":2}`})
		m := chat.Message{Role: "assistant", Reasoning: "I think\n\nof <b>.", Content: "Let me see.", ToolCalls: one}
		text, tail, err := turn(t, tmpl, m, vars)
		if !strings.Contains(text, m.Reasoning) { // it shows thoughts beside a call alone, or beside content alone
			m.Content = ""
			if text, tail, err = turn(t, tmpl, m, vars); !strings.Contains(text, m.Reasoning) {
				m.Content, m.ToolCalls = "Let me see.", nil
				text, tail, err = turn(t, tmpl, m, vars)
			}
		}
		if shown := err == nil && strings.Contains(text, m.Reasoning); shown != slices.Contains(showsThoughts, name) {
			t.Errorf("%s: thoughts are shown: %v, %v, %q", name, shown, err, text)
			continue
		} else if !shown {
			continue
		}
		content, called := "", ""
		if strings.Contains(text, "Let me see.") {
			content = "Let me see."
		}
		if strings.Contains(text, "get_weather") {
			called = `«get_weather{"city":"Bern","days":2}»`
		}
		want := "{" + m.Reasoning + "}"
		got := cuts(t, answer.Options{Format: answer.FormatOf(tmpl.Source(), noPiece), Tools: published2, Tail: tail}, text)
		if got != want+content+called && got != want+called+content {
			t.Errorf("%s: of %q behind %q\n%q, want\n%q", name, text, tail, got, want+content+called)
			continue
		}
		passed++
	}
	t.Logf("the thoughts of %d templates are read back", passed)
}

// TestPublishedThinking reads thoughts in the markers that each published template mentions, behind its prompt.
func TestPublishedThinking(t *testing.T) {
	formats := 0
	for name, tmpl := range templates(t) {
		f := answer.FormatOf(tmpl.Source(), noPiece)
		p, err := tmpl.Render([]chat.Message{{Role: "user", Content: "Weather?"}}, chat.Options{Vars: map[string]json.RawMessage{"enable_thinking": json.RawMessage("true")}})
		if err != nil {
			continue // it needs tools
		}
		tail := p.Text[p.Inputs[len(p.Inputs)-1].To:]
		for _, m := range answer.KnownMarkers() {
			if _, ok := f.Inside(m.Begin); !ok {
				continue
			}
			text := m.Begin + "\nHm.\n" + m.End + "\n\nYes."
			if _, ok := f.Inside(tail); ok {
				text = strings.TrimPrefix(text, m.Begin)
			} else if strings.HasSuffix(strings.TrimSpace(tail), m.End) {
				text = "Yes."
			}
			if got := cuts(t, answer.Options{Format: f, Tail: tail}, text); got != "{Hm.}Yes." && (text != "Yes." || got != text) {
				t.Errorf("%s: %q behind %q is read as %q", name, text, tail, got)
			}
			formats++
		}
	}
	if t.Logf("thoughts in the markers of %d templates are read", formats); formats < 20 {
		t.Error("there are fewer than 20")
	}
}
