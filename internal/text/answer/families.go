package answer

import (
	"slices"
	"strings"
)

// Markers are the texts around the thoughts of a family of models.
type Markers struct {
	Begin, End string
	// Budget reports that thoughts between the markers are counted and can be bounded where both ends are special tokens.
	Budget bool

	signs []string // all are in the templates of the family
}

const (
	channelMark = "<|channel|>"
	messageMark = "<|message|>"
)

// thoughts are the markers of the families. The first pair with a budget that a template mentions is that of the model.
var thoughts = []Markers{
	{"<think>", "</think>", true, []string{"</think>"}},                                                     // DeepSeek, Qwen, GLM, Kimi, MiniMax, Nemotron, Granite 3.3
	{"<|START_THINKING|>", "<|END_THINKING|>", true, []string{"<|END_THINKING|>"}},                          // Cohere
	{"[THINK]", "[/THINK]", true, []string{"[/THINK]"}},                                                     // Mistral
	{"<seed:think>", "</seed:think>", true, []string{"</seed:think>"}},                                      // Seed
	{"<|channel|>analysis<|message|>", "<|end|>", true, []string{channelMark, messageMark}},                 // gpt-oss
	{"Here is my thought process:", "Here is my response:", false, []string{"Here is my thought process:"}}, // Granite 3.2
	{"<|channel>thought", "<channel|>", false, []string{"<channel|>"}},                                      // Gemma 4
	{"<|think|>", "<|end|>", false, []string{"<|think|>", "<|content|>"}},                                   // Solar
	{"<|inner_prefix|>", "<|inner_suffix|>", false, []string{"<|inner_suffix|>"}},                           // Apertus
	{"<|open|>think<|sep|>", "<|close|>think<|sep|>", true, []string{"<|open|>", "<|close|>"}},              // Kimi K3
	{"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", false, []string{"[BEGIN FINAL RESPONSE]"}},   // Apriel
}

// KnownMarkers returns the markers of thoughts of all families.
func KnownMarkers() []Markers { return slices.Clone(thoughts) }

// wrappers are texts around the content: <response> of Granite 3.3, <answer> of Hunyuan.
var wrappers = [][2]string{{"<response>", "</response>"}, {"<answer>", "</answer>"}}

// form is how families write calls: the text that begins them, and the program that reads what follows.
type form struct {
	begin string
	// signs are texts of templates and tokens of vocabularies, each of which shows that a family writes the form; none: begin.
	signs []string
	bare  bool // begin is at the beginning of an answer and belongs to the call; the model must not be known for another form
	// loose forms are slips of models that are asked for calls as Hermes writes them. They are read where the model is not known for
	// another form and no constraint holds the answer.
	loose bool
	prog  program
}

// The arguments of a function, as XML-like parameters or as an object.
var (
	coder = seq(word(fieldName), want(">"), either(peek("{"), seq(object("{"), opt("</function>"), call(named)),
		seq(loop("<parameter=", find(fieldKey, ">"), coderValue, loop("</parameter>")),
			either(when("</tool_call>"), nil, want("</function>")), call(typed))), loop("</tool_call>"))
	deepSeek = seq(word(fieldID), want("<｜tool▁sep｜>"), either(peek("{"), nil, seq(word(fieldName), opt("```json"))),
		object("{"), opt("```"), opt("<｜tool▁call▁end｜>"), call(named))
	bareObject = seq(object("{"), call(objects), loop(";", object("{"), call(objects)))
	invoke     = seq(loop(`<｜DSML｜invoke name="`, word(fieldName), want(`">`),
		loop(`<｜DSML｜parameter name="`, find(fieldKey, `" string="`), find(fieldText, `">`), find(fieldValue, "</｜DSML｜parameter>")),
		want("</｜DSML｜invoke>"), call(typed)))
	plainCalls = seq(plain, repeat(peek("{["), object("{["), call(plainObjects)))
	kimiCall   = seq(want(`tool="`), find(fieldName, `"`), find(fieldID, "<|sep|>"), either(when("<|open|>json"),
		seq(find(fieldID, "<|sep|>"), object("{"), opt("<|close|>json<|sep|>"), want("<|close|>call<|sep|>"), call(named)),
		seq(loop("<|open|>argument", want(`key="`), find(fieldKey, `"`), find(fieldText, "<|sep|>"), find(fieldValue, "<|close|>argument<|sep|>")),
			want("<|close|>call<|sep|>"), call(typed))))
)

