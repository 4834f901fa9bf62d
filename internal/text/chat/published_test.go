package chat_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/chat"
	"grove/internal/text/jinja"
)

// published is a folder with the templates of published models, and renders.jsonl, their prompts by jinja2.
const published = "../../../../shared/data/templates"

// needPublished skips the test where the shared data are missing. Where CI is set and there are shared data, a missing
// folder is a failure.
func needPublished(t *testing.T) {
	if _, err := os.Stat(published); err == nil {
		return
	}
	if _, err := os.Stat("../../../../shared"); err == nil && os.Getenv("CI") != "" {
		t.Fatalf("%s is missing", published)
	}
	t.Skipf("needs %s: not there", published)
}

// TestPublished compares the prompts of published templates with those of jinja2.
func TestPublished(t *testing.T) {
	needPublished(t)
	f, err := os.Open(filepath.Join(published, "renders.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	n := 0
	for ; lines.Scan(); n++ {
		var r struct {
			Template, Case, Text, Error string
			Variables                   map[string]json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		t.Run(r.Template+"/"+r.Case, func(t *testing.T) {
			got, err := renderPublished(t, r.Template, r.Variables)
			raised, bad := new(jinja.RaisedError), new(jinja.Error)
			switch {
			case strings.HasPrefix(r.Error, "TemplateError: "):
				if want := strings.TrimPrefix(r.Error, "TemplateError: "); !errors.As(err, &raised) || raised.Msg != want {
					t.Errorf("got %q and %v, want the exception %q", got, err, want)
				}
			case r.Error != "":
				if !errors.As(err, &bad) || errors.Is(err, jinja.ErrLimit) {
					t.Errorf("got %q and %v, want an error like %s", got, err, r.Error)
				}
			case err != nil:
				t.Error(err)
			default:
				if diff := cmp.Diff(r.Text, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	if err := lines.Err(); err != nil || n != 688 {
		t.Fatalf("%d renders, %v; want 688", n, err)
	}
}

func renderPublished(t *testing.T, name string, variables map[string]json.RawMessage) (string, error) {
	source, err := os.ReadFile(filepath.Join(published, name+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := jinja.Parse(string(source))
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]jinja.Value{}
	for k, v := range variables {
		if vars[k], err = jinja.FromJSON(-1, v); err != nil {
			t.Fatal(err)
		}
	}
	out, err := tmpl.Render(vars, jinja.Options{Now: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)})
	return out.String(), err
}

// refuses names the published templates that refuse the conversation of TestConversation, or do so without tools, each with
// the error.
var refuses = map[string]string{
	"HuggingFaceTB-SmolLM3-3B":                 chat.ErrTools.Error(), // it shows the variables xml_tools and python_tools, and no calls
	"Kimi-K2-Instruct":                         `attribute "append" of list is undefined`,
	"Kimi-K2-Thinking":                         `attribute "append" of list is undefined`,
	"LFM2-8B-A1B":                              chat.ErrTools.Error(), // it shows no calls: only the list of tools has the name
	"LFM2.5-Instruct":                          chat.ErrTools.Error(),
	"fireworks-ai-llama-3-firefunction-v2":     "functions is undefined", // its tools are in the variable functions
	"deepseek-ai-DeepSeek-R1-Distill-Llama-8B": chat.ErrTools.Error(),    // it shows calls, and no list of tools
	"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": chat.ErrTools.Error(),
	"google-gemma-2-2b-it":                     "Conversation roles must alternate",   // it has no place for results
	"llama-cpp-deepseek-r1":                    "a generator has no text and no JSON", // it fails in jinja2 with tools
	"llama-cpp-rwkv-world":                     chat.ErrTools.Error(),
	"microsoft-Phi-3.5-mini-instruct":          chat.ErrTools.Error(),
}

// TestConversation renders every published template, as chat does, with all kinds of messages: system, user, an assistant's
// reasoning and call, the tool's result and the next question; with thinking on, off and not said.
func TestConversation(t *testing.T) {
	needPublished(t)
	files, err := filepath.Glob(filepath.Join(published, "*.jinja"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d templates, %v; want 40 or more", len(files), err)
	}
	call := chat.ToolCall{ID: "call12345", Type: "function"}
	call.Function.Name, call.Function.Arguments = "weather", json.RawMessage(`{"city":"Bern","days":2}`)
	messages := []chat.Message{
		{Role: "system", Content: "Be brief."}, user("Weather in Bern?"),
		{Role: "assistant", Reasoning: "I need the forecast.", ToolCalls: []chat.ToolCall{call}},
		{Role: "tool", Content: `{"sky": "clear"}`, ToolCallID: "call12345", Name: "weather"},
		{Role: "assistant", Content: "It is clear."}, user("And tomorrow?"),
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := chat.New(name, string(source), tokens)
		if err != nil {
			t.Error(err)
			continue
		}
		refused := 0
		for _, vars := range []map[string]json.RawMessage{nil, {"enable_thinking": json.RawMessage("true")}, {"enable_thinking": json.RawMessage("false")}} {
			for _, tools := range [][]json.RawMessage{nil, {json.RawMessage(weather)}} {
				t.Run(name, func(t *testing.T) {
					prompt, err := tmpl.Render(messages, chat.Options{Vars: vars, Tools: tools})
					if err != nil {
						if refused++; refuses[name] == "" || !strings.Contains(err.Error(), refuses[name]) {
							t.Error(err)
						}
						return
					}
					for _, want := range []string{"Weather in Bern?", "clear", "And tomorrow?", "weather", "Bern"} {
						if !strings.Contains(prompt.Text, want) {
							t.Errorf("%q is missing in the prompt\n%s", want, prompt.Text)
						}
					}
				})
			}
		}
		if refuses[name] != "" && refused == 0 {
			t.Errorf("%s renders; remove it from the templates that refuse", name)
		}
	}
}
