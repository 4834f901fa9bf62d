package answer_test

import (
	"strings"
	"testing"

	"grove/internal/text/answer"
)

// writes are answers of all families with a call, each with the template that shows the family and the end of the prompt.
var writes = []struct{ name, template, tail, text string }{
	{"Hermes", "", "", "Yes. <tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}}\n</tool_call>"},
	{"Qwen3-Coder", "<function=", "", "Yes. <tool_call>\n<function=look>\n<parameter=at>\nx\n</parameter>\n</function>\n</tool_call>"},
	{"GLM", "<arg_key>", "", "Yes. <tool_call>look\n<arg_key>at</arg_key>\n<arg_value>x</arg_value>\n</tool_call>"},
	{"Seed", "<seed:tool_call>", "", "Yes. <seed:tool_call>\n<function=look>\n<parameter=at>x</parameter>\n</function>\n</seed:tool_call>"},
	{"Functionary", "<function=", "", "Yes. <function=look>{\"at\": \"x\"}</function>"},
	{"DeepSeek V3", "<｜tool▁calls▁begin｜>", "", "Yes. <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n{\"at\": \"x\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
	{"DeepSeek V3.1", "<｜tool▁calls▁begin｜>", "", `Yes. <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{"at": "x"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`},
	{"DeepSeek V3.2", "｜DSML｜", "", "Yes. <｜DSML｜function_calls>\n<｜DSML｜invoke name=\"look\">\n<｜DSML｜parameter name=\"at\" string=\"true\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
	{"DeepSeek V4", "｜DSML｜", "", "Yes. <｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"look\">\n<｜DSML｜parameter name=\"at\" string=\"true\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"},
	{"Kimi K2", "<|tool_calls_section_begin|>", "", `Yes. <|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"at": "x"}<|tool_call_end|><|tool_calls_section_end|>`},
	{"Kimi K3", "<|open|><|close|>", "<|open|>response<|sep|>", `Yes. <|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="look" index="1"<|sep|><|open|>argument key="at" type="string"<|sep|>x<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`},
	{"MiniMax M1", "<tool_calls>", "", "Yes. <tool_calls>\n{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}}\n</tool_calls>"},
	{"MiniMax M2", "<minimax:tool_call>", "", "Yes. <minimax:tool_call>\n<invoke name=\"look\">\n<parameter name=\"at\">x</parameter>\n</invoke>\n</minimax:tool_call>"},
	{"Mistral", "[TOOL_CALLS]", "", `Yes. [TOOL_CALLS] [{"name": "look", "arguments": {"at": "x"}}]`},
	{"Mistral, names", "[TOOL_CALLS]", "", `Yes. [TOOL_CALLS]look[CALL_ID]abcdefghi[ARGS]{"at": "x"}`},
	{"Phi-4", "<|/tool|>", "", `Yes. <|tool_call|>[{"name": "look", "arguments": {"at": "x"}}]<|/tool_call|>`},
	{"Firefunction", "functools", "", `Yes. functools[{"name": "look", "arguments": {"at": "x"}}]`},
	{"Command R7B", "<|START_ACTION|>", "", `Yes. <|START_ACTION|>[{"tool_call_id": "0", "tool_name": "look", "parameters": {"at": "x"}}]<|END_ACTION|>`},
	{"Command R+", "Write 'Action:'", "", "Yes. Action:\n```json\n[{\"tool_name\": \"look\", \"parameters\": {\"at\": \"x\"}}]```"},
	{"Nemotron 2", "<TOOLCALL>", "", `Yes. <TOOLCALL>[{"name": "look", "arguments": {"at": "x"}}]</TOOLCALL>`},
	{"LFM2", "<|tool_list_start|>", "", `Yes. <|tool_call_start|>[look(at='x')]<|tool_call_end|>`},
	{"Gemma 4", "<|tool_call>", "", `Yes. <|tool_call>call:look{at:<|"|>x<|"|>}<tool_call|>`},
	{"Solar", "<|tool_calls|><|tool_call:begin|>", "", `Yes. <|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>look<|tool_call:args|>{"at":"x"}<|tool_call:end|><|calls|>`},
	{"GigaChat", "<|role_sep|>", "", "Yes. <|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}}"},
	{"GigaChat 3.1", "<|function_call|>", "", "Yes. <|function_call|>{\"name\": \"look\", \"arguments\": {\"at\": \"x\"}}"},
	{"Apertus", "<|tools_prefix|>", "", `Yes. <|tools_prefix|>[{"look": {"at": "x"}}]<|tools_suffix|>`},
	{"Functionary 3.2", ">>>all", ">>>", "all\nYes. >>>look\n{\"at\":\"x\"}"},
	{"Python's tag", "<|python_tag|>", "", `Yes. <|python_tag|>look.call(at="x")`},
	{"Llama 3", "ipython", "", `{"name": "look", "parameters": {"at": "x"}}`},
	{"Llama 4", "func_name1(params_name1", "", `[look(at="x")]`},
	{"gpt-oss", "<|channel|><|message|>", "<|start|>assistant", `<|channel|>commentary<|message|>Yes.<|end|><|start|>assistant<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"at": "x"}<|call|>`},
	{"gpt-oss, the name first", "<|channel|><|message|>", "<|start|>assistant", ` to=functions.look<|channel|>commentary json<|message|>{"at": "x"}<|call|>`},
}

// cut reads an answer that is cut, and returns its content and its calls.
func cutAnswer(o answer.Options, pieces ...string) (content, calls string) {
	r := answer.NewReader(o)
	var parts []answer.Part
	for _, p := range pieces {
		parts = append(parts, r.Add(p, "")...)
	}
	for _, p := range append(parts, r.Cut()...) {
		switch p.Kind {
		case answer.CallPart:
			calls += p.Call.Name + p.Call.Arguments
			if p.Call.Cut {
				calls += "..."
			}
		case answer.Content, answer.Commentary:
			content += p.Text
		}
	}
	return content, calls
}

// TestCut: an answer that its bound cuts anywhere within a call has nothing of the call in its content, whole or in pieces.
func TestCut(t *testing.T) {
	for _, w := range writes {
		for _, certain := range []bool{true, false} {
			o := answer.Options{Tools: tools, Tail: w.tail, Certain: certain, Format: answer.FormatOf(w.template, noPiece)}
			called := 0
			for i := range len(w.text) + 1 {
				text := w.text[:i]
				content, calls := cutAnswer(o, text)
				if c, k := cutAnswer(o, strings.Split(text, "")...); c != content || !certain && k != calls {
					t.Errorf("%s: %q: by letters %q %q, whole %q %q", w.name, text, c, k, content, calls)
				}
				if !strings.HasPrefix("Yes. ", content) && strings.TrimSpace(content) != "Yes." && !strings.HasPrefix("<[f>{", content) && (certain || !mayBeText(content)) {
					t.Errorf("%s, certain %v: %q has the content %q", w.name, certain, text, content)
				}
				if calls != "" && calls != `look{"at":"x"}` && !(strings.HasPrefix(calls, "look") && strings.HasSuffix(calls, "...")) {
					t.Errorf("%s: %q has the calls %q", w.name, text, calls)
				}
				if calls == `look{"at":"x"}` {
					called++
				}
			}
			if called == 0 {
				t.Errorf("%s: no call is whole", w.name)
			}
		}
	}
}

// mayBeText reports whether a beginning of an answer could be its text as well as a call.
func mayBeText(content string) bool {
	for _, may := range []string{"Yes. functools", "Yes. Action:", "Yes. \n\nfunction call", "Yes. <", "[", " to=", "Yes. [", "Yes. >>>", `{"name": "`, "Yes.<", ">>>"} {
		if strings.HasPrefix(may, content) {
			return true
		}
	}
	return false
}

// TestCutText: what an answer says that is no call stays where the answer is cut.
func TestCutText(t *testing.T) {
	for _, c := range []struct{ template, text string }{
		{"", "a <"}, {"", "a < b"}, {"", "Write `<tool_call>other</tool_call>` as"}, {"", "```json\n{\"name\": \"grove\", \"version"}, {"", "```json\n{\"name\": \"gr"},
		{"ipython", `{"name": "Alice", "a`}, {"functools", "we import functools"}, {"func_name1(params_name1", "[1, 2"}, {"", "<tool_call>{\"name\": \"other\", \"arguments\": {\"a"},
	} {
		o := answer.Options{Tools: tools, Format: answer.FormatOf(c.template, noPiece)}
		if content, calls := cutAnswer(o, c.text); calls != "" || content != c.text && !strings.HasPrefix(c.text, "<tool_call>") {
			t.Errorf("%q: content %q, calls %q", c.text, content, calls)
		}
	}
}