// forms are the forms of calls.
var forms = []form{
	{begin: "<tool_call>", prog: either(peek("{["), seq(object("{["), opt("</tool_call>"), call(objects)), // Hermes, Qwen, Granite 4
		either(when("<function="), coder, // Qwen3-Coder, Nemotron 3, Step 3.5
			seq(word(fieldName), loop("<arg_key>", find(fieldKey, "</arg_key>"), want("<arg_value>"), find(fieldValue, "</arg_value>")),
				want("</tool_call>"), call(typed))))}, // GLM
	{begin: "<seed:tool_call>", prog: seq(loop("<function=", coder), opt("</seed:tool_call>"))},
	{begin: "<function=", prog: coder}, // Functionary 3.1
	{begin: "<tool_calls>", prog: seq(repeat(peek("{["), object("{["), call(objects)), opt("</tool_calls>"))}, // MiniMax M1, Hunyuan, Jamba
	{begin: "<minimax:tool_call>", prog: seq(loop(`<invoke name="`, word(fieldName), want(`">`),
		loop(`<parameter name="`, find(fieldKey, `">`), find(fieldValue, "</parameter>")), want("</invoke>"), call(typed)), opt("</minimax:tool_call>"))},
	{begin: "<｜DSML｜function_calls>", signs: []string{"｜DSML｜"}, prog: seq(invoke, opt("</｜DSML｜function_calls>"))}, // DeepSeek V3.2
	{begin: "<｜DSML｜tool_calls>", signs: []string{"｜DSML｜"}, prog: seq(invoke, opt("</｜DSML｜tool_calls>"))},         // DeepSeek V4
	{begin: "<｜tool▁calls▁begin｜>", prog: seq(loop("<｜tool▁call▁begin｜>", deepSeek), opt("<｜tool▁calls▁end｜>"))},    // DeepSeek V2.5, R1, V3, V3.1
	{begin: "<｜tool▁call▁begin｜>", prog: deepSeek},
	{begin: "<|tool_calls_section_begin|>", prog: seq(loop("<|tool_call_begin|>", word(fieldName), want("<|tool_call_argument_begin|>"), // Kimi K2
		object("{"), opt("<|tool_call_end|>"), call(named)), opt("<|tool_calls_section_end|>"))},
	{begin: "<|open|>tools<|sep|>", signs: []string{"<|open|>"}, prog: seq(loop("<|open|>call", kimiCall), opt("<|close|>tools<|sep|>"))}, // Kimi K3
	{begin: "[TOOL_CALLS]", prog: either(peek("[{"), seq(object("[{"), call(objects)), seq(word(fieldName), // Mistral
		either(when("[CALL_ID]"), word(fieldID), nil), opt("[ARGS]"), object("{"), call(named)))},
	{begin: "<|tool_call|>", signs: []string{"<|tool_call|>", "<|/tool|>"}, prog: seq(object("[{"), opt("<|/tool_call|>"), call(objects))}, // Phi-4, Granite 3
	{begin: "functools", signs: []string{"functools", "<|/tool|>"}, prog: seq(object("["), call(objects))},                                 // Firefunction, Phi-4
	{begin: "<|START_ACTION|>", prog: seq(object("[{"), opt("<|END_ACTION|>"), call(objects))},                                             // Command R7B
	{begin: "Action:", signs: []string{"Write 'Action:'"}, prog: seq(want("```json"), object("[{"), opt("```"), call(objects))},            // Command R, R+
	{begin: "<TOOLCALL>", prog: seq(object("[{"), opt("</TOOLCALL>"), call(objects))},                                                      // Nemotron 2
	{begin: "<|tool_call_start|>", signs: []string{"<|tool_call_start|>", "<|tool_list_start|>"}, // LFM2
		prog: seq(object("["), opt("<|tool_call_end|>"), call(pythonic))},
	{begin: "<|tool_call>", prog: seq(want("call:"), word(fieldName), find(fieldText, "<tool_call|>"), call(gemma))}, // Gemma 4
	{begin: "<|tool_calls|>", prog: seq(loop("<|tool_call:begin|>", word(fieldID), want("<|tool_call:name|>"), word(fieldName), // Solar
		want("<|tool_call:args|>"), object("{"), opt("<|tool_call:end|>"), call(named)), opt("<|calls|>"))},
	{begin: "function call<|role_sep|>", signs: []string{"<|role_sep|>"}, prog: seq(object("{"), opt("<|message_sep|>"), call(objects))}, // GigaChat
	{begin: "<|function_call|>", prog: seq(object("{"), opt("<|message_sep|>"), call(objects))},                                          // GigaChat 3.1
	{begin: "<|tools_prefix|>", prog: seq(object("[{"), opt("<|tools_suffix|>"), call(keyed))},                                           // Apertus
	{begin: ">>>", signs: []string{">>>all"}, prog: seq(word(fieldName), object("{"), call(named))},                                      // Functionary 3.2
	{begin: "<|python_tag|>", prog: either(peek("{"), bareObject, seq(word(fieldName), object("("), call(arguments)))},                   // Llama 3
	{begin: "{", signs: []string{"<|python_tag|>", "ipython"}, bare: true, prog: seq(begins, bareObject)},
	{begin: "[", signs: []string{"func_name1(params_name1"}, bare: true, prog: seq(begins, object("["), call(pythonic))}, // Llama 3.2, 4
	// Qwen2.5-Coder, and small models of others.
	{begin: "```", loose: true, prog: seq(opt("json"), plainCalls, opt("```"))},
	{begin: "```json\n<tool_call>", loose: true, prog: seq(plainCalls, opt("</tool_call>"), opt("```"))},
	{begin: "```xml\n<tool_call>", loose: true, prog: seq(plainCalls, opt("</tool_call>"), opt("```"))},
	{begin: "<tools>", loose: true, prog: seq(plainCalls, opt("</tools>"))},
	{begin: "<function_call>", loose: true, prog: seq(plainCalls, opt("</function_call>"))},
}

