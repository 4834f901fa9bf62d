package constrain_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grove/constrain"
	"grove/constrain/earley"
	"grove/constrain/grammar"
	"grove/constrain/lark"
	"grove/constrain/regex"
	"grove/constrain/schema"
	"grove/constrain/vocab"
	"grove/internal/text/answer"
	"grove/internal/text/calls"
	"grove/internal/text/token"
)

// end is the token behind a text; the tokens before it are the bytes, and special the one before those.
const (
	end     = token.ID(256)
	special = token.ID(257)
)

// letters is the vocabulary of the bytes.
func letters(t *testing.T) *vocab.Vocabulary {
	t.Helper()
	var all []vocab.Token
	for b := range 256 {
		all = append(all, vocab.Token{ID: token.ID(b), Bytes: []byte{byte(b)}, Kind: vocab.Ordinary})
	}
	all = append(all, vocab.Token{ID: end, Kind: vocab.End}, vocab.Token{ID: special, Kind: vocab.Special})
	v, err := vocab.New(all, 258)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// engine returns the engine of a tree.
func engine(t *testing.T, g calls.Grammar, spell func(string) (string, error)) *earley.Engine {
	t.Helper()
	src, err := compile(g, spell)
	if err != nil {
		t.Fatal(err)
	}
	e, err := earley.New(src, letters(t), earley.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func compile(g calls.Grammar, spell func(string) (string, error)) (grammar.Source, error) {
	r := regex.New(regex.Limits{})
	return constrain.CompileNest(g, constrain.NestOptions{
		Store: r, Spell: spell, Ends: func(id token.ID) bool { return id == end },
		Texts: func(text json.RawMessage) (regex.ID, error) { return schema.Texts(text, schema.Options{Store: r}) },
		Held: func(_, text string) (grammar.Source, error) {
			return lark.Parse([]byte(text), lark.Options{Store: r})
		},
		Value: func(text json.RawMessage) (grammar.Source, error) {
			return schema.Compile(text, schema.Options{Store: r})
		},
	})
}

// closers are the bytes that lead to an end: a walk prefers them.
const closers = "\"}]<>|/\n)"

// walk writes a text of an engine by chance; ok is false where it has no end within a number of bytes.
func walk(t *testing.T, e *earley.Engine, r *rand.Rand) (text string, ok bool) {
	t.Helper()
	var b []byte
	s, err := e.Start()
	for err == nil && len(b) < 600 {
		var m earley.Mask
		if m, err = e.Mask(s); err != nil {
			break
		}
		if m.Has(end) && r.IntN(4) == 0 {
			return string(b), true
		}
		var all, closing []token.ID
		for id := range token.ID(256) {
			if m.Has(id) {
				if all = append(all, id); strings.IndexByte(closers, byte(id)) >= 0 {
					closing = append(closing, id)
				}
			}
		}
		if len(all) == 0 {
			if !m.Has(end) {
				t.Fatalf("nothing may follow %q: expected %s", b, e.Expected(s))
			}
			return string(b), true
		}
		if len(closing) > 0 && r.IntN(3) > 0 {
			all = closing
		}
		id := all[r.IntN(len(all))]
		b = append(b, byte(id))
		s, err = e.Next(s, id)
	}
	if err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return string(b), false
}

// holds reports whether a text keeps to a schema: that package's grammar, and no part of a tree, takes it.
func holds(t *testing.T, text, parameters string) bool {
	t.Helper()
	if parameters == "" {
		parameters = `{"type":"object","additionalProperties":false}`
	}
	src, err := schema.Compile([]byte(parameters), schema.Options{Order: schema.Free})
	if err != nil {
		t.Fatal(err)
	}
	return takes(t, src, text)
}

// linesGrammar is what the text of the tool edit is held to: lines in balanced brackets, with what JSON escapes.
const linesGrammar = "start: \"(\" NL (line | start)* \")\" NL\nline: /[ab<>\"\\\\é]+/ NL\nNL: /\\n/\n%ignore /\\t/"

// holdsLines reports whether the text of a call of edit keeps to its grammar.
func holdsLines(t *testing.T, arguments string) bool {
	t.Helper()
	var o struct{ Input string }
	if err := json.Unmarshal([]byte(arguments), &o); err != nil {
		return false
	}
	src, err := lark.Parse([]byte(linesGrammar), lark.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return takes(t, src, o.Input)
}

// takes reports whether a grammar takes a text.
func takes(t *testing.T, src grammar.Source, text string) bool {
	t.Helper()
	e, err := earley.New(src, letters(t), earley.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	s, n, err := e.Push(s, []byte(text))
	return err == nil && n == len(text) && e.Ends(s)
}

var schemas = map[string]string{
	"edit": `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`,
	"look": `{"type":"object","properties":{"at":{"type":"string"},"n":{"type":"integer"}},"required":["at"],"additionalProperties":false}`,
	"add":  `{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/word"},"maxItems":2},"c":{"type":"boolean"},"e":{"enum":["1","x y"]}},"required":["e"],"additionalProperties":false,"$defs":{"word":{"type":"string","maxLength":3}}}`,
	"list": ``,
}

// families are the signs of each style.
var families = []string{
	"<|channel|><|message|>", "｜DSML｜", "<｜tool▁calls▁begin｜> ```json", "<｜tool▁calls▁begin｜>", "<minimax:tool_call>", "<seed:tool_call>", "<tool_call><arg_key>",
	"<tool_call><function=<parameter=", "<function=", ">>>all", "<|tool_calls_section_begin|>", "[TOOL_CALLS][ARGS]", "[TOOL_CALLS][CALL_ID][ARGS]", "[TOOL_CALLS]", "<|tool_call|><|/tool_call|>",
	"<|tool_call|>", "functools", "<|START_ACTION|>", "<TOOLCALL>", "<|tool_list_start|>", "<|tool_call>", "<|tool_call:begin|><|think|><|content|><|tool_calls|>", "<|role_sep|>", "<tool_calls>",
	"<tool_call>", "func_name1(params_name1", "ipython",
	"<|role_sep|><|function_call|>", "[TOOL_CALLS][", "Write 'Action:'", "<|tools_prefix|>", "<tool_call><arg_key>k</arg_key><arg_value>", "<tool_calls>[", "<｜DSML｜tool_calls>", "<|open|><|close|>",
}

// TestCalls: each text that an engine may write by the grammar of a family's calls is read as calls, whose arguments keep to their schemas.
func TestCalls(t *testing.T) {
	var all []calls.Function
	var tools []json.RawMessage
	for _, name := range []string{"look", "add", "list"} {
		all = append(all, calls.Function{Name: name, Parameters: json.RawMessage(schemas[name])})
		tool := `{"type":"function","function":{"name":"` + name + `"`
		if schemas[name] != "" {
			tool += `,"parameters":` + schemas[name]
		}
		tools = append(tools, json.RawMessage(tool+"}}"))
	}
	edit := calls.Function{Name: "edit", Parameters: json.RawMessage(schemas["edit"]), Input: &calls.Input{Syntax: "lark", Definition: linesGrammar}}
	all = append(all, edit)
	tools = append(tools, json.RawMessage(`{"type":"function","function":{"name":"edit","parameters":`+schemas["edit"]+`}}`))
	none := func(string) bool { return false }
	for _, sign := range families {
		t.Run(sign, func(t *testing.T) {
			style, format := calls.StyleOf(sign+" tools", none), answer.FormatOf(sign, none)
			for _, o := range []calls.Options{{Least: 1}, {Remarks: true}} {
				o.Functions = all
				g, err := style.Answer(format, o)
				if err != nil {
					t.Fatal(err)
				}
				e, whole, called := engine(t, g, nil), 0, 0
				for seed := range uint64(40) {
					text, ok := walk(t, e, rand.New(rand.NewPCG(seed, 7)))
					if !ok {
						continue
					}
					whole++
					r := answer.NewReader(answer.Options{Format: format, Tools: tools})
					n := 0
					for _, p := range append(r.Add(text, ""), r.End()...) {
						if p.Kind == answer.CallPart {
							n++
							if edited := p.Call.Name == "edit"; edited && !holdsLines(t, p.Call.Arguments) || !edited && !holds(t, p.Call.Arguments, schemas[p.Call.Name]) {
								t.Errorf("%q: the arguments %s", text, p.Call.Arguments)
							}
						}
					}
					if called += n; n < o.Least {
						t.Errorf("%q: no call is read", text)
					}
				}
				if whole < 10 || o.Least > 0 && called < 10 {
					t.Errorf("%d texts are whole, with %d calls", whole, called)
				}
			}
		})
	}
}

// TestTexts says which texts small trees have.
func TestTexts(t *testing.T) {
	object := calls.Value(json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`))
	apart := calls.Value(json.RawMessage(`{"type":"string"}`))
	apart.Without = []string{"</x>"}
	for _, c := range []struct {
		name    string
		g       calls.Grammar
		in, out []string
	}{
		{"empty", calls.All(), []string{""}, []string{"a"}},
		{"literal", calls.Text("ab"), []string{"ab"}, []string{"", "a", "abc"}},
		{"json between", calls.All(calls.Text("<"), object, calls.Text(">")), []string{`<{"a":1}>`, `<{ "a": -12 }>`}, []string{`<>`, `<{}>`, `<{"a":1}`, ` <{"a":1}>`, `<{"a":1} >`}},
		{"a number and a digit", calls.All(calls.Value(json.RawMessage(`{"type":"integer"}`)), calls.Text("1")), []string{"11", "121", "-31"}, []string{"1", "12", ""}},
		{"free", calls.Any("ab", "c"), []string{"", "a", "ba", "é"}, []string{"ab", "xaby", "c"}},
		{"free before a mark", calls.All(calls.Any("ab"), calls.Mark("ab")), []string{"ab", "aab", "xab"}, []string{"", "abab", "a"}},
		{"free that may be all", calls.All(calls.Any("ab"), calls.Maybe(calls.All(calls.Mark("ab"), object))), []string{"", "x", `xab{"a":1}`}, []string{"ab", `ab{"a":1}x`}},
		{"first and last", calls.Grammar{Kind: calls.Free, NotFirst: "{", NotLast: ">"}, []string{"", " ", "a{", " a>b"}, []string{"{", " {a", "a>"}},
		{"counted", calls.Times(calls.All(calls.Text("x"), object), 1, 2), []string{`x{"a":1}`, `x{"a":1}x{"a":2}`}, []string{"", `x{"a":1}x{"a":2}x{"a":3}`}},
		{"counted without end", calls.Times(object, 0, -1), []string{"", `{"a":1}{"a":1}{"a":1}`}, []string{`{"a":1}{`}},
		{"at least", calls.Times(object, 2, -1), []string{`{"a":1}{"a":1}`, `{"a":1}{"a":1}{"a":1}`}, []string{"", `{"a":1}`}},
		{"a choice with nothing", calls.One(calls.All(), object), []string{"", `{"a":1}`}, []string{"x"}},
		{"chars", calls.Grammar{Kind: calls.Chars, Text: "ab", Min: 1, Max: 2}, []string{"a", "ba"}, []string{"", "aba", "c"}},
		{"space", calls.All(calls.Grammar{Kind: calls.Space, Max: 2}, object), []string{`{"a":1}`, " \n{\"a\":1}"}, []string{"   {\"a\":1}"}},
		{"a string without a mark", calls.All(apart, calls.Mark("</x>")), []string{`"a"</x>`, `"</"</x>`}, []string{`"</x>"</x>`}},
		{"a string as it is", calls.All(calls.Text("<"), calls.Grammar{Kind: calls.Raw, Schema: json.RawMessage(`{"type":"string","pattern":"^[a-z\"\\n]+$","maxLength":3}`), Without: []string{"q"}}, calls.Mark("</x>")),
			[]string{"<ab</x>", `<a"b</x>`, "<\na</x>", "<a\n</x>"}, []string{"<abcd</x>", "<A</x>", "<\na\n</x>", "<aq</x>", `<"ab"</x>`, "<</x>"}},
		{"a date as it is", calls.Grammar{Kind: calls.Raw, Schema: json.RawMessage(`{"type":"string","format":"date"}`)}, []string{"2024-02-29"}, []string{"2023-02-29", `"2024-02-29"`}},
		{"held", calls.Grammar{Kind: calls.Held, Syntax: "lark", Text: "start: \"(\" start? \")\"\n%ignore \" \""}, []string{"()", "( ( ))", "  ()"}, []string{"(", "())", `"()"`}},
		{"held before a mark", calls.All(calls.Grammar{Kind: calls.Held, Text: "start: (\"<\" | \"/x\" | \"a\" | \">\")+", Without: []string{"</x>"}}, calls.Mark("</x>")),
			[]string{"a</x>", "a>/x</x>"}, []string{"</x></x>", "</x>"}},
		{"held string", calls.Grammar{Kind: calls.HeldString, Text: "start: \"(\" start? \")\" | /[\"\\n]+/\n%ignore \" \""}, []string{`"(())"`, `" (\"\n)"`, `"\u0028\n\u0029"`}, []string{`"("`, "()", `"(")`, "\"(\n)\""}},
	} {
		e := engine(t, c.g, nil)
		for _, text := range slices.Concat(c.in, c.out) {
			s, err := e.Start()
			if err != nil {
				t.Fatal(err)
			}
			s, n, err := e.Push(s, []byte(text))
			if got := err == nil && n == len(text) && e.Ends(s); got != slices.Contains(c.in, text) {
				t.Errorf("%s: %q is in the language: %v", c.name, text, got)
			}
		}
	}
}

// TestMarks: a mark is its special token alone, and nothing of it stands behind a token that ends texts.
func TestMarks(t *testing.T) {
	spell := func(mark string) (string, error) {
		return strings.NewReplacer("<call>", vocab.Spelling(special), "<end>", vocab.Spelling(end)).Replace(mark), nil
	}
	e := engine(t, calls.All(calls.Any("<call>"), calls.Mark("<call>x<end>")), spell)
	s, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err = e.Push(s, []byte("a<call")); err != nil {
		t.Fatal(err)
	}
	m, err := e.Mask(s)
	if err != nil || m.Has('>') || !m.Has(special) || !m.Has('b') || m.Has(end) {
		t.Errorf("behind a part of the mark as text: %v", err)
	}
	if s, err = e.Next(s, special); err != nil {
		t.Fatal(err)
	}
	if s, err = e.Next(s, 'x'); err != nil || !e.Ends(s) {
		t.Errorf("behind the mark: %v", err)
	}
	if got := e.Forced(s, 10); len(bytes.TrimSpace(got)) > 0 {
		t.Errorf("%q follows the end", got)
	}
}

// TestRefused names the function whose schema is refused.
func TestRefused(t *testing.T) {
	_, err := compile(calls.One(calls.Text("x"), calls.Grammar{Kind: calls.Seq, Name: "f", Of: []calls.Grammar{calls.Text("a"), calls.Value(json.RawMessage(`{"enum":[]}`))}}), nil)
	if err == nil || !strings.HasPrefix(err.Error(), `function "f": `) || !strings.Contains(err.Error(), "#") {
		t.Error(err)
	}
	deep := calls.Value(json.RawMessage(`true`))
	for range 200 {
		deep = calls.Maybe(deep)
	}
	if _, err = compile(deep, nil); err == nil || !strings.Contains(err.Error(), "deeper than 100") {
		t.Error(err)
	}
	if _, err = compile(calls.One(), nil); err == nil {
		t.Error("a choice of nothing has texts")
	}
}

// asTemplates are calls as templates of families write them, each with what shows the family.
var asTemplates = []struct{ family, sign, text string }{
	{"LFM2.5", "<|tool_call_start|>", `<|tool_call_start|>[get_weather(city='Bern', days=2), add(a=[1, 2.5], c=True)]<|tool_call_end|>`},
	{"Apertus", "<|tools_prefix|>", `<|tools_prefix|>[{"get_weather": {"city": "Bern", "days": 2}}, {"add": {"a": [1, 2.5], "c": true}}]<|tools_suffix|>`},
	{"GigaChat 3.1", "<|role_sep|><|function_call|>", `<|function_call|>{"name": "get_weather", "arguments": {"city": "Bern", "days": 2}}`},
	{"DeepSeek V4", "｜DSML｜ tool_calls>", "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Bern</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"add\">\n<｜DSML｜parameter name=\"a\" string=\"false\">[1, 2.5]</｜DSML｜parameter>\n<｜DSML｜parameter name=\"c\" string=\"false\">true</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"},
	{"Kimi K3", "<|open|><|close|>", `<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Bern<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`},
	{"Mistral Nemo", "[TOOL_CALLS][", `[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Bern", "days": 2}, "id": "call12345"}, {"name": "add", "arguments": {"a": [1, 2.5], "c": true}, "id": "call12345"}]`},
	{"Command R+", "Write 'Action:'", "Action:\n```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\"city\": \"Bern\", \"days\": 2}\n    },\n    {\n        \"tool_name\": \"add\",\n        \"parameters\": {\"a\": [1, 2.5], \"c\": true}\n    }\n]```"},
	{"Apriel", "<tool_calls>[", `<tool_calls>[{"name": "get_weather", "arguments": {"city": "Bern", "days": 2}}, {"name": "add", "arguments": {"a": [1, 2.5], "c": true}}]</tool_calls>`},
	{"Qwen3-Coder", "<function=<parameter=", "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=add>\n<parameter=a>\n[1, 2.5]\n</parameter>\n<parameter=c>\nTrue\n</parameter>\n</function>\n</tool_call>"},
	{"GLM 4.7", "<arg_key></arg_key><arg_value>", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Bern</arg_value><arg_key>days</arg_key><arg_value>2</arg_value></tool_call><tool_call>add<arg_key>a</arg_key><arg_value>[1, 2.5]</arg_value><arg_key>c</arg_key><arg_value>true</arg_value></tool_call>"},
}

// TestAsTemplates: a call that is asked for may be written as the family's template writes calls, and is read so.
func TestAsTemplates(t *testing.T) {
	none := func(string) bool { return false }
	parameters := map[string]string{
		"get_weather": `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`,
		"add":         `{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}},"b":{"type":"object"},"c":{"type":"boolean"}}}`,
	}
	var all []calls.Function
	var tools []json.RawMessage
	for _, name := range []string{"get_weather", "add"} {
		all = append(all, calls.Function{Name: name, Parameters: json.RawMessage(parameters[name])})
		tools = append(tools, json.RawMessage(`{"type":"function","function":{"name":"`+name+`","parameters":`+parameters[name]+`}}`))
	}
	for _, c := range asTemplates {
		g, err := calls.StyleOf(c.sign+" tools", none).Answer(answer.FormatOf(c.sign, none), calls.Options{Functions: all, Least: 1})
		if err != nil {
			t.Fatal(c.family, err)
		}
		e := engine(t, g, nil)
		s, err := e.Start()
		if err != nil {
			t.Fatal(err)
		}
		if s, n, err := e.Push(s, []byte(c.text)); err != nil || n != len(c.text) || !e.Ends(s) {
			t.Errorf("%s: byte %d is refused, %v: %q", c.family, n, err, c.text[:min(len(c.text), n+10)])
		}
		want := []string{`get_weather{"city":"Bern","days":2}`, `add{"a":[1,2.5],"c":true}`}
		r := answer.NewReader(answer.Options{Format: answer.FormatOf(c.sign, none), Tools: tools})
		for _, p := range append(r.Add(c.text, ""), r.End()...) {
			if p.Kind != answer.CallPart || len(want) == 0 || p.Call.Name+p.Call.Arguments != want[0] {
				t.Errorf("%s: %v %+v %q", c.family, p.Kind, p.Call, p.Text)
				continue
			}
			want = want[1:]
		}
		if len(want) > 1 {
			t.Errorf("%s: no calls are read", c.family)
		}
	}
}
