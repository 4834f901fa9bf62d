package chat_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"grove/internal/text/chat"
)

// wantNine are templates that want ids of nine letters and digits: of calls and results, as those of Mistral; of calls alone; and one
// that takes the end of longer ids, as vLLM's does.
var wantNine = map[string]string{
	"calls and results": `{% for m in messages %}{% if m.role == 'tool' %}{% if m.tool_call_id is not defined or m.tool_call_id is not string or m.tool_call_id|length != 9 %}{{ raise_exception('nine') }}{% endif %}<result {{ m.tool_call_id }}>{{ m.content }}{% elif m.tool_calls %}{% for c in m.tool_calls %}{% if c.id is not defined or c.id|length != 9 %}{{ raise_exception('nine') }}{% endif %}<call {{ c.id }}>{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}{{ tools }}`,
	"calls":             `{% for m in messages %}{% if m.role == 'tool' %}<result {{ m.tool_call_id }}>{{ m.content }}{% elif m.tool_calls %}{% for c in m.tool_calls %}{% if c.id|length != 9 %}{{ raise_exception('nine') }}{% endif %}<call {{ c.id }}>{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}{{ tools }}`,
	"ends of ids":       `{% for m in messages %}{% if m.role == 'tool' %}<result {{ m.tool_call_id[-9:] }}>{{ m.content }}{% elif m.tool_calls %}{% for c in m.tool_calls %}{% if c.id|length < 9 %}{{ raise_exception('nine') }}{% endif %}<call {{ c.id[-9:] }}>{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}{{ tools }}`,
}

// callOf returns a call of a function.
func callOf(id, name string) chat.ToolCall {
	c := chat.ToolCall{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, json.RawMessage(`{"at":"x"}`)
	return c
}

// TestNine: a template that wants ids of nine letters and digits gets them, whatever the client's are: each result has the id of its call.
func TestNine(t *testing.T) {
	long := strings.Repeat("x", 900)
	marks := regexp.MustCompile(`<(call|result) ([^>]*)>([a-z0-9]*)`)
	for name, source := range wantNine {
		tmpl, err := chat.New("test", source, tokens)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name    string
			calls   []chat.ToolCall
			results []chat.Message // the content is the number of the call
			want    []string       // ids that stay
		}{
			{"fit", []chat.ToolCall{callOf("abcdefghi", "f"), callOf("ABCdef123", "g")}, []chat.Message{{ToolCallID: "abcdefghi", Content: "0"}, {ToolCallID: "ABCdef123", Content: "1"}}, []string{"abcdefghi", "ABCdef123"}},
			{"OpenAI", []chat.ToolCall{callOf("call_0123456789abcdef", "f"), callOf("call_0123456789abcdeg", "g")}, []chat.Message{{ToolCallID: "call_0123456789abcdeg", Content: "1"}, {ToolCallID: "call_0123456789abcdef", Content: "0"}}, nil},
			{"Anthropic", []chat.ToolCall{callOf("toolu_abcdefghi", "f"), callOf("abcdefghi", "g")}, []chat.Message{{ToolCallID: "toolu_abcdefghi", Content: "0"}, {ToolCallID: "abcdefghi", Content: "1"}}, []string{"", "abcdefghi"}},
			{"short, long and strange", []chat.ToolCall{callOf("1", "f"), callOf(long, "g"), callOf("a-b_c:d/e", "h"), callOf("é日本", "f")},
				[]chat.Message{{ToolCallID: long, Content: "1"}, {ToolCallID: "a-b_c:d/e", Content: "2"}, {ToolCallID: "1", Content: "0"}, {ToolCallID: "é日本", Content: "3"}}, nil},
			{"none, by order", []chat.ToolCall{callOf("", "f"), callOf("", "f")}, []chat.Message{{Content: "0"}, {Content: "1"}}, nil},
			{"none, by name", []chat.ToolCall{callOf("", "f"), callOf("", "g"), callOf("", "f")}, []chat.Message{{Name: "g", Content: "1"}, {Name: "f", Content: "0"}, {Name: "f", Content: "2"}}, nil},
			{"of results alone", []chat.ToolCall{callOf("", "f"), callOf("", "g")}, []chat.Message{{ToolCallID: "x", Name: "g", Content: "1"}, {ToolCallID: "y", Content: "0"}}, nil},
			{"of calls alone", []chat.ToolCall{callOf("call_1", "f"), callOf("call_2", "g")}, []chat.Message{{Name: "g", Content: "1"}, {Content: "0"}}, nil},
		} {
			talk := []chat.Message{user("q")}
			for turn := range 3 { // the same in each turn; only the last one's results are looked at
				calls := append([]chat.ToolCall{}, c.calls...)
				for i := range calls {
					if calls[i].ID != "" && c.want == nil {
						calls[i].ID += fmt.Sprint(turn)
					}
				}
				talk = append(talk, chat.Message{Role: "assistant", ToolCalls: calls})
				for _, r := range c.results {
					if r.Role = "tool"; r.ToolCallID != "" && c.want == nil {
						r.ToolCallID += fmt.Sprint(turn)
					}
					talk = append(talk, r)
				}
			}
			before := ""
			for n := 1; n <= 3; n++ {
				p, err := tmpl.RenderTools(talk[:1+n*(1+len(c.results))], chat.Options{NoAnswer: true}, nil)
				if err != nil {
					t.Fatalf("%s: %s: %v", name, c.name, err)
				}
				if !strings.HasPrefix(p.Text, strings.TrimSuffix(before, "None")) {
					t.Errorf("%s: %s: ids change from turn to turn:\n%s\n%s", name, c.name, before, p.Text)
				}
				before = strings.TrimSuffix(p.Text, "None")
				var ids []string
				seen := map[string]bool{}
				for _, m := range marks.FindAllStringSubmatch(p.Text, -1) {
					if len(m[2]) != 9 || strings.Trim(m[2], "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
						t.Errorf("%s: %s: the id %q", name, c.name, m[2])
					}
					if m[1] == "call" {
						if len(ids) == len(c.calls) {
							ids = nil
						}
						if seen[m[2]] && c.want == nil {
							t.Errorf("%s: %s: two calls have the id %s", name, c.name, m[2])
						}
						seen[m[2]], ids = true, append(ids, m[2])
						continue
					}
					var k int
					if _, err := fmt.Sscan(m[3], &k); err != nil || ids[k] != m[2] {
						t.Errorf("%s: %s: the result of call %s has the id %s, the calls %v", name, c.name, m[3], m[2], ids)
					}
				}
				for i, want := range c.want {
					if want != "" && ids[i] != want {
						t.Errorf("%s: %s: the id %s is %s", name, c.name, want, ids[i])
					}
				}
			}
		}
	}
}

