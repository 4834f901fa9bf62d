package structured_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"grove"
	"grove/internal/text/answer"
	"grove/internal/text/calls"
	"grove/internal/text/chat"
	"grove/server/structured"
	"grove/server/wire"
)

// body has the fields of all routes, and a format.
type body struct {
	structured.Fields
	Format *structured.Format `json:"response_format"`
}

// names are the kinds of forms.
var names = map[structured.Kind]string{
	structured.Schema: "schema", structured.Regex: "regex", structured.Choice: "choice", structured.Lark: "lark", structured.GBNF: "gbnf", structured.Tree: "tree",
}

// formOf reads a body and writes its form, or its error.
func formOf(text string) string {
	var b body
	err := wire.Decode([]byte(text), &b)
	var f *structured.Form
	if err == nil {
		f, err = b.Format.Asks("response_format")
	}
	if err == nil {
		f, err = b.Form(f)
	}
	var fault *wire.Error
	switch {
	case errors.As(err, &fault):
		return "refused " + fault.Param + ": " + fault.Message
	case err != nil:
		return "error: " + err.Error()
	case f == nil:
		return ""
	}
	s := f.Field + " " + names[f.Kind] + " " + f.Text + string(f.Schema) + strings.Join(f.Choices, "|")
	if f.Whitespace != structured.Bounded {
		s += fmt.Sprint(" space ", f.Whitespace)
	}
	if f.Triggers != nil || f.Tokens != nil {
		s += fmt.Sprintf(" behind %q %v", f.Triggers, f.Tokens)
	}
	return s
}

