package answer_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/answer"
)

// tool returns a tool in the form of OpenAI's API.
func tool(name, properties string) json.RawMessage {
	return json.RawMessage(`{"type":"function","function":{"name":"` + name + `","description":"Does it.","parameters":{"type":"object","properties":{` + properties + `}}}}`)
}

var tools = []json.RawMessage{
	tool("look", `"at":{"type":"string"},"n":{"type":"integer"}`),
	tool("add", `"a":{"type":"array"},"b":{"type":"object"},"c":{"type":"boolean"},"d":{"anyOf":[{"type":"number"},{"type":"null"}]},"e":{"enum":["1","x"]}`),
	tool("db.list", ""),
}

// show writes the parts of an answer: content as it is, thoughts in {}, remarks in (), calls in «».
func show(parts []answer.Part) string {
	var b strings.Builder
	last := answer.Content
	for _, p := range parts {
		if p.Kind == answer.CallPart {
			p.Text = p.Call.Name + p.Call.Arguments
		}
		if p.Kind != last || p.Kind == answer.CallPart {
			b.WriteString([]string{"", "}", ")", "»"}[last] + []string{"", "{", "(", "«"}[p.Kind])
		}
		last = p.Kind
		b.WriteString(p.Text)
	}
	return b.String() + []string{"", "}", ")", "»"}[last]
}

// read reads an answer that comes in pieces and shows its parts.
func read(o answer.Options, pieces ...string) string {
	r := answer.NewReader(o)
	var parts []answer.Part
	for _, p := range pieces {
		parts = append(parts, r.Add(p, "")...)
	}
	return show(append(parts, r.End()...))
}

// cuts reads an answer whole, byte by byte, and cut at each byte, and returns what it is whole.
func cuts(t *testing.T, o answer.Options, text string) string {
	t.Helper()
	whole := read(o, text)
	for i := range text {
		if got := read(o, text[:i], text[i:]); got != whole {
			t.Errorf("%q, cut at %d: got %q, whole %q", text, i, got, whole)
			break
		}
	}
	if got := read(o, strings.Split(text, "")...); got != whole {
		t.Errorf("%q, by letters: got %q, whole %q", text, got, whole)
	}
	return whole
}

func noPiece(string) bool { return false }

