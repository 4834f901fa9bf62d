package calls_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"grove/internal/text/answer"
	"grove/internal/text/calls"
)

// writer writes texts of grammars by chance.
type writer struct {
	*rand.Rand
	b     strings.Builder
	names []string // of the functions that are called
}

// write writes a text of a grammar.
func (w *writer) write(g calls.Grammar) {
	if g.Name != "" {
		w.names = append(w.names, g.Name)
	}
	switch g.Kind {
	case calls.Literal, calls.Marker:
		w.b.WriteString(g.Text)
	case calls.Space:
		w.b.WriteString(strings.Repeat("\n", w.IntN(3)))
	case calls.Raw:
		w.b.WriteString("raw")
	case calls.Free:
		w.b.WriteString(w.text(g.Without, g.NotFirst, g.NotLast))
	case calls.Chars:
		for range g.Min + w.IntN(g.Max-g.Min+1) {
			w.b.WriteByte(g.Text[w.IntN(len(g.Text))])
		}
	case calls.JSON:
		var s schema
		if err := json.Unmarshal(g.Schema, &s); err != nil {
			panic(err)
		}
		for {
			text := w.value(&s, 0)
			if !slices.ContainsFunc(g.Without, func(x string) bool { return strings.Contains(text, x) }) {
				w.b.WriteString(text)
				return
			}
		}
	case calls.Seq:
		for _, p := range g.Of {
			w.write(p)
		}
	case calls.Alt:
		w.write(g.Of[w.IntN(len(g.Of))])
	case calls.Repeat:
		most := g.Min + 2
		if g.Max >= 0 {
			most = min(most, g.Max)
		}
		for range g.Min + w.IntN(most-g.Min+1) {
			w.write(g.Of[0])
		}
	}
}

// pieces are what texts are made of: all that the forms of families could trip over.
var pieces = []string{
	"a", "Bern", " ", "\n", `"`, `'`, `\`, "{", "}", "[", "]", "(", ")", ",", ":", "<", ">", "=", "é", "😀", "null", "true", "12", "</parameter>", "</function>",
	"</tool_call>", "<tool_call>", "</arg_value>", `<|"|>`, "```", "<tool_call|>", "<|end|>", "</｜DSML｜parameter>", "\u2028", "\x7f",
}

// text returns a text that has none of some texts and does not begin or end with some characters.
func (w *writer) text(without []string, notFirst, notLast string) string {
	for {
		s := ""
		for range w.IntN(5) {
			s += pieces[w.IntN(len(pieces))]
		}
		begin := strings.TrimLeft(s, " \n")
		bad := slices.ContainsFunc(without, func(x string) bool { return strings.Contains(s, x) })
		bad = bad || s != "" && strings.Contains(notLast, s[len(s)-1:])
		if !bad && (begin == "" || notFirst == "" || !strings.Contains(notFirst, begin[:1])) {
			return s
		}
	}
}

// schema is what schemas of these tests have.
type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Closed     any                `json:"additionalProperties"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	AnyOf      []*schema          `json:"anyOf"`
	Const      any                `json:"const"`
	Note       string             `json:"description"`
}

// UnmarshalJSON takes true for a schema, too.
func (s *schema) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" {
		return nil
	}
	type plain schema
	return json.Unmarshal(raw, (*plain)(s))
}

// value writes a value of a schema.
func (w *writer) value(s *schema, depth int) string {
	space := func() string { return strings.Repeat(" ", w.IntN(2)) }
	switch {
	case s.Const != nil:
		return w.spell(s.Const)
	case len(s.Enum) > 0:
		return w.spell(s.Enum[w.IntN(len(s.Enum))])
	case len(s.AnyOf) > 0:
		return w.value(s.AnyOf[w.IntN(len(s.AnyOf))], depth)
	}
	types, _ := s.Type.([]any)
	kind, _ := s.Type.(string)
	if len(types) > 0 {
		kind = types[w.IntN(len(types))].(string)
	}
	if kind == "" {
		kind = []string{"string", "integer", "boolean", "null"}[w.IntN(4)]
	}
	switch kind {
	case "string":
		return w.spell(w.text(nil, "", ""))
	case "integer":
		return strconv.Itoa(w.IntN(2000) - 1000)
	case "number":
		return []string{"1.5", "-2e3", "0"}[w.IntN(3)]
	case "boolean":
		return []string{"true", "false"}[w.IntN(2)]
	case "null":
		return "null"
	case "array":
		var all []string
		items := s.Items
		if items == nil {
			items = &schema{}
		}
		for range w.IntN(3) {
			all = append(all, w.value(items, depth+1))
		}
		return "[" + space() + strings.Join(all, ","+space()) + "]"
	}
	var all []string
	for name, p := range s.Properties {
		if slices.Contains(s.Required, name) || w.IntN(2) == 0 {
			all = append(all, w.spell(name)+space()+":"+space()+w.value(p, depth+1))
		}
	}
	return "{" + space() + strings.Join(all, ","+space()) + space() + "}"
}

