package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"grove/server"
)

// person is a schema of the tests.
const person = `{"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer","minimum":0,"maximum":120},"kind":{"enum":["a","b"]}},"required":["name","age","kind"],"additionalProperties":false}`

// checkPerson says what is wrong with a text that should keep to the schema.
func checkPerson(text string) string {
	var p map[string]any
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err.Error()
	}
	name, isText := p["name"].(string)
	age, isNumber := p["age"].(float64)
	kind, _ := p["kind"].(string)
	if len(p) != 3 || !isText || len([]rune(name)) > 8 || !isNumber || age < 0 || age > 120 || age != float64(int(age)) || kind != "a" && kind != "b" {
		return fmt.Sprint(p)
	}
	return ""
}

// textOf returns the text of an answer of a route.
func textOf(path string, o map[string]any) string {
	switch path {
	case "/v1/chat/completions":
		return fmt.Sprint(at(o, "choices", 0, "message", "content"))
	case "/v1/completions":
		return fmt.Sprint(at(o, "choices", 0, "text"))
	case "/v1/responses":
		return fmt.Sprint(at(o, "output", 0, "content", 0, "text"))
	case "/v1/messages":
		return fmt.Sprint(at(o, "content", 0, "text"))
	case "/api/chat":
		return fmt.Sprint(at(o, "message", "content"))
	case "/api/generate":
		return fmt.Sprint(at(o, "response"))
	}
	return fmt.Sprint(at(o, "content"))
}

// at returns a value within others.
func at(v any, path ...any) any {
	if o, ok := v.(object); ok {
		v = map[string]any(o)
	}
	for _, step := range path {
		switch s := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[s]
		case int:
			list, _ := v.([]any)
			if s >= len(list) {
				return nil
			}
			v = list[s]
		}
	}
	return v
}

// TestConstrainedFields: each field of each API holds the answer to what it asks for.
func TestConstrainedFields(t *testing.T) {
	s := serveModels(t, server.Config{}, source(modelName, edited(t, served(), template), options))
	oneOf := func(all ...string) func(string) string {
		return func(text string) string {
			if slices.Contains(all, text) {
				return ""
			}
			return fmt.Sprintf("%q is none of %q", text, all)
		}
	}
	object := func(text string) string {
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			return err.Error()
		}
		return ""
	}
	// A grammar with a small language, in both notations.
	const gbnf, lark = `root ::= "yes" | "no" [0-9]{2}`, `start: "yes" | "no" /[0-9]{2}/`
	yes := func(text string) string {
		if text == "yes" || len(text) == 4 && strings.HasPrefix(text, "no") && strings.Trim(text[2:], "0123456789") == "" {
			return ""
		}
		return fmt.Sprintf("%q", text)
	}
	const (
		messages = `"messages":[{"role":"user","content":"hi"}],"max_tokens":120`
		prompt   = `"prompt":"package main","max_tokens":120`
	)
	for _, c := range []struct {
		path, fields string
		check        func(string) string
	}{
		{"/v1/chat/completions", messages + `,"response_format":{"type":"json_schema","json_schema":{"name":"p","strict":true,"schema":` + person + `}}`, checkPerson},
		{"/v1/chat/completions", messages + `,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":` + person + `}}`, checkPerson},
		{"/v1/chat/completions", messages + `,"response_format":{"type":"json_object","schema":` + person + `}`, checkPerson},
		{"/v1/chat/completions", messages + `,"json_schema":` + person, checkPerson},
		{"/v1/chat/completions", messages + `,"guided_json":` + person, checkPerson},
		{"/v1/chat/completions", messages + `,"guided_choice":["red","green"]`, oneOf("red", "green")},
		{"/v1/chat/completions", messages + `,"guided_regex":"(ab){2}"`, oneOf("abab")},
		{"/v1/chat/completions", messages + `,"guided_grammar":` + quoted(lark), yes},
		{"/v1/chat/completions", messages + `,"structured_outputs":{"json":` + person + `}`, checkPerson},
		{"/v1/chat/completions", messages + `,"structured_outputs":{"regex":"(ab){2}"}`, oneOf("abab")},
		{"/v1/chat/completions", messages + `,"structured_outputs":{"choice":["red","green"]}`, oneOf("red", "green")},
		{"/v1/chat/completions", messages + `,"structured_outputs":{"grammar":` + quoted(gbnf) + `}`, yes},
		{"/v1/chat/completions", messages + `,"grammar":` + quoted(gbnf), yes},
		{"/v1/chat/completions", messages + `,"ebnf":` + quoted(gbnf), yes},
		{"/v1/chat/completions", messages + `,"regex":"[xy]z"`, oneOf("xz", "yz")},
		{"/v1/completions", prompt + `,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":` + person + `}}`, checkPerson},
		{"/v1/completions", prompt + `,"guided_choice":["red","green"]`, oneOf("red", "green")},
		{"/v1/completions", prompt + `,"json_schema":` + quoted(person), checkPerson},
		{"/completion", `"prompt":"package main","n_predict":120,"json_schema":` + person, checkPerson},
		{"/completion", `"prompt":"package main","n_predict":120,"grammar":` + quoted(gbnf), yes},
		{"/v1/responses", `"input":"hi","max_output_tokens":120,"text":{"format":{"type":"json_schema","name":"p","strict":true,"schema":` + person + `}}`, checkPerson},
		{"/v1/messages", messages + `,"output_config":{"format":{"type":"json_schema","schema":` + person + `}}`, checkPerson},
		{"/v1/messages", messages + `,"output_format":{"type":"json_schema","schema":` + person + `}`, checkPerson},
		{"/api/chat", `"stream":false,"messages":[{"role":"user","content":"hi"}],"options":{"num_predict":120},"format":` + person, checkPerson},
		{"/api/generate", `"stream":false,"prompt":"hi","options":{"num_predict":120},"format":` + person, checkPerson},
		{"/v1/chat/completions", messages + `,"guided_json":{"type":"object","properties":{"a":{"type":"integer","maximum":9,"minimum":0}},"required":["a"],"additionalProperties":false},"guided_whitespace_pattern":"","temperature":1.5`,
			func(text string) string {
				if strings.ContainsAny(text, " \n") {
					return text
				}
				return object(text)
			}},
	} {
		for _, extra := range []string{"", `,"temperature":2,"seed":7`, `,"method":"lookup"`} {
			if strings.HasPrefix(c.path, "/api/") && extra != "" || strings.Contains(c.fields, `"temperature"`) && strings.Contains(extra, "temperature") {
				continue
			}
			text := textOf(c.path, s.post(t, c.path, `{`+c.fields+extra+`}`))
			if bad := c.check(text); bad != "" {
				t.Errorf("%s %.200s%s: %q: %s", c.path, c.fields, extra, text, bad)
			}
		}
	}
}

