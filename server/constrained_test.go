package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"grove/gopher"
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
	s := serveModels(t, server.Config{}, source(modelName, edited(t, gopher.Model(), template), options))
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