// dropped are markers of turns and channels that surround parts of answers, each with the sign of its family.
var dropped = []struct{ text, sign string }{
	{">>>all\n", ">>>all"}, {"<|message_sep|>", "<|role_sep|>"},
	{"<|open|>response<|sep|>", "<|open|>"}, {"<|close|>response<|sep|>", "<|open|>"}, {"<|close|>message<|sep|>", "<|open|>"},
	{"[END FINAL RESPONSE]", "[BEGIN FINAL RESPONSE]"},
	{"<|begin|>assistant", "<|tool_call:begin|>"}, {"<|content|>", "<|tool_call:begin|>"}, {"<|end|>", "<|tool_call:begin|>"},
}

// Format is how a family of models writes thoughts and calls. The zero value is that of models without either. It does not change.
type Format struct {
	channels bool // gpt-oss
	thoughts []Markers
	forms    []form
	wrappers [][2]string
	dropped  []string
	control  map[string]bool // texts that mark something and can be control tokens
}

// FormatOf returns the format of a model: of the families' markers, those that its chat template mentions, or that are tokens of its
// vocabulary; has tells which are. Calls in the form of Hermes are read for each model, as are those of Llama 3 where the template and
// the vocabulary show no other form.
func FormatOf(template string, has func(piece string) bool) Format {
	f := Format{control: map[string]bool{}}
	shown := func(sign string) bool { return strings.Contains(template, sign) }
	if shown(channelMark) && shown(messageMark) || template == "" && has(channelMark) && has(messageMark) {
		f.channels = true
		for _, mark := range slices.Concat(bodyEnds, []string{messageMark, "<|constrain|>"}) {
			f.control[mark] = true
		}
		return f
	}
	for _, t := range thoughts {
		if !slices.ContainsFunc(t.signs, func(s string) bool { return !shown(s) }) || t.Budget && has(t.Begin) && has(t.End) {
			f.thoughts = append(f.thoughts, t)
			f.control[t.Begin], f.control[t.End] = true, true
		}
	}
	known := false // for a form besides that of Hermes
	for i, c := range forms {
		signs := c.signs
		if signs == nil {
			signs = []string{c.begin}
		}
		sign := !c.loose && slices.ContainsFunc(signs, func(s string) bool { return shown(s) || !c.bare && has(s) })
		if i == 0 || sign || (c.loose || c.begin == "{") && !known {
			f.add(c)
			known = known || i > 0 && !c.bare && !c.loose
		}
	}
	for _, w := range wrappers {
		if shown(w[1]) {
			f.wrappers = append(f.wrappers, w)
		}
	}
	for _, d := range dropped {
		if shown(d.sign) {
			f.dropped = append(f.dropped, d.text)
			f.control[d.text] = true
		}
	}
	return f
}

// add adds a form of calls.
func (f *Format) add(c form) {
	f.forms = append(f.forms, c)
	f.control[c.begin] = true
	for _, o := range c.prog {
		f.control[o.text] = true
	}
	if c.begin == "<|tool_call>" {
		f.control[gemmaQuote] = true
	}
}

// isMark reports whether a control token is a text that marks something, or a part of one: markers of many families are control
// tokens with plain text beside them.
func (f *Format) isMark(control string) bool {
	if f.control[control] {
		return true
	}
	for text := range f.control {
		if strings.Contains(text, control) {
			return true
		}
	}
	return false
}

// Thinks reports whether the family marks its thoughts.
func (f Format) Thinks() bool { return f.channels || len(f.thoughts) > 0 }

// Channels reports whether answers are messages in channels, as those of gpt-oss are.
func (f Format) Channels() bool { return f.channels }

// Thoughts returns the markers of the family's thoughts, none for [Format.Channels].
func (f Format) Thoughts() []Markers { return slices.Clone(f.thoughts) }

// Marks returns the texts that begin calls anywhere in an answer.
func (f Format) Marks() (all []string) {
	for _, c := range f.forms {
		if !c.bare && !c.loose {
			all = append(all, c.begin)
		}
	}
	return all
}

// Dropped returns the markers around parts of answers that are no text.
func (f Format) Dropped() []string { return slices.Clone(f.dropped) }

// Inside returns the markers of the thoughts that a text opens and does not close; ok is false where it opens none.
func (f Format) Inside(text string) (m Markers, ok bool) {
	last := -1
	for _, t := range f.thoughts {
		if at := strings.LastIndex(text, t.Begin); at > last && !strings.Contains(text[at:], t.End) {
			m, ok, last = t, true, at
		}
	}
	return m, ok
}