// spell writes a constant, with escapes that JSON leaves to the writer.
func (w *writer) spell(v any) string {
	raw, _ := json.Marshal(v)
	text := string(raw)
	if w.IntN(2) == 0 {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "😀", `\ud83d\ude00`), "/", `\/`)
	}
	return text
}

// check says why a value does not keep to a schema; "": it does.
func check(s *schema, v any) string {
	if s.Const != nil && fmt.Sprint(s.Const) != fmt.Sprint(v) {
		return fmt.Sprintf("%#v is not %v", v, s.Const)
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return fmt.Sprintf("%T %v", e, e) == fmt.Sprintf("%T %v", v, v) }) {
		return fmt.Sprintf("%#v is none of %v", v, s.Enum)
	}
	if len(s.AnyOf) > 0 && !slices.ContainsFunc(s.AnyOf, func(a *schema) bool { return check(a, v) == "" }) {
		return fmt.Sprintf("%#v is of none", v)
	}
	kind := map[string]string{"string": "string", "float64": "number", "bool": "boolean", "<nil>": "null", "[]interface {}": "array", "map[string]interface {}": "object"}[fmt.Sprintf("%T", v)]
	types, _ := s.Type.([]any)
	if t, ok := s.Type.(string); ok {
		types = []any{t}
	}
	if len(types) > 0 && !slices.ContainsFunc(types, func(t any) bool { return t == kind || t == "integer" && kind == "number" }) {
		return fmt.Sprintf("%#v is not %v", v, types)
	}
	if list, ok := v.([]any); ok && s.Items != nil {
		for _, e := range list {
			if bad := check(s.Items, e); bad != "" {
				return bad
			}
		}
	}
	object, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			return name + " is missing"
		}
	}
	for name, e := range object {
		p := s.Properties[name]
		if p == nil && s.Closed == false {
			return name + " is too much"
		}
		if p != nil {
			if bad := check(p, e); bad != "" {
				return name + ": " + bad
			}
		}
	}
	return ""
}

// schemas are those of the functions of the tests.
var schemas = map[string]string{
	"look": `{"type":"object","properties":{"at":{"type":"string","description":"a place"},"n":{"type":"integer"}},"required":["at"],"additionalProperties":false}`,
	"add": `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},
		"c":{"type":"boolean"},"d":{"anyOf":[{"type":"number"},{"type":"null"}]},"e":{"enum":["1","x y","true"]},"f":{"type":["string","null"]},"g":{"enum":[1,"1",null]},
		"h":{"type":"string","const":"null"},"two words":{"type":"string"}},"required":["c","e"],"additionalProperties":false}`,
	"list-all": ``,
	"any":      `{"properties":{"x":true,"y":{}},"required":["y"],"additionalProperties":false}`,
}

func functions() (all []calls.Function, tools []json.RawMessage) {
	for _, name := range []string{"look", "add", "list-all", "any"} {
		f := calls.Function{Name: name}
		tool := `{"type":"function","function":{"name":"` + name + `"`
		if s := schemas[name]; s != "" {
			f.Parameters = json.RawMessage(s)
			tool += `,"parameters":` + s
		}
		all, tools = append(all, f), append(tools, json.RawMessage(tool+"}}"))
	}
	return all, tools
}

// families are the signs of each style, as a template that shows tools has them.
var families = map[string]string{
	"gpt-oss": "<|channel|><|message|>", "DeepSeek V3.2": "｜DSML｜", "DeepSeek R1, V3": "<｜tool▁calls▁begin｜> ```json", "DeepSeek V3.1": "<｜tool▁calls▁begin｜>",
	"MiniMax M2": "<minimax:tool_call>", "Seed": "<seed:tool_call>", "GLM": "<tool_call><arg_key>", "GLM 4.7": "<tool_call><arg_key>k</arg_key><arg_value>", "Qwen3-Coder": "<tool_call><function=<parameter=", "Functionary 3.1": "<function=",
	"Functionary 3.2": ">>>all", "Kimi K2": "<|tool_calls_section_begin|>", "Mistral": "[TOOL_CALLS][ARGS]", "Mistral, with ids": "[TOOL_CALLS][CALL_ID][ARGS]", "Mistral v3": "[TOOL_CALLS]", "Mistral Nemo": "[TOOL_CALLS][", "Command R": "Write 'Action:'", "Phi-4": "<|tool_call|><|/tool_call|>",
	"Granite 3": "<|tool_call|>", "Firefunction": "functools", "Command R7B": "<|START_ACTION|>", "Nemotron 2": "<TOOLCALL>", "LFM2": "<|tool_list_start|>", "Gemma 4": "<|tool_call>",
	"Solar": "<|tool_call:begin|><|think|><|content|><|tool_calls|>", "GigaChat": "<|role_sep|>", "GigaChat 3.1": "<|role_sep|><|function_call|>", "Apertus": "<|tools_prefix|>", "Apriel": "<tool_calls>[", "DeepSeek V4": "<｜DSML｜tool_calls>", "Kimi K3": "<|open|><|close|>", "MiniMax M1": "<tool_calls>", "Hermes": "<tool_call> tools", "Llama 4": "func_name1(params_name1", "Llama 3": "ipython",
}