// TestSomeIDs: a template that refuses calls without ids gets the client's, and ids for those that have none.
func TestSomeIDs(t *testing.T) {
	tmpl, err := chat.New("test", `{% for m in messages %}{{ m.content }}{% if m.role == 'tool' %}[{{ m.tool_call_id or raise_exception('no id') }}]{% endif %}{% for c in m.tool_calls or [] %}<{{ c.id or raise_exception('no id') }}>{{ c.function.name }}{% endfor %}{% endfor %}`, tokens)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"call_1", "toolu_01A09q90qw90lq917835lq9"} {
		p, err := tmpl.RenderTools([]chat.Message{user("q"), {Role: "assistant", ToolCalls: []chat.ToolCall{callOf(id, "f")}}, {Role: "tool", ToolCallID: id, Content: "r"}}, chat.Options{NoAnswer: true}, nil)
		if err != nil || p.Text != "q<"+id+">fr["+id+"]" {
			t.Errorf("%q, %v", p.Text, err)
		}
	}
	p, err := tmpl.RenderTools([]chat.Message{user("q"), {Role: "assistant", ToolCalls: []chat.ToolCall{callOf("", "f")}}, {Role: "tool", Content: "r"}}, chat.Options{NoAnswer: true}, nil)
	if m := regexp.MustCompile(`^q<([0-9A-Za-z]{9})>fr\[([0-9A-Za-z]{9})\]$`).FindStringSubmatch(p.Text); err != nil || m == nil || m[1] != m[2] {
		t.Errorf("%q, %v", p.Text, err)
	}
}

// TestOtherIDs: other templates get the ids as they are.
func TestOtherIDs(t *testing.T) {
	tmpl, err := chat.New("test", `{% for m in messages %}{{ m.content }}{{ m.tool_call_id }}{% for c in m.tool_calls or [] %}{{ c.id }}{{ c.function.name }}{% endfor %}{% endfor %}`, tokens)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tmpl.RenderTools([]chat.Message{user("q"), {Role: "assistant", ToolCalls: []chat.ToolCall{callOf("call_1", "f")}}, {Role: "tool", ToolCallID: "call_1", Content: "r"}}, chat.Options{NoAnswer: true}, nil)
	if err != nil || p.Text != "qcall_1frcall_1" {
		t.Errorf("%q, %v", p.Text, err)
	}
}

// TestArgumentValues: arguments with more values of JSON than a bound, in one call or in all of them together, are refused before they
// take memory: within some times their size.
func TestArgumentValues(t *testing.T) {
	tmpl, err := chat.NewBuiltin("chatml", tokens)
	if err != nil {
		t.Fatal(err)
	}
	list := func(n int) string { return `{"a":[` + strings.TrimSuffix(strings.Repeat(`{"":0},`, n), ",") + `]}` }
	talk := func(arguments ...string) []chat.Message {
		m := chat.Message{Role: "assistant"}
		for i, a := range arguments {
			c := callOf(fmt.Sprint(i), "f")
			c.Function.Arguments, _ = json.Marshal(a) // a string has no error
			m.ToolCalls = append(m.ToolCalls, c)
		}
		return []chat.Message{user("q"), m}
	}
	fits := list(10_000) // 30,003 values
	for _, c := range []struct {
		name     string
		messages []chat.Message
		refused  bool
	}{
		{"fit", talk(fits, fits, fits), false}, {"together", talk(fits, fits, fits, fits), true}, {"one", talk(list(1_900_000)), true},
		{"nested", talk(strings.Repeat(`{"a":`, 1_000_000)), true}, {"ends early", talk(list(1_000_000)[:7_000_000]), true},
	} {
		size := 0
		for _, call := range c.messages[1].ToolCalls {
			size += len(call.Function.Arguments)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tmpl.RenderTools(c.messages, chat.Options{NoAnswer: true}, nil)
		runtime.ReadMemStats(&after)
		if (err != nil) != c.refused || c.name != "nested" && c.refused && !strings.Contains(err.Error(), "messages[1]: the arguments of calls have more than 100000 values of JSON") {
			t.Errorf("%s: %v", c.name, err)
		}
		if took := int(after.TotalAlloc - before.TotalAlloc); c.refused && took > 8*size+32<<20 {
			t.Errorf("%s: arguments of %d bytes take %d", c.name, size, took)
		}
	}
}
