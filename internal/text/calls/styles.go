package calls

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Style is how a family of models writes calls. It does not change.
type Style struct {
	Family string // for errors

	signs    []string // all are in templates of the family, or each is a token of its vocabularies
	bare     string   // the characters that calls begin with where no marker does; "": a marker does
	begun    string   // the beginning of the first call that prompts may end with
	notLast  string   // the characters that remarks before calls do not end with, as the mark of calls could begin with them
	once     bool     // an answer has one call
	channels bool     // gpt-oss
	open     Grammar  // before the first call
	between  Grammar
	close    Grammar // behind the last call
	call     func(f *function) (Grammar, error)
}

// function is a function whose calls are written.
type function struct {
	Function
	style *Style
	given json.RawMessage // its arguments, where they are known: they are written, and nothing else
}

// calls returns the grammar of from least to most calls of functions, with the marks around them.
func (s *Style) calls(all []Function, least, most int) (Grammar, error) {
	var of []Grammar
	for _, f := range all {
		one, err := s.call(&function{Function: f, style: s})
		if err != nil {
			return Grammar{}, fmt.Errorf("calls: function %q: %w", clip(f.Name), err)
		}
		one.Name = f.Name
		of = append(of, one)
	}
	call := One(of...)
	if len(of) == 1 {
		call = of[0]
	}
	return All(s.open, call, Times(All(s.between, call), least-1, most-1), s.close), nil
}

// clip cuts a name to a length that fits an error.
func clip(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "..."
	}
	return name
}

// object returns the spelling of a call as an object: before the name, between it and the arguments, and behind them.
func object(before, between, behind string) func(f *function) (Grammar, error) {
	return func(f *function) (Grammar, error) {
		arguments, err := f.arguments()
		return All(Mark(before), Text(quote(f.Name)+between), arguments, Mark(behind)), err
	}
}

// named returns the spelling of a call as its name and an object, with texts around.
func named(before, between, behind string) func(f *function) (Grammar, error) {
	return func(f *function) (Grammar, error) {
		if err := f.isWord(); err != nil {
			return Grammar{}, err
		}
		arguments, err := f.arguments()
		return All(Mark(before), Text(f.Name), Mark(between), arguments, Mark(behind)), err
	}
}

const nameAndArguments = `, "arguments": `

// hermes is the style of models that are asked for calls in the prompt, too.
var hermes = &Style{Family: "Hermes", signs: []string{"<tool_call>"}, between: Text("\n"), call: object("<tool_call>\n{\"name\": ", nameAndArguments, "}\n</tool_call>")}