// flows tells whether the arguments of a family come as they are written.
var flows bool

func none(string) bool { return false }

// TestRead: each text of the grammar of each family is read as calls of the functions that were written, in their order, with arguments
// that keep to their schemas.
func TestRead(t *testing.T) {
	all, tools := functions()
	for family, template := range families {
		t.Run(family, func(t *testing.T) {
			template += " tools"
			s := calls.StyleOf(template, none)
			if s.Family != family {
				t.Fatalf("it is the style of %s", s.Family)
			}
			format := answer.FormatOf(template, none)
			for _, c := range []struct {
				name string
				o    calls.Options
			}{
				{"one", calls.Options{Least: 1, Most: 1}},
				{"some", calls.Options{Least: 1}},
				{"remarks", calls.Options{Remarks: true}},
				{"within thoughts", calls.Options{Least: 1, Tail: "<think>\n"}},
			} {
				c.o.Functions = all
				if c.o.Tail != "" {
					if family == "gpt-oss" {
						continue
					}
					format = answer.FormatOf(template+"</think>", none)
				}
				g, err := s.Answer(format, c.o)
				if err != nil {
					t.Fatal(c.name, err)
				}
				called := 0
				for seed := range uint64(100) {
					w := &writer{Rand: rand.New(rand.NewPCG(seed, 1))}
					w.write(g)
					called += len(w.names)
					flows = family != "Gemma 4" && family != "Apertus" && family != "LFM2" && family != "Llama 4" && family != "Firefunction"
					readBack(t, answer.Options{Format: format, Tools: tools, Tail: c.o.Tail}, w)
					if t.Failed() {
						t.Fatal(c.name, seed)
					}
				}
				if called == 0 {
					t.Errorf("%s: no call was written", c.name)
				}
			}
		})
	}
}

// readBack reads a text that was written.
func readBack(t *testing.T, o answer.Options, w *writer) {
	t.Helper()
	text := w.b.String()
	r := answer.NewReader(o)
	parts := append(r.Add(text, ""), r.End()...)
	var names []string
	for _, p := range parts {
		if p.Kind != answer.CallPart {
			continue
		}
		names = append(names, p.Call.Name)
		s, v := new(schema), any(nil)
		if text := schemas[p.Call.Name]; text != "" {
			if err := json.Unmarshal([]byte(text), s); err != nil {
				t.Fatal(err)
			}
		}
		if err := json.Unmarshal([]byte(p.Call.Arguments), &v); err != nil {
			t.Errorf("%q: %s: %v", text, p.Call.Arguments, err)
		}
		if bad := check(s, v); bad != "" {
			t.Errorf("%q: %s: %s", text, p.Call.Arguments, bad)
		}
	}
	checkFlow(t, o, text, parts)
	if !slices.Equal(names, w.names) {
		t.Errorf("%q: calls of %v are read, of %v were written", text, names, w.names)
	}
}