// quoted returns a text as JSON.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // a string has no error
	return string(raw)
}

// TestConstrainedAnswers says what a form does beside other fields.
func TestConstrainedAnswers(t *testing.T) {
	s := serveTarget(t, server.Config{})
	const choice = `"guided_choice":["abc","abd"]`
	for _, c := range []struct{ name, fields, text, why string }{
		{"a stop string inside ends the text", choice + `,"stop":"b"`, "a", "stop"},
		{"a minimum length ends with the form", choice + `,"min_tokens":50`, "abd", "stop"},
		{"ends that are ignored", choice + `,"ignore_eos":true`, "abd", "stop"},
		{"a length cuts the form", `"guided_choice":["func main() { return }"],"max_tokens":1`, "f", "length"},
		{"a form of no text", `"guided_choice":[""]`, "", "stop"},
		{"probabilities of the draw", choice + `,"logprobs":2`, "abd", "stop"},
		{"a text in other letters", `"guided_choice":["日本語 😀"],"max_tokens":40`, "日本語 😀", "stop"},
		{"a banned token of a form with another", `"guided_regex":"[xy]","logit_bias":[["x",false]]`, "y", "stop"},
	} {
		body := `{"prompt":"a","temperature":0,` + c.fields
		if !strings.Contains(c.fields, "max_tokens") {
			body += `,"max_tokens":20`
		}
		o := s.post(t, "/v1/completions", body+"}")
		if text, why := textOf("/v1/completions", o), fmt.Sprint(at(o, "choices", 0, "finish_reason")); text != c.text || why != c.why {
			t.Errorf("%s: %q (%s), want %q (%s)", c.name, text, why, c.text, c.why)
		}
	}
	several := s.post(t, "/v1/completions", `{"prompt":"a","n":4,"temperature":2,"max_tokens":60,"seed":3,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":`+person+`}}}`)
	texts := map[string]bool{}
	for i := range 4 {
		text := fmt.Sprint(at(several, "choices", i, "text"))
		if texts[text] = true; checkPerson(text) != "" && at(several, "choices", i, "finish_reason") != "length" {
			t.Errorf("answer %d: %q", i, text)
		}
	}
	if len(texts) < 2 {
		t.Errorf("four answers are %v", texts)
	}
	status, text, _ := s.do(t, "POST", "/v1/completions", `{"prompt":"a","max_tokens":9,"guided_choice":["a","b"],"logit_bias":[["a",false],["b",false]]}`)
	if message, _, _, _ := wantError(t, text); status != 400 || !strings.Contains(message, "stage constraint") {
		t.Errorf("all that is legal is banned: %d %s", status, text)
	}
}

// TestLazyGrammar: a lazy grammar holds from its trigger on, in text that is free before it.
func TestLazyGrammar(t *testing.T) {
	s := serve(t, server.Config{})
	held := 0
	for seed := range 6 {
		o := s.post(t, "/completion", fmt.Sprintf(`{"prompt":"func main() {","n_predict":60,"seed":%d,"temperature":1,"grammar":"root ::= \"\\n\" [0-9]{3} \"end\"","grammar_lazy":true,"grammar_triggers":[{"type":1,"value":"\n"}]}`, seed))
		text := fmt.Sprint(o["content"])
		before, behind, found := strings.Cut(text, "\n")
		if !found {
			continue
		}
		held++
		if len(behind) != 6 || !strings.HasSuffix(behind, "end") || strings.Trim(behind[:3], "0123456789") != "" {
			t.Errorf("%q behind %q", behind, before)
		}
	}
	if held == 0 {
		t.Error("no answer came to the trigger")
	}
}

// TestConstrainedDrafts: a form gives the same answer with each way of drafting, and streamed.
func TestConstrainedDrafts(t *testing.T) {
	s := serve(t, server.Config{})
	fields := `"prompt":"package main","max_tokens":60,"temperature":0.9,"seed":5,"json_schema":` + person
	want := ""
	for _, method := range []string{"off", "auto", "lookup", "sam", "goose"} {
		o := s.post(t, "/v1/completions", `{`+fields+`,"method":"`+method+`"}`)
		text := textOf("/v1/completions", o)
		if want == "" {
			want = text
		}
		if text != want {
			t.Errorf("%s: %q, plain %q", method, text, want)
		}
	}
	_, stream, _ := s.do(t, "POST", "/v1/completions", `{`+fields+`,"stream":true}`)
	var b strings.Builder
	for line := range strings.Lines(stream) {
		var o map[string]any
		if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &o) == nil {
			b.WriteString(fmt.Sprint(at(o, "choices", 0, "text")))
		}
	}
	if b.String() != want {
		t.Errorf("streamed: %q, want %q", b.String(), want)
	}
}