// styles are the ways of the families; the first whose signs a model shows is its own.
var styles = []*Style{
	{Family: "gpt-oss", signs: []string{channel, message}, channels: true, once: true, call: inChannel},
	{Family: "DeepSeek V4", signs: []string{"｜DSML｜", "tool_calls>"}, open: Mark("<｜DSML｜tool_calls>\n"), close: Mark("</｜DSML｜tool_calls>"), call: dsml.call},
	{Family: "Kimi K3", signs: []string{"<|open|>", "<|close|>"}, open: Mark("<|close|>response<|sep|><|open|>tools<|sep|>"),
		close: Mark("<|close|>tools<|sep|><|close|>message<|sep|>"), call: kimi},
	{Family: "DeepSeek V3.2", signs: []string{"｜DSML｜"}, open: Mark("<｜DSML｜function_calls>\n"), close: Mark("</｜DSML｜function_calls>"),
		call: dsml.call},
	{Family: "DeepSeek R1, V3", signs: []string{"<｜tool▁calls▁begin｜>", "```json"}, open: Mark("<｜tool▁calls▁begin｜>"), between: Text("\n"), close: Mark("<｜tool▁calls▁end｜>"),
		call: named("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>")},
	{Family: "DeepSeek V3.1", signs: []string{"<｜tool▁calls▁begin｜>"}, open: Mark("<｜tool▁calls▁begin｜>"), close: Mark("<｜tool▁calls▁end｜>"),
		call: named("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")},
	{Family: "MiniMax M2", signs: []string{"<minimax:tool_call>"}, open: Mark("<minimax:tool_call>\n"), close: Mark("</minimax:tool_call>"),
		call: tags{`<invoke name="`, "\">\n", `<parameter name="`, `">`, `">`, "</parameter>", "\n", "</invoke>\n"}.call},
	{Family: "Seed", signs: []string{"<seed:tool_call>"}, between: Text("\n"),
		call: tags{"<seed:tool_call>\n<function=", ">\n", "<parameter=", ">", ">", "</parameter>", "\n", "</function>\n</seed:tool_call>"}.call},
	{Family: "GLM 4.7", signs: []string{"<arg_key>", "</arg_key><arg_value>"},
		call: tags{"<tool_call>", "", "<arg_key>", "</arg_key><arg_value>", "</arg_key><arg_value>", "</arg_value>", "", "</tool_call>"}.call},
	{Family: "GLM", signs: []string{"<arg_key>"}, between: Text("\n"),
		call: tags{"<tool_call>", "\n", "<arg_key>", "</arg_key>\n<arg_value>", "</arg_key>\n<arg_value>", "</arg_value>", "\n", "</tool_call>"}.call},
	{Family: "Qwen3-Coder", signs: []string{"<function=", "<parameter="}, between: Text("\n"),
		call: tags{"<tool_call>\n<function=", ">\n", "<parameter=", ">\n", ">\n", "\n</parameter>", "\n", "</function>\n</tool_call>"}.call},
	{Family: "Functionary 3.1", signs: []string{"<function="}, call: named("<function=", ">", "</function>")},
	{Family: "Functionary 3.2", signs: []string{">>>all"}, begun: ">>>", notLast: ">", call: named(">>>", "\n", "")},
	{Family: "Kimi K2", signs: []string{"<|tool_calls_section_begin|>"}, open: Mark("<|tool_calls_section_begin|>"), close: Mark("<|tool_calls_section_end|>"), call: numbered},
	{Family: "Mistral, with ids", signs: []string{"[TOOL_CALLS]", "[CALL_ID]"}, call: withCallID},
	{Family: "Mistral", signs: []string{"[TOOL_CALLS]", "[ARGS]"}, call: named("[TOOL_CALLS]", "[ARGS]", "")},
	{Family: "Mistral Nemo", signs: []string{"[TOOL_CALLS]["}, open: Mark("[TOOL_CALLS]["), between: Text(", "), close: Text("]"), call: withNine},
	{Family: "Mistral v3", signs: []string{"[TOOL_CALLS]"}, open: Mark("[TOOL_CALLS] ["), between: Text(", "), close: Text("]"), call: withNine},
	{Family: "Phi-4", signs: []string{"<|tool_call|>", "<|/tool_call|>"}, open: Mark("<|tool_call|>["), between: Text(", "), close: Mark("]<|/tool_call|>"), call: object(`{"name": `, nameAndArguments, "}")},
	{Family: "Granite 3", signs: []string{"<|tool_call|>"}, open: Mark("<|tool_call|>["), between: Text(", "), close: Text("]"), call: object(`{"name": `, nameAndArguments, "}")},
	{Family: "Firefunction", signs: []string{"functools"}, open: Text("functools["), between: Text(", "), close: Text("]"), call: object(`{"name": `, nameAndArguments, "}")},
	{Family: "Command R7B", signs: []string{"<|START_ACTION|>"}, open: Mark("<|START_ACTION|>[\n    "), between: Text(",\n    "), close: Mark("\n]<|END_ACTION|>"), call: withID},
	{Family: "Command R", signs: []string{"Write 'Action:'"}, open: Mark("Action:\n```json\n["), between: Text(","), close: Text("\n]```"), call: object("\n    {\n        \"tool_name\": ", ",\n        \"parameters\": ", "\n    }")},
	{Family: "Nemotron 2", signs: []string{"<TOOLCALL>"}, open: Mark("<TOOLCALL>["), between: Text(", "), close: Mark("]</TOOLCALL>"), call: object(`{"name": `, nameAndArguments, "}")},
	{Family: "LFM2", signs: []string{"<|tool_call_start|>"}, open: Mark("<|tool_call_start|>["), between: Text(", "), close: Mark("]<|tool_call_end|>"), call: python},
	{Family: "LFM2", signs: []string{"<|tool_list_start|>"}, open: Mark("<|tool_call_start|>["), between: Text(", "), close: Mark("]<|tool_call_end|>"), call: python},
	{Family: "Gemma 4", signs: []string{"<|tool_call>"}, call: gemma},
	{Family: "Solar", signs: []string{"<|tool_call:begin|>"}, open: Mark("<|tool_calls|>"), close: Mark("<|calls|>"), call: withWord},
	{Family: "GigaChat 3.1", signs: []string{"<|function_call|>"}, between: Text("\n\n"), call: object("<|function_call|>{\"name\": ", nameAndArguments, "}")},
	{Family: "Apertus", signs: []string{"<|tools_prefix|>"}, open: Mark("<|tools_prefix|>["), between: Text(", "), close: Mark("]<|tools_suffix|>"), call: object("{", ": ", "}")},
	{Family: "GigaChat", signs: []string{"<|role_sep|>"}, between: Text("\n\n"), call: object("function call<|role_sep|>\n{\"name\": ", nameAndArguments, "}<|message_sep|>")},
	{Family: "Apriel", signs: []string{"<tool_calls>["}, open: Mark("<tool_calls>["), between: Text(", "), close: Mark("]</tool_calls>"), call: object(`{"name": `, nameAndArguments, "}")},
	{Family: "MiniMax M1", signs: []string{"<tool_calls>"}, open: Mark("<tool_calls>\n"), between: Text("\n"), close: Mark("\n</tool_calls>"), call: object(`{"name": `, nameAndArguments, "}")},
	hermes,
	{Family: "Llama 4", signs: []string{"func_name1(params_name1"}, bare: "[", open: Text("["), between: Text(", "), close: Text("]"), call: python},
	{Family: "Llama 3", signs: []string{"<|python_tag|>"}, bare: "{", between: Text("; "), call: object(`{"name": `, `, "parameters": `, "}")},
	{Family: "Llama 3", signs: []string{"ipython"}, bare: "{", between: Text("; "), call: object(`{"name": `, `, "parameters": `, "}")},
}

// listsTools finds the variable with the tools in a template's source, or that with the calls of a message.
var listsTools = regexp.MustCompile(`\b(tools|functions|tool_calls)\b`)

// StyleOf returns the way of a model: of the families', the first whose signs its chat template has, else the first whose signs are
// tokens of the vocabulary; has tells which are. Where the template shows no tools, the prompt asks for calls as Hermes writes them.
func StyleOf(template string, has func(piece string) bool) *Style {
	inTemplate := func(sign string) bool { return strings.Contains(template, sign) }
	if shows(styles[0].signs, inTemplate) { // answers are read as messages in channels
		return styles[0]
	}
	if listsTools.MatchString(template) {
		for _, shown := range []func(string) bool{inTemplate, has} {
			for _, s := range styles {
				if shows(s.signs, shown) {
					return s
				}
			}
		}
	}
	return hermes
}

func shows(signs []string, shown func(string) bool) bool {
	for _, sign := range signs {
		if !shown(sign) {
			return false
		}
	}
	return true
}
