package toolcall_test

import (
	"slices"
	"strings"
	"testing"

	"grove/server/toolcall"
)

// read reads the calls of an answer that comes in pieces.
func read(names []string, pieces ...string) (content string, calls []string) {
	r := toolcall.Reader{Names: names}
	note := func(text string, found []toolcall.Call) {
		content += text
		for _, f := range found {
			calls = append(calls, f.Name+f.Arguments)
		}
	}
	for _, p := range pieces {
		note(r.Add(p))
	}
	note(r.End())
	return content, calls
}

// TestCalls reads calls in the forms of several families, whole and letter by letter.
func TestCalls(t *testing.T) {
	names := []string{"look", "add"}
	for _, tt := range []struct {
		text, content string
		calls         []string
	}{
		{"just text", "just text", nil},
		{"a < b <tool b", "a < b <tool b", nil},
		{`<tool_call>{"name":"look","arguments":{"at": "x"}}</tool_call>`, "", []string{`look{"at":"x"}`}},
		{"Let me see. <tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"</b>\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\"}\n</tool_call>", "Let me see. \n",
			[]string{`look{"at":"</b>"}`, `add{}`}},
		{`<tool_call>{"name":"look","arguments":{"at":1}}`, "", []string{`look{"at":1}`}}, // the end was cut off
		{`<tool_call>{"name":"other","arguments":{}}</tool_call> then`, `<tool_call>{"name":"other","arguments":{}}</tool_call> then`, nil},
		{`<tool_call>{"name":</tool_call> then`, `<tool_call>{"name":</tool_call> then`, nil},
		{`[TOOL_CALLS][{"name":"add","arguments":{"a":1}},{"name":"look","arguments":"{\"a\":2}"}]`, "", []string{`add{"a":1}`, `look{"a":2}`}},
		{`[TOOL_CALLS] [{"name":"add","arguments":{}}]`, "", []string{`add{}`}},
		{`[TOOL_CALLS]look[ARGS]{"a": [1, 2]}[TOOL_CALLS]add[ARGS]{}`, "", []string{`look{"a":[1,2]}`, `add{}`}},
		{`[TOOL_CALLS][{]`, `[TOOL_CALLS][{]`, nil},
		{` {"name": "look", "parameters": {"at": "x"}}`, " ", []string{`look{"at":"x"}`}},
		{`{"name": "other", "parameters": {}} and`, `{"name": "other", "parameters": {}} and`, nil},
		{`{"a": {"b": [1]}}`, `{"a": {"b": [1]}}`, nil},
		{`{not JSON} at all`, `{not JSON} at all`, nil},
		{`text {"name": "look", "parameters": {}}`, `text {"name": "look", "parameters": {}}`, nil},
		{`{"name": "look", "para`, `{"name": "look", "para`, nil},
	} {
		for _, pieces := range [][]string{{tt.text}, strings.Split(tt.text, "")} {
			content, calls := read(names, pieces...)
			if content != tt.content || !slices.Equal(calls, tt.calls) {
				t.Errorf("%q in %d pieces: text %q, calls %q; want %q, %q", tt.text, len(pieces), content, calls, tt.content, tt.calls)
			}
		}
		if content, calls := read(nil, tt.text); content != tt.text || calls != nil {
			t.Errorf("%q without tools: %q, %q", tt.text, content, calls)
		}
	}
}

func FuzzCalls(f *testing.F) {
	f.Add(`a<tool_call>{"name":"look"}</tool_call>[TOOL_CALLS]look[ARGS]{}`, uint8(3))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		n := int(size)%7 + 1
		var pieces []string
		for rest := text; rest != ""; {
			k := min(n, len(rest))
			pieces, rest = append(pieces, rest[:k]), rest[k:]
		}
		content, calls := read([]string{"look"}, pieces...)
		if len(calls) == 0 && content != text {
			t.Errorf("%q became %q", text, content)
		}
	})
}