// TestForm: each field becomes its form, and what is said in the wrong way is refused by name.
func TestForm(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{}`, ""},
		{`{"grammar":"","json_schema":{},"regex":"","ebnf":"","guided_json":null,"structured_outputs":null,"grammar_lazy":false,"grammar_triggers":[],"preserved_tokens":[]}`, ""},
		{`{"response_format":{"type":"text"},"structural_tag":""}`, ""},
		{`{"structured_outputs":{}}`, ""},

		{`{"response_format":{"type":"json_object"}}`, `response_format schema {"type":"object"}`},
		{`{"response_format":{"type":"json_object","schema":{"a":1}}}`, `response_format schema {"a":1}`},
		{`{"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"a":1},"description":"d"}}}`, `response_format schema {"a":1}`},
		{`{"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":false,"schema":{"a":1}}}}`, `response_format schema {"a":1}`},
		{`{"response_format":{"type":"json_schema","name":"n","schema":{"a":1},"strict":null}}`, `response_format schema {"a":1}`},
		{`{"response_format":{"type":"json_schema","json_schema":{"name":"n"}}}`, `refused response_format: response_format: type json_schema has no schema`},
		{`{"response_format":{"type":"json_schema"}}`, `refused response_format: response_format: type json_schema has no schema`},
		{`{"response_format":{"type":"yaml"}}`, `refused response_format: response_format: type "yaml" is not known; text, json_object and json_schema are`},
		{`{"response_format":{"type":"json_schema","json_schema":{"schema":{},"more":1}}}`, `response_format schema {}`},

		{`{"grammar":"root ::= \"a\""}`, `grammar gbnf root ::= "a"`},
		{`{"grammar":"%llguidance {}\nstart: /a/"}`, "grammar lark %llguidance {}\nstart: /a/"},
		{`{"guided_grammar":"start: \"a\""}`, `guided_grammar lark start: "a"`},
		{`{"ebnf":"root ::= \"a\""}`, `ebnf gbnf root ::= "a"`},
		{`{"json_schema":{"type":"null"}}`, `json_schema schema {"type":"null"}`},
		{`{"json_schema":"{\"type\":\"null\"}"}`, `json_schema schema {"type":"null"}`},
		{`{"json_schema":"{\"type\":"}`, `refused json_schema: json_schema: the text is not JSON`},
		{`{"regex":"a+"}`, `regex regex a+`},
		{`{"guided_json":"{\"type\":\"null\"}"}`, `guided_json schema {"type":"null"}`},
		{`{"guided_json":{"type":"null"},"guided_whitespace_pattern":"[ \\t\\r\\n]*"}`, `guided_json schema {"type":"null"} space 3`},
		{`{"guided_json":{"type":"null"},"guided_whitespace_pattern":""}`, `guided_json schema {"type":"null"} space 1`},
		{`{"guided_json":{"type":"null"},"guided_whitespace_pattern":"x"}`, `refused guided_whitespace_pattern: guided_whitespace_pattern: "x" is not known; it must be empty (no white space) or [ \t\r\n]* (any)`},
		{`{"guided_regex":"a+"}`, `guided_regex regex a+`},
		{`{"guided_choice":["a","b"]}`, `guided_choice choice a|b`},
		{`{"guided_json_object":true}`, `guided_json_object schema {"type":"object"}`},
		{`{"structured_outputs":{"json":{"type":"null"}}}`, `structured_outputs.json schema {"type":"null"}`},
		{`{"structured_outputs":{"json":{"type":"null"},"disable_any_whitespace":true}}`, `structured_outputs.json schema {"type":"null"} space 2`},
		{`{"structured_outputs":{"regex":"a"}}`, `structured_outputs.regex regex a`},
		{`{"structured_outputs":{"choice":["a"]}}`, `structured_outputs.choice choice a`},
		{`{"structured_outputs":{"grammar":"root ::= \"a\""}}`, `structured_outputs.grammar gbnf root ::= "a"`},
		{`{"structured_outputs":{"json_object":true}}`, `structured_outputs.json_object schema {"type":"object"}`},
		{`{"structured_outputs":{"json_object":true,"disable_additional_properties":true}}`,
			`refused structured_outputs.disable_additional_properties: structured_outputs.disable_additional_properties: write additionalProperties: false into the schema`},

		{`{"grammar":"root ::= \"a\"","grammar_lazy":true,"grammar_triggers":[{"type":1,"value":"<tool_call>"},{"type":0,"value":"x","token":5},{"type":"word","value":"y"}],"preserved_tokens":[5,"<tool_call>"]}`,
			`grammar gbnf root ::= "a" behind ["<tool_call>" "y"] [5]`},
		{`{"grammar":"root ::= \"a\"","grammar_lazy":true}`, `refused grammar_triggers: grammar_triggers: a lazy grammar has one or more`},
		{`{"grammar_lazy":true}`, `refused grammar_lazy: grammar_lazy: there is no grammar`},
		{`{"grammar":"root ::= \"a\"","grammar_triggers":[{"type":1,"value":"x"}]}`, `refused grammar_triggers: grammar_triggers: grammar_lazy is not true`},
		{`{"regex":"a","grammar_lazy":true,"grammar_triggers":[{"type":1,"value":"x"}]}`, `refused grammar_lazy: grammar_lazy: it belongs to grammar, and the answer is constrained by regex`},
		{`{"grammar":"root ::= \"a\"","grammar_lazy":true,"grammar_triggers":[{"type":2,"value":"x"}]}`, `refused grammar_triggers[0]: grammar_triggers[0]: patterns are not supported; give words (type 1) or tokens (type 0)`},
		{`{"grammar":"root ::= \"a\"","grammar_lazy":true,"grammar_triggers":[{"value":"x"}]}`, `refused grammar_triggers[0]: grammar_triggers[0]: a trigger has a type, 0 (token) or 1 (word), and a value`},
		{`{"preserved_tokens":[{}]}`, `refused preserved_tokens[0]: preserved_tokens[0]: it must be a token's id or its text`},

		{`{"grammar":"root ::= \"a\"","json_schema":{"type":"null"}}`, `refused json_schema: json_schema: grammar constrains the answer, too; leave one of them out`},
		{`{"response_format":{"type":"json_object"},"regex":"a"}`, `refused regex: regex: response_format constrains the answer, too; leave one of them out`},
		{`{"structured_outputs":{"regex":"a","choice":["a"]}}`, `refused structured_outputs.choice: structured_outputs.choice: structured_outputs.regex constrains the answer, too; leave one of them out`},

		{`{"structural_tag":{"type":"structural_tag","structures":[{"begin":"<f>","schema":{},"end":"</f>"}],"triggers":["<"]}}`, `structural_tag tree {"type":"structural_tag","structures":[{"begin":"<f>","schema":{},"end":"</f>"}],"triggers":["<"]}`},
		{`{"response_format":{"type":"structural_tag","structures":[{"begin":"<f>","schema":{},"end":"</f>"}],"triggers":["<"]}}`, `response_format tree `},
		{`{"structural_tag":{"structures":[{"begin":"<f>","end":"</f>"}],"triggers":["x"]}}`, `refused structural_tag: structural_tag.structures[0].begin: "<f>" begins with no trigger`},
		{`{"structural_tag":{"structures":[{"begin":"<f>"}],"triggers":[""]}}`, `refused structural_tag: structural_tag.triggers[0]: it is empty`},
		{`{"structural_tag":{"structures":[],"triggers":["x"]}}`, `refused structural_tag: structural_tag: 0 structures; it must have from 1 to 1024`},
		{`{"structural_tag":{"structures":[{"begin":"<"}],"triggers":[]}}`, `refused structural_tag: structural_tag: 0 triggers; it must have from 1 to 64`},
		{`{"structural_tag":{"format":{"type":"sequence"}}}`, `refused structural_tag: structural_tag: structures and triggers are supported, a format is not`},
		{`{"structural_tag":[]}`, `refused structural_tag: structural_tag: it must be an object with structures and triggers`},
	} {
		if got := formOf(c.body); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.body, got, c.want)
		}
	}
}