// TestForms reads thoughts and calls in the forms of all families.
func TestForms(t *testing.T) {
	for _, c := range []struct{ name, template, tail, text, want string }{
		{"text", "", "", "a < b <tool b", "a < b <tool b"},
		{"white space", "", "", " \n a \n", " \n a \n"},
		{"Hermes", "", "", `<tool_call>{"name":"look","arguments":{"at": "x"}}</tool_call>`, `«look{"at":"x"}»`},
		{"two", "", "", "Let me see. \n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"</tool_call>\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\"}\n</tool_call>\n",
			`Let me see.«look{"at":"</tool_call>"}»«add{}»`},
		{"list", "", "", `<tool_call>[{"name":"look","arguments":{}},{"name":"add","arguments":{}}]`, `«look{}»«add{}»`},
		{"text behind", "", "", `<tool_call>{"name":"look"}</tool_call> then`, `«look{}» then`},
		{"end cut off", "", "", `<tool_call>{"name":"look","arguments":{"at":1}}</tool`, `«look{"at":1}»`},
		{"unknown function", "", "", `<tool_call>{"name":"other","arguments":{}}</tool_call> then`, ""},
		{"no JSON", "", "", `<tool_call>{"name":</tool_call> then`, ""},
		{"no arguments", "", "", `<tool_call>{"name":"look","arguments":[1]}</tool_call>`, ""},
		{"unfinished", "", "", `<tool_call>{"name":"look","arguments":{"at":`, ""},
		{"marker in text", "", "", `The tag <tool_call> begins <tool_call><tool_call>{"name":"look"}</tool_call>`, `The tag <tool_call> begins <tool_call>«look{}»`},
		{"coder", "<function=", "", "I look.\n\n<tool_call>\n<function=look>\n<parameter=at>\n2\n</parameter>\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>",
			`I look.«look{"at":"2","n":2}»`},
		{"coder, Python's values", "", "", "<tool_call><function=add><parameter=a>[1, 'x', None]</parameter><parameter=c>True</parameter><parameter=d>null</parameter><parameter=e>1</parameter></function></tool_call>",
			`«add{"a":[1,"x",null],"c":true,"d":null,"e":"1"}»`},
		{"coder, not of the type", "", "", "<tool_call><function=add><parameter=a>many\nlines</parameter><parameter=a>[2]</parameter><parameter=c>perhaps</parameter></function></tool_call>",
			`«add{"a":[2],"c":"perhaps"}»`},
		{"coder, unknown", "", "", "<tool_call><function=other><parameter=a>1</parameter></function></tool_call>", ""},
		{"coder, unfinished", "", "", "<tool_call><function=look><parameter=at>Ber", ""},
		{"functionary", "<function=", "", `See.<function=look>{"at": "x"}</function><function=add>{}</function>`, `See.«look{"at":"x"}»«add{}»`},
		{"GLM", "", "", "\n<tool_call>look\n<arg_key>at</arg_key>\n<arg_value>1</arg_value>\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call>\n<tool_call>add\n</tool_call>",
			`«look{"at":"1","n":1}»«add{}»`},
		{"DeepSeek V3", "<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n{\"at\": \"x\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
			`«look{"at":"x"}»«add{}»`},
		{"DeepSeek V3.1", "<｜tool▁calls▁begin｜>", "", `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{"at": "x"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
			`«look{"at":"x"}»«add{}»`},
		{"Kimi", "<|tool_calls_section_begin|>", "", `Now.<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"at": "x"}<|tool_call_end|><|tool_call_begin|>functions.db.list:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>`,
			`Now.«look{"at":"x"}»«db.list{}»`},
		{"MiniMax M1", "<tool_calls>", "", "<tool_calls>\n{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}}\n{\"name\": \"add\"}\n</tool_calls>", `«look{"at":"x"}»«add{}»`},
		{"Jamba", "<tool_calls>", "", "I look.<tool_calls>[\n{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}},\n{\"name\": \"add\", \"arguments\": {}}\n]</tool_calls>", `I look.«look{"at":"x"}»«add{}»`},
		{"MiniMax M2", "<minimax:tool_call>", "", "<minimax:tool_call>\n<invoke name=\"look\">\n<parameter name=\"at\">a</b>\n</parameter>\n<parameter name=\"n\">2</parameter>\n</invoke>\n<invoke name=\"add\">\n</invoke>\n</minimax:tool_call>",
			"«look{\"at\":\"a</b>\\n\",\"n\":2}»«add{}»"},
		{"Mistral", "[TOOL_CALLS]", "", `[TOOL_CALLS] [{"name":"add","arguments":{"a":1}},{"name":"look","arguments":"{\"a\":2}","id":"abcdefghi"}]`, `«add{"a":1}»«look{"a":2}»`},
		{"Mistral, names", "[TOOL_CALLS]", "", `[TOOL_CALLS]look[ARGS]{"a": [1, 2]}[TOOL_CALLS]add[CALL_ID]abcdefghi[ARGS]{}`, `«look{"a":[1,2]}»«add{}»`},
		{"Mistral, no JSON", "[TOOL_CALLS]", "", `[TOOL_CALLS][{]`, ""},
		{"Phi-4", "<|/tool|>", "", `<|tool_call|>[{"name": "look", "arguments": {"at": "x"}}]<|/tool_call|>`, `«look{"at":"x"}»`},
		{"functools", "functools", "", ` functools[{"name": "look", "arguments": {"at": "x"}}, {"name": "add", "arguments": {}}]`, `«look{"at":"x"}»«add{}»`},
		{"functools in text", "functools", "", `use functools.cache or functools [sic]`, ""},
		{"Command R7B", "<|START_ACTION|> <|END_THINKING|>", "", "<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"look\", \"parameters\": {\"at\": \"x\"}}\n]<|END_ACTION|>",
			`{I look.}«look{"at":"x"}»`},
		{"Command R+", "Write 'Action:'", "", "I look.\nAction:\n```json\n[\n    {\n        \"tool_name\": \"look\",\n        \"parameters\": {\n            \"at\": \"x\"\n        }\n    }\n]```", `I look.«look{"at":"x"}»`},
		{"Command R+, no tool", "Write 'Action:'", "", "Action:\n```json\n[{\"tool_name\": \"directly-answer\", \"parameters\": {}}]```", ""},
		{"Command R+, a word", "Write 'Action:'", "", "Action: none", ""},
		{"Nemotron 2", "<TOOLCALL>", "", `<TOOLCALL>[{"name": "look", "arguments": {"at": "x"}}]</TOOLCALL>`, `«look{"at":"x"}»`},
		{"LFM2", "<|tool_list_start|>", "", `<|tool_call_start|>[look(at="Bern's", n=2), add(a=[1, 'x'], b={'k': None}, c=True)]<|tool_call_end|>Done.`,
			`«look{"at":"Bern's","n":2}»«add{"a":[1,"x"],"b":{"k":null},"c":true}»Done.`},
		{"Gemma 4", "<|tool_call>", "", `<|tool_call>call:look{at:<|"|>a "b" {<|"|>,n:2}<tool_call|><|tool_call>call:add{a:[1,<|"|>x<|"|>],b:{k:null},c:true}<tool_call|>`,
			`«look{"at":"a \"b\" {","n":2}»«add{"a":[1,"x"],"b":{"k":null},"c":true}»`},
		{"Solar", "<|tool_calls|><|tool_call:begin|><|think|><|content|>", "", `<|think|>Hm.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>look<|tool_call:args|>{"at":"x"}<|tool_call:end|><|calls|>`,
			`{Hm.}«look{"at":"x"}»`},
		{"GigaChat", "<|role_sep|>", "", "Yes.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"look\", \"arguments\": {}}<|message_sep|>\n\n", `Yes.«look{}»`},
		{"Functionary 3.2", ">>>all", "assistant\n\n>>>", "all\nYes.>>>look\n{\"at\":\"x\"}>>>add\n{}", `Yes.«look{"at":"x"}»«add{}»`},
		{"Functionary 3.2, a call", ">>>all", ">>>", "look\n{}", `«look{}»`},
		{"Llama 3", "ipython", "", ` {"name": "look", "parameters": {"at": "x"}}`, `«look{"at":"x"}»`},
		{"Llama 3, two", "ipython", "", `{"name": "look", "parameters": {"at": "x"}}; {"type": "function", "function": {"name": "add", "parameters": {}}}`, `«look{"at":"x"}»«add{}»`},
		{"Llama 3, unknown", "ipython", "", `{"name": "other", "parameters": {}} and`, ""},
		{"an object", "ipython", "", `{"a": {"b": [1]}}`, ""},
		{"no object", "ipython", "", `{not JSON} at all`, ""},
		{"text before", "ipython", "", `text {"name": "look", "parameters": {}}`, ""},
		{"Llama 3, unfinished", "ipython", "", `{"name": "look", "para`, ""},
		{"Python's tag", "<|python_tag|>", "", `<|python_tag|>look.call(at="x \"y\"", n=-2)`, `«look{"at":"x \"y\"","n":-2}»`},
		{"Python's tag, JSON", "<|python_tag|>", "", `<|python_tag|>{"name": "look", "parameters": {}}`, `«look{}»`},
		{"Python's tag, code", "<|python_tag|>", "", `<|python_tag|>print("x")`, ""},
		{"Llama 4", "func_name1(params_name1", "", `[look(at="x"), db.list()]`, `«look{"at":"x"}»«db.list{}»`},
		{"Llama 4, a list", "func_name1(params_name1", "", `[1, 2]`, ""},
		{"DeepSeek V3.2", "｜DSML｜</think>", "<think></think>", "Yes.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"look\">\n<｜DSML｜parameter name=\"at\" string=\"true\">2</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
			`Yes.«look{"at":"2","n":2}»`},
		{"Seed", "<seed:tool_call></seed:think>", "", "<seed:think>Hm.</seed:think>\nYes.\n\n<seed:tool_call>\n<function=look>\n<parameter=at>x</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=add>\n</function>\n</seed:tool_call>",
			`{Hm.}Yes.«look{"at":"x"}»«add{}»`},

		{"DeepSeek V4", "｜DSML｜", "", "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"look\">\n<｜DSML｜parameter name=\"at\" string=\"true\">\n2\n</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
			`«look{"at":"\n2\n"}»`},
		{"Kimi K3", "<|open|><|close|>", "<|open|>think<|sep|>", `Hm.<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="look" index="1"<|sep|><|open|>argument key="at" type="string"<|sep|> 2 <|close|>argument<|sep|><|open|>argument key="n" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool="add" index="2"<|sep|><|open|>json type="object"<|sep|>{"c": true}<|close|>json<|sep|><|close|>call<|sep|><|open|>call tool="db.list" index="3"<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`,
			`{Hm.}Yes.«look{"at":" 2 ","n":2}»«add{"c":true}»«db.list{}»`},
		{"Kimi K3, no thoughts", "<|open|><|close|>", "<|open|>response<|sep|>", `Yes.<|close|>response<|sep|><|close|>message<|sep|>`, `Yes.`},
		{"Apertus", "<|tools_prefix|>", "", `Yes.<|tools_prefix|>[{"look": {"at": "x", "n": 2}}, {"add": {"a": [1, 2.5]}}, {"db.list": {}}]<|tools_suffix|>`, `Yes.«look{"at":"x","n":2}»«add{"a":[1,2.5]}»«db.list{}»`},
		{"Apertus, unknown", "<|tools_prefix|>", "", `<|tools_prefix|>[{"other": {}}]<|tools_suffix|>`, ""},
		{"Apertus, two keys", "<|tools_prefix|>", "", `<|tools_prefix|>[{"look": {}, "add": {}}]<|tools_suffix|>`, ""},
		{"GigaChat 3.1", "<|function_call|><|role_sep|>", "", `Yes.<|function_call|>{"name": "look", "arguments": {"at": "x"}}<|message_sep|>`, `Yes.«look{"at":"x"}»`},
		{"Apriel", "[BEGIN FINAL RESPONSE] <tool_calls>", "Here are my reasoning steps:\n", "Hm.\n[BEGIN FINAL RESPONSE]\nYes.\n<tool_calls>[{\"name\": \"look\", \"arguments\": {}}]</tool_calls>\n[END FINAL RESPONSE]", "{Hm.}Yes.«look{}»"},
		{"Apriel, an answer", "[BEGIN FINAL RESPONSE]", "Here are my reasoning steps:\n", "Hm.\n[BEGIN FINAL RESPONSE]\nYes.\n[END FINAL RESPONSE]", "{Hm.}Yes.\n"},
		{"Apriel, from the beginning", "[BEGIN FINAL RESPONSE]", "", "Here are my reasoning steps:\nHm.\n[BEGIN FINAL RESPONSE]\nYes.", "{Hm.}Yes."},

		{"coder, no opening tag", "<function=", "", "I look.\n<function=look>\n<parameter=at>\n1\n</parameter>\n</function>\n</tool_call>", `I look.«look{"at":"1"}»`},
		{"coder, a doubled end of a call", "<function=", "", "<tool_call>\n<function=look>\n</function>\n</tool_call>\n</tool_call>\nDone.", "«look{}»Done."},
		{"coder, no end of a value", "<function=", "", "<tool_call>\n<function=look>\n<parameter=at>\n1\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>", `«look{"at":"1","n":2}»`},
		{"coder, no end of a value in a line", "<function=", "", "<tool_call><function=look><parameter=at>a b<parameter=n>2</parameter></function></tool_call>", `«look{"at":"a b","n":2}»`},
		{"coder, no end of the last value", "<function=", "", "<tool_call>\n<function=look>\n<parameter=at>\n1\n</function>\n</tool_call>", `«look{"at":"1"}»`},
		{"coder, no end of the last value, and the end", "<function=", "", "<tool_call>\n<function=look>\n<parameter=at>\n1\n</function>\n", `«look{"at":"1"}»`},
		{"coder, an end of a function in a value", "<function=", "", "<tool_call>\n<function=look>\n<parameter=at>\n<a></function>\n</a>\n</parameter>\n</function>\n</tool_call>", "«look{\"at\":\"<a></function>\\n</a>\"}»"},
		{"coder, a doubled end of a value", "<function=", "", "<tool_call>\n<function=look>\n<parameter=at>\n1\n</parameter>\n</parameter>\n</function>\n</tool_call>", `«look{"at":"1"}»`},
		{"coder, no end of the function", "<function=", "", "<tool_call>\n<function=look>\n<parameter=at>\n1\n</parameter>\n</tool_call>\nDone.", "«look{\"at\":\"1\"}»Done."},
		{"coder, all at once, twice", "<function=", "", "<function=look>\n<parameter=at>\n1\n<parameter=n>\n2\n</parameter>\n</parameter>\n</tool_call>\n<function=look>\n</function>", `«look{"at":"1","n":2}»«look{}»`},

		{"a fence", "", "", "I look.\n```json\n{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}}\n```", `I look.«look{"at":"x"}»`},
		{"a fence, two calls", "", "", "```json\n{\"name\": \"look\", \"arguments\": {}}\n{\"name\": \"add\", \"arguments\": {}}\n```\n", `«look{}»«add{}»`},
		{"a fence, a list", "", "", "```json\n[{\"name\": \"look\", \"arguments\": {}},\n {\"name\": \"add\", \"arguments\": {}}]\n```", `«look{}»«add{}»`},
		{"a fence without a language", "", "", "```\n{\"name\": \"look\", \"arguments\": {}}\n```", `«look{}»`},
		{"a fence around tags", "", "", "```xml\n<tool_call>\n{\"name\": \"look\", \"arguments\": {}}\n</tool_call>\n```", `«look{}»`},
		{"a fence without its end", "", "", "```json\n{\"name\": \"look\", \"arguments\": {}}", `«look{}»`},
		{"a fence of another function", "", "", "```json\n{\"name\": \"other\", \"arguments\": {}}\n```", ""},
		{"a fence with an object of its own", "", "", "```json\n{\"name\": \"look\", \"version\": \"1\"}\n```", ""},
		{"a fence with more than a call", "", "", "```json\n{\"name\": \"look\", \"arguments\": {}, \"result\": 1}\n```", ""},
		{"a fence with a program", "", "", "```python\nprint({\"name\": \"look\"})\n```\nDone.", ""},
		{"fences of a family with a form of its own", "<|tool_list_start|>", "", "```json\n{\"name\": \"look\", \"arguments\": {}}\n```", ""},
		{"the whole answer", "", "", "{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}}", `«look{"at":"x"}»`},
		{"tags of the tools", "", "", "<tools>\n{\"name\": \"look\", \"arguments\": {}}\n</tools>", `«look{}»`},

		{"Qwen 3", "</think>", "", "<think>\nHm <b>.\n\n</think>\n\nYes.\n", "{Hm <b>.}Yes.\n"},
		{"Qwen 3, empty thoughts", "</think>", "", "<think>\n\n</think>\n\nYes.", "Yes."},
		{"thoughts and a call", "</think>", "", "<think>\nHm.\n</think>\n\n<tool_call>\n{\"name\": \"look\"}\n</tool_call>", "{Hm.}«look{}»"},
		{"a call in thoughts", "</think>", "", "<think>Say <tool_call>{\"name\": \"look\"}</tool_call>.</think>No.", "{Say <tool_call>{\"name\": \"look\"}</tool_call>.}No."},
		{"R1", "</think>", "<think>\n", "\nHm.\n</think>\n\n  Yes.", "{Hm.}  Yes."},
		{"R1, unfinished", "</think>", "<think>\n", "Hm.\n</thi", "{Hm.\n</thi}"},
		{"R1, thoughts closed", "</think>", "<think>\n\n</think>\n\n", "\nYes.", "Yes."},
		{"thoughts in text", "</think>", "", "Write <think> and </think>.", ""},
		{"no thoughts", "", "", "<think>a</think>b", ""},
		{"Granite 3.2", "Here is my thought process:", "", "Here is my thought process:\nHm.\nHere is my response:\nYes.", "{Hm.}Yes."},
		{"Granite 3.3", "</think> </response>", "", "<think>Hm.</think>\n<response>\nYes.\n</response>", "{Hm.}Yes.\n"},
		{"an answer that is asked for", "</think>", "", "<think>Hm.</think><answer>a</answer>", "{Hm.}<answer>a</answer>"},
		{"no response of Granite", "</think> </response>", "", "Yes <response>a</response>", ""},
		{"Mistral's thoughts", "[/THINK]", "", "[THINK]Hm.[/THINK]Yes.", "{Hm.}Yes."},
		{"Gemma's thoughts", "<channel|>", "", "<|channel>thought\nHm.<channel|>Yes.", "{Hm.}Yes."},

		{"gpt-oss", "<|channel|><|message|>", "<|start|>assistant", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.\n", "{Hm.}Yes.\n"},
		{"gpt-oss, a call", "<|channel|><|message|>", "<|start|>assistant", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.look <|constrain|>json<|message|>{\"at\": \"x\"}<|call|>",
			`{Hm.}(I look.)«look{"at":"x"}»`},
		{"gpt-oss, the name first", "<|channel|><|message|>", "<|start|>assistant", " to=functions.look<|channel|>commentary json<|message|>{\"at\": \"x\"}", `«look{"at":"x"}»`},
		{"gpt-oss, unknown function", "<|channel|><|message|>", "<|start|>assistant", " to=functions.other<|channel|>commentary json<|message|>{}", " to=functions.other<|channel|>commentary json<|message|>{}"},
		{"gpt-oss, no JSON", "<|channel|><|message|>", "<|start|>assistant", " to=functions.look<|channel|>commentary json<|message|>{", " to=functions.look<|channel|>commentary json<|message|>{"},
		{"gpt-oss, final is begun", "<|channel|><|message|>", "<|start|>assistant<|channel|>final<|message|>", "Yes.", "Yes."},
		{"gpt-oss, no channel", "<|channel|><|message|>", "<|start|>assistant", "Yes.", "Yes."},
		{"gpt-oss, no channel for long", "<|channel|><|message|>", "<|start|>assistant", strings.Repeat("Yes. ", 300), strings.Repeat("Yes. ", 300)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.text
			}
			f := answer.FormatOf(c.template, noPiece)
			got := cuts(t, answer.Options{Format: f, Tools: tools, Tail: c.tail}, c.text)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := read(answer.Options{}, c.text); got != c.text {
				t.Errorf("of no format: %q", got)
			}
		})
	}
}

// TestOneCall ends an answer behind its first call, also where a list has two.
func TestOneCall(t *testing.T) {
	for _, text := range []string{
		`Yes. <tool_call>{"name":"look"}</tool_call><tool_call>{"name":"add"}</tool_call> then`,
		`Yes. <tool_call>[{"name":"look"},{"name":"add"}]</tool_call>`,
	} {
		o := answer.Options{Tools: tools, OneCall: true, Format: answer.FormatOf("", noPiece)}
		if got := cuts(t, o, text); got != "Yes.«look{}»" {
			t.Errorf("%s: %s", text, got)
		}
		r := answer.NewReader(o)
		if r.Add("Yes.", ""); r.Done() {
			t.Error("done before the call")
		}
		if r.Add(text, ""); !r.Done() || r.Add("more", "") != nil || r.End() != nil {
			t.Error("not done behind the call")
		}
	}
}

// TestInline leaves thoughts where they are.
func TestInline(t *testing.T) {
	for _, c := range []struct{ template, tail, text, want string }{
		{"</think>", "", "<think>\nHm.\n</think>\n\nYes.", "<think>\nHm.\n</think>\n\nYes."},
		{"</think>", "<think>\n", "\nHm.\n</think>\n\n<tool_call>{\"name\":\"look\"}</tool_call>", "\nHm.\n</think>«look{}»"},
		{"</think>", "<think>\n", "\nHm.\n", "\nHm.\n"},
		{"<|channel|><|message|>", "<|start|>assistant", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "<|channel|>analysis<|message|>Hm.<|end|>Yes."},
	} {
		o := answer.Options{Tools: tools, Inline: true, Tail: c.tail, Format: answer.FormatOf(c.template, noPiece)}
		if got := cuts(t, o, c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// TestControl reads markers that are control tokens, which the text does not show.
func TestControl(t *testing.T) {
	f := answer.FormatOf("</think> <tool_call> [TOOL_CALLS]", noPiece)
	r := answer.NewReader(answer.Options{Format: f, Tools: tools, ID: "a"})
	var got []string
	for _, a := range [][2]string{
		{"", "<think>"}, {"Hm. ", "<|im_end|>"}, {"<", ""}, {" look", "[TOOL_CALLS]"}, {`look[ARGS]{}`, ""}, {"Yes. ", "<think>"}, {"No.", "</think>"}, {"So", ""},
		{" <tool_call>", "<tool_call>"}, {`{"name":"add"}`, "</tool_call>"},
	} {
		for _, p := range r.Add(a[0], a[1]) {
			if p.Call != nil {
				p.Text = p.Call.ID + p.Call.Name
			}
			got = append(got, fmt.Sprint(p.Kind, p.Text))
		}
	}
	want := []string{"1Hm.", "1 < look", "3TlDf5nAeHlook", "0Yes.", "1\n\nNo.", "0So", "3voollq1EGadd"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBounds reads answers that exceed the bounds: what exceeds them is content, and reading stays linear.
func TestBounds(t *testing.T) {
	o := answer.Options{Tools: tools, Format: answer.FormatOf("</think> ipython", noPiece)}
	one := `<tool_call>{"name":"look"}</tool_call>`
	if got := read(o, strings.Repeat(one, answer.MaxCalls+2)); strings.Count(got, "«") != answer.MaxCalls || !strings.HasSuffix(got, one+one) {
		t.Errorf("%d calls", strings.Count(got, "«"))
	}
	list := "[" + strings.TrimSuffix(strings.Repeat(`{"name":"look"},`, answer.MaxCalls+1), ",") + "]"
	if got := read(o, "<tool_call>"+list); got != "<tool_call>"+list {
		t.Errorf("a list of too many calls has %d calls", strings.Count(got, "«"))
	}
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{
		"a call":            `<tool_call>{"name":"look","arguments":{"at":"` + long[:len(long)-100] + `"}}</tool_call>`,
		"too long":          `<tool_call>{"name":"look","arguments":{"at":"` + long + `"}}</tool_call>`,
		"never ends":        `<tool_call><function=look><parameter=at>` + long[:len(long)/2],
		"a long name":       `<tool_call>` + long,
		"white space":       `a` + strings.Repeat(" ", 1<<20) + `<tool_call>`,
		"white space first": strings.Repeat("\n", 1<<20) + `<think>`,
		"in a call":         `<tool_call>` + strings.Repeat(" ", 1<<20),
		"markers":           strings.Repeat("<tool_call>", 1<<16),
		"open calls":        strings.Repeat(`<tool_call>{"`, 1<<16),
		"open functions":    strings.Repeat("<tool_call><function=look>", 1<<15) + "x",
		"parameters":        "<tool_call><function=look>" + strings.Repeat("<parameter=a>1</parameter>", 1<<15) + "</function>",
		"fences":            strings.Repeat("```", 1<<18),
		"fences of objects": strings.Repeat("```json\n{\"name\":\"", 1<<15),
		"lists in fences":   "```" + strings.Repeat("[", 1<<19),
		"ends of functions": "<tool_call><function=look><parameter=at>" + strings.Repeat("</function>", 1<<16) + "x",
		"ends and spaces":   "<tool_call><function=look><parameter=at>" + strings.Repeat("</function>"+strings.Repeat(" ", 60), 1<<13) + "x",
		"ends of values":    "<tool_call><function=look>" + "<parameter=at>" + strings.Repeat("</parameter>", 1<<16) + "x",
		"nested":            `<tool_call>{"name":` + strings.Repeat("[", 1<<19),
		"begins of markers": strings.Repeat("<tool_", 1<<17),
		"thoughts":          strings.Repeat("<think></think>", 1<<16),
		"ends of thoughts":  "<think>" + strings.Repeat("</", 1<<19),
	} {
		begun := time.Now()
		got, bytes := read(o, text), read(o, strings.Split(text, "")...)
		if took := time.Since(begun); took > 10*time.Second { // each byte read again for each letter would take minutes
			t.Errorf("%s: %v", name, took)
		}
		if got != bytes {
			t.Errorf("%s: whole %.60q, by letters %.60q", name, got, bytes)
		} else if isCall := strings.Contains(got, "«"); isCall != (name == "a call" || name == "parameters") {
			t.Errorf("%s: %.60q", name, got)
		}
	}
}

// TestChannelBounds: a header or a call of gpt-oss that exceeds its bound is content, however it arrives.
func TestChannelBounds(t *testing.T) {
	o := answer.Options{Tools: tools, Tail: "<|start|>assistant", Format: answer.FormatOf("<|channel|><|message|>", noPiece)}
	header := func(size int) string { return "<|channel|>analysis" + strings.Repeat(" ", size) + "<|message|>Hm." }
	body := func(size int) string {
		return " to=functions.look<|channel|>commentary<|message|>{\"at\":\"" + strings.Repeat("x", size) + "\"}<|call|>"
	}
	for _, c := range []struct{ text, has string }{
		{header(1024 - len("<|channel|>analysis<|message|>")), "{Hm.}"}, {header(1025 - len("<|channel|>analysis<|message|>")), ""}, {header(5000), ""},
		{"<|channel|>" + strings.Repeat("x", 2000), ""}, {strings.Repeat("<|channel|>", 1<<12), ""},
		{body(1<<20 - len(`{"at":""}`)), "«look{"}, {body(1<<20 - len(`{"at":""}`) + 1), ""}, {body(3 << 20), ""},
	} {
		whole, pieces := read(o, c.text), read(o, slices.Collect(cut(c.text, 1000))...)
		if whole != pieces {
			t.Errorf("%d bytes: whole %.60q, in pieces %.60q", len(c.text), whole, pieces)
		}
		if strings.ContainsAny(whole[:4], "{«") != (c.has != "") || !strings.Contains(whole, c.has) {
			t.Errorf("%d bytes: %.60q has %q", len(c.text), whole, c.has)
		}
	}
}

// cut returns the pieces of a text, size bytes each.
func cut(text string, size int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for piece := range slices.Chunk([]byte(text), size) {
			if !yield(string(piece)) {
				return
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add("a</think>b<tool_call>{\"name\":\"look\"}</tool_call>[TOOL_CALLS]look[ARGS]{}", uint8(3), uint8(0))
	f.Add("<|channel|>analysis<|message|>a<|end|>", uint8(3), uint8(1))
	f.Add("<|tool_call>call:look{a:<|\"|>", uint8(3), uint8(2))
	f.Add("a```json\n{\"name\":\"look\",\"arguments\":{}}\n```<tools>[{\"name\":\"add\",\"arguments\":{}}]", uint8(2), uint8(3))
	f.Add("<function=look><parameter=at>1<parameter=n>2</parameter></parameter></function> </tool_call></tool_call><tool_call><function=look><parameter=at>x</function></tool_call>", uint8(2), uint8(4))
	f.Add("<|open|>tools<|sep|><|open|>call tool=\"look\" index=\"1\"<|sep|><|open|>argument key=\"at\" type=\"string\"<|sep|>x<|close|>argument<|sep|><|close|>call<|sep|><|tools_prefix|>[{\"look\":{}}]", uint8(4), uint8(4))
	formats := []answer.Format{
		answer.FormatOf("</think> [TOOL_CALLS] <|python_tag|> <｜tool▁calls▁begin｜> <|tool_call_start|>", noPiece), answer.FormatOf("<|channel|><|message|>", noPiece),
		answer.FormatOf("<|tool_call> <minimax:tool_call> ｜DSML｜ func_name1(params_name1 >>>all functools", noPiece),
		answer.FormatOf("</think>", noPiece), answer.FormatOf("<function= <|open|><|close|> <|tools_prefix|> <|function_call|> [BEGIN FINAL RESPONSE]", noPiece),
	}
	f.Fuzz(func(t *testing.T, text string, size, format uint8) {
		o := answer.Options{Format: formats[int(format)%len(formats)], Tools: tools}
		var pieces []string
		for rest := text; rest != ""; {
			k := min(int(size)%7+1, len(rest))
			pieces, rest = append(pieces, rest[:k]), rest[k:]
		}
		if got, whole := read(o, pieces...), read(o, text); got != whole {
			t.Errorf("%q: in pieces %q, whole %q", text, got, whole)
		}
		content, calls := cutAnswer(o, text)
		if c, k := cutAnswer(o, pieces...); c != content || k != calls {
			t.Errorf("%q, cut: in pieces %q %q, whole %q %q", text, c, k, content, calls)
		}
	})
}

// TestCertain: calls that are certain come as they are written, and one that the answer's end cuts off is told so far.
func TestCertain(t *testing.T) {
	for _, c := range []struct{ template, tail, text, want string }{
		{"", "", `<tool_call>{"name": "look", "arguments": {"at": "x y", "n"`, `look[{"at":"x y","n"] cut look{"at":"x y","n"`},
		{"", "", `<tool_call>{"name": "look", "argu`, `<tool_call>{"name": "look", "argu`},
		{"", "", `<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call> then`, `look[{"at":1}] look{"at":1} then`},
		{"<function=", "", "<tool_call><function=look><parameter=at>a b</parameter><parameter=n>1</parameter></fun", `look[{"at":"a b","n":1] look{"at":"a b","n":1}`},
		{"<function=", "", "<tool_call><function=look><parameter=at>a b</parameter><parameter=n>1</para", `look[{"at":"a b"] cut look{"at":"a b"`},
		{"<|channel|><|message|>", "<|start|>assistant", `<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"at": "x`, `look[{"at":"x] cut look{"at":"x`},
		{"<|channel|><|message|>", "<|start|>assistant", `<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"at": "x"}<|call|>`, `look[{"at":"x"}] look{"at":"x"}`},
	} {
		r := answer.NewReader(answer.Options{Format: answer.FormatOf(c.template, noPiece), Tools: tools, Tail: c.tail, Certain: true})
		var b strings.Builder
		text := ""
		flush := func() {
			if text != "" {
				b.WriteString("[" + text + "]")
			}
			text = ""
		}
		note := func(parts []answer.Part) {
			for _, p := range parts {
				switch p.Kind {
				case answer.CallBegin:
					b.WriteString(p.Call.Name)
				case answer.CallText:
					text += p.Text
				case answer.CallPart:
					flush()
					if b.WriteString(" "); p.Call.Cut {
						b.WriteString("cut ")
					}
					b.WriteString(p.Call.Name + p.Call.Arguments)
				default:
					b.WriteString(p.Text)
				}
			}
		}
		for _, letter := range c.text {
			note(r.Add(string(letter), ""))
		}
		note(r.End())
		if got := b.String(); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestControlParts reads markers of which a part alone is a control token, which the text does not show, and those whose parts are
// plain, or user-defined, tokens: the answers are the same.
func TestControlParts(t *testing.T) {
	for _, c := range []struct {
		name, template, tail string
		tokens               []string // those in <> are control tokens
		want                 string
	}{
		{"Gemma 4", "<channel|> <|tool_call>", "", []string{"<|channel>", "thought\nhm", "<channel|>", "ok", "<|tool_call>", "call:look{at:", `<|"|>`, "Oslo", `<|"|>`, ",n:2}", "<tool_call|>"}, `{hm}ok«look{"at":"Oslo","n":2}»`},
		{"Gemma 4, thoughts behind content", "<channel|> <|tool_call>", "", []string{"ok", "<|channel>", "thought", "\nhm", "<channel|>", "yes"}, `ok{hm}yes`},
		{"GigaChat", "<|role_sep|>", "", []string{"ok", "<|message_sep|>", "\n\nfunction", " call", "<|role_sep|>", "\n{\"name\": \"look\", ", "\"arguments\": {}}", "<|message_sep|>"}, `ok«look{}»`},
		{"GigaChat 3.1", "<|function_call|><|role_sep|>", "", []string{"ok", "<|function_call|>", "{\"name\": \"look\", \"arguments\": {}}"}, `ok«look{}»`},
		{"Kimi K3", "<|open|><|close|>", "<|open|>think<|sep|>", []string{"hm", "<|close|>", "think", "<|sep|>", "<|open|>", "response", "<|sep|>", "ok", "<|close|>", "response", "<|sep|>", "<|open|>", "tools", "<|sep|>",
			"<|open|>", "call tool=\"look\" index=\"1\"", "<|sep|>", "<|open|>", "argument key=\"at\" type=\"string\"", "<|sep|>", "Oslo", "<|close|>", "argument", "<|sep|>", "<|close|>", "call", "<|sep|>", "<|close|>", "tools", "<|sep|>", "<|close|>", "message", "<|sep|>"},
			`{hm}ok«look{"at":"Oslo"}»`},
		{"DeepSeek V4", "｜DSML｜</think>", "", []string{"ok", "<", "｜DSML｜", "tool_calls>\n<", "｜DSML｜", "invoke name=\"look\">\n<", "｜DSML｜", "parameter name=\"at\" string=\"true\">Oslo</", "｜DSML｜", "parameter>\n</", "｜DSML｜", "invoke>\n</", "｜DSML｜", "tool_calls>"},
			`ok«look{"at":"Oslo"}»`},
		{"Apertus", "<|inner_suffix|><|tools_prefix|>", "", []string{"<|inner_prefix|>", "hm", "<|inner_suffix|>", "ok", "<|tools_prefix|>", "[{\"look\": {}}]", "<|tools_suffix|>"}, `{hm}ok«look{}»`},
		{"LFM2", "<|tool_list_start|>", "", []string{"ok", "<|tool_call_start|>", "[look(at='Oslo')]", "<|tool_call_end|>"}, `ok«look{"at":"Oslo"}»`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := answer.Options{Format: answer.FormatOf(c.template, noPiece), Tools: tools, Tail: c.tail}
			for _, hidden := range []bool{true, false} {
				r := answer.NewReader(o)
				var parts []answer.Part
				for _, text := range c.tokens {
					control := ""
					if strings.HasPrefix(text, "<") && len(text) > 1 || strings.HasPrefix(text, "｜") {
						control = text
					}
					switch {
					case hidden && control != "":
						text = ""
					case !hidden && c.name == "Gemma 4, thoughts behind content":
						continue // of plain text they are content
					case !hidden:
						control = ""
					}
					parts = append(parts, r.Add(text, control)...)
				}
				got := show(append(parts, r.End()...))
				if hidden || c.name != "Gemma 4, thoughts behind content" {
					if got != c.want {
						t.Errorf("hidden %v: got %s, want %s", hidden, got, c.want)
					}
				}
			}
		})
	}
}