// TestRefused: what a form cannot be held to is refused, with its name and its place.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, template, function, schema, want string }{
		{"an argument of strings in another way", "<function=<parameter=", "f", `{"type":"object","properties":{"a":{"type":["string"]}}}`,
			`calls: function "f": #/properties/a: say type string: the form of this family's calls has strings without quotes`},
		{"other keywords", "<arg_key>", "f", `{"type":"object","anyOf":[{}]}`, `calls: function "f": #/anyOf: calls in the form of GLM cannot be held to it`},
		{"no object", "", "f", `{"type":"string"}`, `calls: function "f": #/type: arguments are an object`},
		{"nothing", "", "f", `false`, `calls: function "f": #/type: arguments are an object`},
		{"a list", "", "f", `[]`, `calls: function "f": #: a schema is an object, true or false`},
		{"a name", "[TOOL_CALLS][ARGS]", "a b", `{}`, "calls: function \"a b\": the name has white space or one of <>\"`[({|=\\, which calls in the form of Mistral cannot have"},
		{"an end in an enumeration", "<function=<parameter=", "f", `{"properties":{"a":{"enum":["</parameter>"]}}}`,
			`calls: function "f": #/properties/a/enum: the text "</parameter>" cannot be written in the form of this family's calls`},
		{"an enumeration of Gemma", "<|tool_call>", "f", `{"properties":{"a":{"enum":["<tool_call|>"]}}}`,
			`calls: function "f": #/properties/a/enum: a text has <tool_call|>, which calls in the form of Gemma 4 cannot have`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := calls.Options{Functions: []calls.Function{{Name: c.function, Parameters: json.RawMessage(c.schema)}}, Least: 1}
			_, err := calls.StyleOf(c.template+" tools", none).Answer(answer.FormatOf(c.template, none), o)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// ordinary are parameters of functions as tools of real servers have them, which the forms of XML-like families have no words for.
var ordinary = []string{
	`{"type":"object","properties":{"a":{"type":"string","minLength":1,"maxLength":64,"pattern":"^[a-z-]+$"},"b":{"type":"string","format":"date-time","contentEncoding":"base64"}},"required":["a"]}`,
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
	`{"type":"object","properties":{"a":{"type":"integer"}},"minProperties":1,"maxProperties":3,"patternProperties":{"^x-":{"type":"string"}},"x-kubernetes":true,"dependentRequired":{"a":["a"]}}`,
	`{"$ref":"#/$defs/Args","$defs":{"Args":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
	`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"integer"}}}]}`,
	`{"type":"object","properties":{"a":{"type":["string"]},"b":{"anyOf":[{"type":"string","const":"x"},{"type":"string","const":"y"}]},"c":{"anyOf":[{"type":"string"},{"type":"null"}]},"d e<f":{"type":"string"}}}`,
	`{"type":"object","properties":{"a":{"enum":["x","</parameter></arg_value><|\"|>"]}}}`,
}

// TestOrdinary: a call of a function that is not strict can be asked for in the form of each family, whatever its schema says of strings
// and of the object; the arguments that parts of the schema name can be given.
func TestOrdinary(t *testing.T) {
	for family, template := range families {
		for _, schema := range ordinary {
			template := template + " tools"
			s := calls.StyleOf(template, none)
			o := calls.Options{Functions: []calls.Function{{Name: "f", Parameters: json.RawMessage(schema), Loose: true}}, Least: 1}
			g, err := s.Answer(answer.FormatOf(template, none), o)
			if err != nil {
				t.Errorf("%s: %s: %v", family, schema, err)
				continue
			}
			if text := fmt.Sprint(g); strings.Contains(schema, `"b":{"type":"integer"}`) && (strings.HasPrefix(family, "Qwen") || family == "GLM") && !strings.Contains(text, "{0 b ") {
				t.Errorf("%s: %s: no argument b: %s", family, schema, text)
			}
		}
	}
}

// checkFlow reads a text letter by letter, with arguments as they come: these are the beginnings of those of the calls, in their order.
func checkFlow(t *testing.T, o answer.Options, text string, whole []answer.Part) {
	t.Helper()
	var want []*answer.Call
	for _, p := range whole {
		if p.Kind == answer.CallPart {
			want = append(want, p.Call)
		}
	}
	o.Certain = true
	r := answer.NewReader(o)
	var begun []*answer.Call
	called := 0
	for _, p := range append(letters(r, text), r.End()...) {
		switch p.Kind {
		case answer.CallBegin:
			begun = append(begun, p.Call)
		case answer.CallText:
			begun[len(begun)-1].Arguments += p.Text
		case answer.CallPart:
			if called++; *p.Call != *want[called-1] {
				t.Errorf("%q: call %d is %v, whole %v", text, called, p.Call, want[called-1])
			}
			if n := called - 1; n < len(begun) && (begun[n].ID != p.Call.ID || begun[n].Name != p.Call.Name || !strings.HasPrefix(p.Call.Arguments, begun[n].Arguments)) {
				t.Errorf("%q: call %d began as %v, and is %v", text, called, begun[n], p.Call)
			} else if n >= len(begun) && len(p.Call.Arguments) > 2 && flows {
				t.Errorf("%q: call %d did not come as it was written", text, called)
			} else if n >= len(begun) {
				begun = append(begun, p.Call)
			}
		}
	}
	if called != len(want) {
		t.Errorf("%q: %d calls, whole %d", text, called, len(want))
	}
}

// letters reads a text letter by letter.
func letters(r *answer.Reader, text string) (all []answer.Part) {
	for _, c := range text {
		all = append(all, r.Add(string(c), "")...)
	}
	return all
}