// TestBare reads ollama's field.
func TestBare(t *testing.T) {
	for raw, want := range map[string]string{
		``: "", `null`: "", `""`: "", `"json"`: anyObject, `{"type":"null"}`: `{"type":"null"}`, `"xml"`: `format is "xml"; it must be json or a schema`, `3`: `format is 3; it must be json or a schema`,
	} {
		f, err := structured.Bare("format", json.RawMessage(raw))
		got := ""
		if f != nil {
			got = string(f.Schema)
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

const anyObject = `{"type":"object"}`

// TestChoice reads tool_choice.
func TestChoice(t *testing.T) {
	all := []string{"f", "g"}
	for raw, want := range map[string]string{
		``: "{false false []}", `null`: "{false false []}", `"auto"`: "{false false []}", `"none"`: "{true false []}", `"required"`: "{false true []}",
		`{"type":"function","function":{"name":"f"}}`: "{false true [f]}", `{"type":"function","name":"g"}`: "{false true [g]}",
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`:                                    "{false false [f]}",
		`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}}`: "{false true [g]}",
		`"perhaps"`:                                           `tool_choice "perhaps" is not known; auto, none and required are`,
		`{"type":"function","name":"h"}`:                      `tool_choice: there is no tool "h"`,
		`{"type":"function"}`:                                 `tool_choice: the function has no name`,
		`{"type":"custom","name":"f"}`:                        `tool_choice: type "custom" is not known; function and allowed_tools are`,
		`{"type":"allowed_tools","mode":"x"}`:                 `tool_choice.mode "x" is not known; auto, none and required are`,
		`{"type":"allowed_tools","mode":"auto"}`:              `tool_choice: no tool is allowed; none says that`,
		`{"type":"allowed_tools","mode":"auto","tools":[{}]}`: `tool_choice.tools[0] is not a function with a name`,
		`3`: `tool_choice: it must be auto, none, required, a function or allowed tools`,
	} {
		c, err := structured.ChoiceOf(json.RawMessage(raw))
		if err == nil {
			err = c.Check(all)
		}
		got := fmt.Sprint(c)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	if err := (structured.Tools{Must: true}).Check(nil); err == nil {
		t.Error("a call without tools is asked for")
	}
}

// TestConversation: answers are held to calls where one must be made, where some tools alone may be called, and where one is strict.
func TestConversation(t *testing.T) {
	loose := json.RawMessage(`{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`)
	strict := json.RawMessage(`{"type":"function","function":{"name":"g","strict":true,"parameters":{"type":"object"}}}`)
	object := &structured.Form{Field: "response_format", Kind: structured.Schema, Schema: []byte(anyObject)}
	grammar := &structured.Form{Field: "grammar", Kind: structured.GBNF, Text: "x"}
	for _, c := range []struct {
		name    string
		tools   []json.RawMessage
		choice  structured.Tools
		content *structured.Form
		sign    string // of the template
		want    string
	}{
		{"nothing", nil, structured.Tools{}, nil, "", "none"},
		{"loose tools", []json.RawMessage{loose}, structured.Tools{}, nil, "", "none"},
		{"a call", []json.RawMessage{loose}, structured.Tools{Must: true}, nil, "", "tools tree f"},
		{"one of two", []json.RawMessage{loose, strict}, structured.Tools{Must: true, Allowed: []string{"g"}}, nil, "", "tools tree g"},
		{"some of two", []json.RawMessage{loose, loose}, structured.Tools{Allowed: []string{"f"}}, nil, "", "tools tree f,f"},
		{"a strict one", []json.RawMessage{loose, strict}, structured.Tools{}, nil, "", "tools tree f,g"},
		{"none", []json.RawMessage{strict}, structured.Tools{Off: true}, object, "", "response_format schema"},
		{"a schema", nil, structured.Tools{}, object, "", "response_format schema"},
		{"a schema and tools", []json.RawMessage{loose}, structured.Tools{}, object, "", "response_format tree f"},
		{"a schema and a call", []json.RawMessage{loose}, structured.Tools{Must: true}, object, "", "tools tree f"},
		{"a grammar and tools", []json.RawMessage{loose}, structured.Tools{}, grammar, "",
			"grammar: the answer may have calls of tools, which the field does not know; set tool_choice to none, or use response_format"},
		{"a grammar", nil, structured.Tools{}, grammar, "", "grammar gbnf"},
		{"gpt-oss", nil, structured.Tools{}, object, "<|channel|><|message|>", "response_format tree "},
		{"gpt-oss, a grammar", nil, structured.Tools{}, grammar, "<|channel|><|message|>", "grammar: answers of this model are messages in channels, which are held to schemas alone"},
		{"gpt-oss, a call", []json.RawMessage{loose}, structured.Tools{Must: true}, nil, "<|channel|><|message|>", "tools tree f"},
		{"a form that cannot be held", []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f","parameters":{"type":"object","anyOf":[{}]}}}`)}, structured.Tools{Must: true}, nil, "tools <arg_key>", "tools tree f"},
		{"a form that cannot be held, of a strict one", []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"g","parameters":{"type":"object","anyOf":[{}]}}}`)}, structured.Tools{Must: true}, nil, "tools <arg_key>",
			`tools: function "g": #/anyOf: calls in the form of GLM cannot be held to it`},
	} {
		none := func(string) bool { return false }
		conversation := structured.Conversation{
			Options: &grove.ChatOptions{Options: chat.Options{Tools: c.tools}}, Prompt: &grove.ChatPrompt{Style: calls.StyleOf(c.sign, none), Format: answer.FormatOf(c.sign, none)},
			Choice: c.choice, Strict: []string{"g"},
		}
		got := "none"
		form, err := conversation.Form(c.content)
		if form != nil {
			got = form.Field + " " + names[form.Kind]
			if form.Kind == structured.Tree {
				got += " " + strings.Join(called(form.Tree, nil), ",")
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// called appends the names of the functions of the first call of a tree.
func called(g calls.Grammar, all []string) []string {
	if g.Name != "" {
		return append(all, g.Name)
	}
	for _, p := range g.Of {
		if all = called(p, all); len(all) > 0 && g.Kind == calls.Seq {
			break
		}
	}
	return all
}
