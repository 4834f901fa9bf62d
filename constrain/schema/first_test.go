package schema

import (
	"testing"

	"grove/internal/suite/schematest"
)

// TestSpelling: what may stand between the parts, and which characters may be escaped.
func TestSpelling(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`
	texts := []string{`{"a":[1,2]}`, `{"a": [1, 2]}`, "{\n  \"a\": [\n    1,\n    2\n  ]\n}", `{"a" : [1 ,2]}`, "{\"a\":\n[]}", ` {"a":[]}`, `{"\u0061":[]}`, `{"a":["\u00e9\u007f\/"]}`}
	for _, x := range []struct {
		name string
		o    Options
		want string
	}{
		{"bounded", Options{}, "+++----+"},
		{"compact", Options{Whitespace: Compact}, "+------+"},
		{"spaced", Options{Whitespace: Spaced}, "-+------"},
		{"any", Options{Whitespace: Any, Escapes: AnyEscape}, "++++++++"},
		{"any space", Options{Whitespace: Any}, "++++++-+"},
	} {
		t.Run(x.name, func(t *testing.T) {
			src, err := Compile([]byte(schema), x.o)
			if err != nil {
				t.Fatal(err)
			}
			w := schematest.NewWalker(src)
			for i, text := range texts {
				if n, ends := w.Read(text); (n == len(text) && ends) != (x.want[i] == '+') {
					t.Errorf("%q: read %d bytes, ends %v; %v", text, n, ends, w.Err)
				}
			}
		})
	}
}

func TestTexts(t *testing.T) {
	for _, x := range []struct {
		name, schema string
		good, bad    []string
	}{
		{"type", `{"type":"string"}`, []string{`"a"`, `"\u00e9\n\/"`, `""`}, []string{`1`, `"a`, `a`, `"\ud800"`, `"\u0061"`, ` "a"`}},
		{"any", `{}`, []string{`1`, `{"a":[1,{"b":null}]}`, `[]`, `{}`, `-1.5e+30`}, []string{`{"a":1,"a":2}`, `01`, `[1,]`}},
		{"object", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["b"],"additionalProperties":false}`,
			[]string{`{"a":1,"b":true}`, `{"b":false}`, "{ \"a\": 1.0,\n\t\"b\":false }"}, []string{`{"b" :true}`, `{"b":true,"a":1}`, `{"a":1}`, `{}`, `{"b":true,"c":1}`, `{"a":1.5,"b":true}`}},
		{"extras", `{"type":"object","properties":{"a":{"type":"integer"}}, "additionalProperties":{"type":"string"}}`,
			[]string{`{"a":1,"c":"x"}`, `{"d":"x"}`}, []string{`{"a":"x"}`, `{"d":1}`, `{"d":"x","d":"x"}`}},
		{"items", `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3}`, []string{`[1,2]`, `[1, 2, 3]`}, []string{`[1]`, `[1,2,3,4]`, `["a",1]`}},
		{"enum", `{"enum":[1,"a",null,{"x":1,"y":[2]},[true]]}`, []string{`1`, `1.0`, `"a"`, `null`, `{"x":1,"y":[2]}`, `[true]`}, []string{`2`, `{"x":1}`, `[]`, `true`}},
		{"ref", `{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},"n":{"$ref":"#/$defs/t"}},"required":["v"],"additionalProperties":false}}}`,
			[]string{`{"v":1}`, `{"v":1,"n":{"v":2,"n":{"v":3}}}`}, []string{`{"n":{"v":1}}`, `{"v":1,"n":{}}`}},
		{"anyOf", `{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}`, []string{`"x"`, `{"a":1,"b":2}`}, []string{`1`, `{}`, `{"b":1}`}},
		{"oneOf", `{"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object"}`, []string{`{"a":1,"c":2}`, `{"b":1}`}, []string{`{}`, `{"a":1,"b":2}`}},
		{"not", `{"not":{"type":"object","properties":{"a":{"type":"string"}}}}`, []string{`1`, `{"a":1}`}, []string{`{}`, `{"a":"x"}`, `{"b":1}`}},
		{"not all names", `{"type":"object","not":{"additionalProperties":{"type":"null"}}}`, []string{`{"x":1}`, `{"x":null,"y":1}`, `{"x":1,"y":null}`}, []string{`{}`, `{"x":null}`}},
		{"one format", `{"type":"string","oneOf":[{"format":"hostname"},{"format":"ipv4"},{"enum":["-"]}]}`, []string{`"a.b"`, `"-"`},
			[]string{`"1.2.3.4"`, `"a_b"`, `"xn--9n2bp8q"`}},
		{"no format", `{"type":"string","not":{"format":"email"}}`, []string{`"a"`, `""`}, []string{`"a@b.c"`, `"\"\\a\"@b"`}},
		{"not no format", `{"type":"string","not":{"not":{"format":"regex"}}}`, []string{`"a*"`}, []string{`"*"`, `"("`}},
		{"contains", `{"type":"array","contains":{"type":"integer"},"maxContains":2}`, []string{`[1]`, `["a",1,2]`}, []string{`[]`, `["a"]`, `[1,2,3]`}},
		{"unique", `{"type":"array","items":{"enum":[1,2,"a"]},"uniqueItems":true,"minItems":2}`, []string{`[1,2]`, `[2,"a",1]`}, []string{`[1]`, `[1,1.0]`, `["a","\u0061"]`, `[1,2,"a",1]`}},
		{"pattern", `{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, []string{`{"x":1,"xy":2}`, `{}`}, []string{`{"y":1}`, `{"x":"a"}`}},
		{"names", `{"type":"object","propertyNames":{"maxLength":2},"minProperties":1}`, []string{`{"x":1,"xy":2}`}, []string{`{"xyz":1}`, `{}`}},
		{"if", `{"type":"object","if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["x"]},"else":{"required":["y"]}}`,
			[]string{`{"k":"a","x":1}`, `{"y":2}`, `{"k":"b","y":1}`}, []string{`{"k":"a"}`, `{"k":"a","y":1}`, `{"x":1}`}},
		{"all types but fractions", `{"type":["null","boolean","integer","string","array","object"]}`, []string{`1`, `"a"`, `{}`}, []string{`1.5`}},
		{"unevaluated", `{"type":"object","allOf":[{"properties":{"a":true}}],"anyOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]},{"properties":{"c":true},"required":["c"]}],"unevaluatedProperties":false}`,
			[]string{`{"a":1,"b":2}`, `{"c":2}`, `{"b":1,"c":2}`}, []string{`{}`, `{"a":1}`, `{"b":1,"d":2}`, `{"b":"x","c":1}`}},
	} {
		t.Run(x.name, func(t *testing.T) {
			src, err := Compile([]byte(x.schema), Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := schematest.NewWalker(src)
			for _, text := range x.good {
				if n, ends := w.Read(text); n < len(text) || !ends {
					t.Errorf("%s: read %d bytes, ends %v; %v", text, n, ends, w.Err)
				}
			}
			for _, text := range x.bad {
				if n, ends := w.Read(text); n == len(text) && ends {
					t.Errorf("%s: accepted", text)
				}
			}
			if w.Err != nil {
				t.Error(w.Err)
			}
		})
	}
}

// TestNoDeadEnd reads as much of a text as an object can go on from: a name that is passed over does not come any more.
func TestNoDeadEnd(t *testing.T) {
	const two = `"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"additionalProperties":false}`
	for _, x := range []struct{ schema, text, want string }{
		{`{"type":"object","minProperties":2,` + two, `{"b":null,"c":null}`, `{"b":null,"c":null}`},
		{`{"type":"object","minProperties":2,` + two, `{"c":null`, `{"`},
		{`{"type":"object","minProperties":3,` + two, `{"b":null`, `{"`},
		{`{"type":"object","required":["a"],` + two, `{"b":null`, `{"`},
	} {
		src, err := Compile([]byte(x.schema), Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := schematest.NewWalker(src)
		if n, _ := w.Read(x.text); x.text[:n] != x.want {
			t.Errorf("%s: %q is read, want %q; %v", x.schema, x.text[:n], x.want, w.Err)
		}
	}
}
