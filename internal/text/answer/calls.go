package answer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// functions are the functions that may be called, by their names: of each parameter, the JSON types that it may have.
type functions struct {
	all map[string]map[string][]string
}

// schema is the part of a JSON schema that gives a value its type.
type schema struct {
	Type       json.RawMessage   `json:"type"`
	Enum       []json.RawMessage `json:"enum"`
	AnyOf      []schema          `json:"anyOf"`
	OneOf      []schema          `json:"oneOf"`
	Properties map[string]schema `json:"properties"`
}

// newFunctions reads tools in the form of OpenAI's API: of chat, or of responses.
func newFunctions(tools []json.RawMessage) *functions {
	f := &functions{all: map[string]map[string][]string{}}
	type function struct {
		Name       string `json:"name"`
		Parameters schema `json:"parameters"`
	}
	for _, data := range tools {
		var tool struct {
			function
			Function function `json:"function"`
		}
		_ = json.Unmarshal(data, &tool) // a schema of another form says nothing of types
		if tool.Function.Name == "" {
			tool.Function = tool.function
		}
		types := map[string][]string{}
		for name, s := range tool.Function.Parameters.Properties {
			types[name] = s.types()
		}
		f.all[tool.Function.Name] = types
	}
	return f
}

// Types returns the JSON types of the values that answers are read as where a JSON schema is theirs; none: all. A schema of
// another form says nothing of types.
func Types(jsonSchema []byte) []string {
	var s schema
	_ = json.Unmarshal(jsonSchema, &s)
	return s.types()
}

// types returns the JSON types that a schema allows; none: all.
func (s schema) types() (all []string) {
	var one string
	if json.Unmarshal(s.Type, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(s.Type, &all) // a list, or nothing
	for _, v := range s.Enum {
		all = append(all, typeOf(v))
	}
	for _, sub := range append(s.AnyOf, s.OneOf...) {
		types := sub.types()
		if types == nil {
			return nil
		}
		all = append(all, types...)
	}
	return all
}

// typeOf returns the type of a JSON value.
func typeOf(value []byte) string {
	types := map[byte]string{'{': "object", '[': "array", '"': "string", 't': "boolean", 'f': "boolean", 'n': "null"}
	return cmp.Or(types[value[0]], "number")
}

// known returns the name of the function that a model calls, "" where there is none. Some models write functions.name:0, others
// name.call.
func (f *functions) known(name string) string {
	name = attribute.Replace(name)
	for _, n := range []string{name, strings.TrimSuffix(name, ".call"), strings.TrimPrefix(name, "functions.")} {
		if _, ok := f.all[n]; ok {
			return n
		}
		if at := strings.LastIndexByte(n, ':'); at > 0 && strings.Trim(n[at+1:], "0123456789") == "" {
			if _, ok := f.all[n[:at]]; ok {
				return n[:at]
			}
		}
	}
	return ""
}

// attribute reads the escapes of names that are attributes, as those of Kimi K3 are.
var attribute = strings.NewReplacer("&quot;", `"`, "&amp;", "&")

// begins reports whether a text that begins with a bracket can be a call: an object whose first key belongs to calls, or a list
// of calls as Python writes them; with plain, a list of objects.
func (f *functions) begins(text []byte, ended, plain bool) outcome {
	switch {
	case len(text) == 0 && !ended:
		return more
	case len(text) == 0 || text[0] != '{' && text[0] != '[':
		return failed
	}
	rest := bytes.TrimLeft(text[1:min(len(text), 1+maxName)], blanks)
	if plain && text[0] == '[' && len(rest) > 0 {
		return f.begins(text[len(text)-len(bytes.TrimLeft(text[1:], blanks)):], ended, false)
	}
	var all []string
	if text[0] == '{' {
		all = []string{`"name"`, `"type"`, `"function"`, `"parameters"`, `"arguments"`}
	} else if plain {
		all = []string{"{"}
	} else {
		for name := range f.all {
			all = append(all, name+"(")
		}
	}
	result := failed
	for _, begin := range all {
		if bytes.HasPrefix(rest, []byte(begin)) {
			return done
		}
		if strings.HasPrefix(begin, string(rest)) && !ended && len(text) < maxName {
			result = more
		}
	}
	return result
}

// objects builds the calls of a JSON object, or of a list of objects.
func objects(f *functions, m *machine) ([]Call, bool) {
	return f.objects([]byte(m.fields[fieldObject]))
}

// elements returns the elements of a list, or the one value.
func elements(data []byte) (list []json.RawMessage, ok bool) {
	if data[0] != '[' {
		return []json.RawMessage{data}, true
	}
	return list, json.Unmarshal(data, &list) == nil
}

// plainObjects is [objects] for text that is a call only if it says nothing else: each object has a name and arguments.
func plainObjects(f *functions, m *machine) ([]Call, bool) {
	data := []byte(m.fields[fieldObject])
	list, ok := elements(data)
	for _, data := range list {
		var o map[string]json.RawMessage
		ok = ok && json.Unmarshal(data, &o) == nil && o["name"] != nil && (o["arguments"] != nil || o["parameters"] != nil)
		for key := range o {
			ok = ok && slices.Contains([]string{"name", "arguments", "parameters", "type", "id"}, key)
		}
	}
	if !ok {
		return nil, false
	}
	return f.objects(data)
}

// keyed builds the calls of a list of objects, each of which has the name of a function for its one key.
func keyed(f *functions, m *machine) (calls []Call, ok bool) {
	list, ok := elements([]byte(m.fields[fieldObject]))
	for _, data := range list {
		var o map[string]json.RawMessage
		if !ok || json.Unmarshal(data, &o) != nil || len(o) != 1 {
			return nil, false
		}
		for name, arguments := range o {
			c, ok := f.call(name, arguments)
			if !ok {
				return nil, false
			}
			calls = append(calls, c)
		}
	}
	return calls, len(calls) > 0
}

func (f *functions) objects(data []byte) (calls []Call, ok bool) {
	list, ok := elements(data)
	if !ok {
		return nil, false
	}
	for _, data := range list {
		var o struct {
			Name       string          `json:"name"`
			ToolName   string          `json:"tool_name"`
			Function   json.RawMessage `json:"function"`
			Arguments  json.RawMessage `json:"arguments"`
			Parameters json.RawMessage `json:"parameters"`
		}
		if json.Unmarshal(data, &o) != nil {
			return nil, false
		}
		name, nested := o.Name+o.ToolName, ""
		switch {
		case name == "" && json.Unmarshal(o.Function, &nested) == nil:
			name = nested
		case name == "" && o.Function != nil && json.Unmarshal(o.Function, &o) != nil:
			return nil, false
		case name == "":
			name = o.Name
		}
		if o.Arguments == nil {
			o.Arguments = o.Parameters
		}
		c, ok := f.call(name, o.Arguments)
		if !ok {
			return nil, false
		}
		calls = append(calls, c)
	}
	return calls, len(calls) > 0
}

// call builds a call of a known function. Arguments are an object of JSON, a string that holds one, null or nothing.
func (f *functions) call(name string, arguments []byte) (c Call, ok bool) {
	var text string
	if json.Unmarshal(arguments, &text) == nil && text != "" {
		arguments = []byte(text)
	}
	if arguments = bytes.TrimSpace(arguments); len(arguments) == 0 || string(arguments) == "null" || string(arguments) == `""` {
		arguments = []byte("{}")
	}
	var packed bytes.Buffer
	if name = f.known(name); name == "" || arguments[0] != '{' || json.Compact(&packed, arguments) != nil {
		return Call{}, false
	}
	return Call{Name: name, Arguments: packed.String()}, true
}

// named builds a call of its name and its object. DeepSeek V3.1 has the name where others have the type.
func named(f *functions, m *machine) ([]Call, bool) {
	c, ok := f.call(cmp.Or(m.fields[fieldName], m.fields[fieldID]), []byte(m.fields[fieldObject]))
	return []Call{c}, ok
}

// typed builds a call of its name and of arguments that are texts, which the types of the function's parameters make values.
func typed(f *functions, m *machine) ([]Call, bool) {
	name := m.fields[fieldName]
	var keys []string
	values := map[string][]byte{}
	for _, a := range m.args {
		key, v := f.argument(name, a)
		if _, ok := values[key]; !ok {
			keys = append(keys, key)
		}
		values[key] = v
	}
	out := []byte{'{'}
	for _, key := range keys {
		out = append(append(append(append(out, quote(key)...), ':'), values[key]...), ',')
	}
	return []Call{{Name: name, Arguments: string(bytes.TrimSuffix(out, []byte(","))) + "}"}}, true
}

// argument returns the name of an argument and its value.
func (f *functions) argument(name string, a argument) (key string, v []byte) {
	key = strings.TrimSpace(a.key)
	types := f.all[name][key]
	switch kind := strings.TrimSpace(a.kind); {
	case strings.HasPrefix(kind, "type="): // of Kimi K3
		key = attribute.Replace(key)
		if kind == `type="string"` {
			return key, quote(a.value)
		}
		types = nil
	case kind == "true":
		return key, quote(a.value)
	case kind != "":
		types = nil
	}
	return key, value(a.value, types)
}

// value returns the JSON value of a text: a string where the types allow nothing else or the text is no value of theirs. Line breaks
// that set the text apart are not its own.
func value(text string, types []string) []byte {
	if len(text) > 1 && text[0] == '\n' && text[len(text)-1] == '\n' {
		text = text[1 : len(text)-1]
	}
	only := len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return t != "string" })
	if data := bytes.TrimSpace([]byte(text)); !only && len(data) > 0 {
		var packed bytes.Buffer
		if json.Compact(&packed, data) != nil {
			packed.Reset()
			if data, ok := literal(data); ok && data[0] != '"' {
				packed.Write(data)
			}
		}
		if data := packed.Bytes(); len(data) > 0 && allows(types, typeOf(data)) {
			return data
		}
	}
	return quote(text)
}

// allows reports whether types allow a type; no types allow all.
func allows(types []string, t string) bool {
	return len(types) == 0 || slices.Contains(types, t) || t == "number" && slices.Contains(types, "integer")
}

// quote returns a text as a JSON string.
func quote(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string has no error
	return bytes.TrimRight(b.Bytes(), "\n")
}

// gemma builds a call of its name and of Gemma's arguments: {key:<|"|>text<|"|>,other:[1,2]}.
func gemma(f *functions, m *machine) ([]Call, bool) {
	data, ok := literal([]byte(m.fields[fieldText]))
	if !ok {
		return nil, false
	}
	c, ok := f.call(m.fields[fieldName], data)
	return []Call{c}, ok
}

// arguments builds a call of its name and of arguments as Python writes them: (key="text", other=[1, 2]).
func arguments(f *functions, m *machine) ([]Call, bool) {
	p := literals{text: []byte(m.fields[fieldObject])}
	if !p.arguments() || p.more() {
		return nil, false
	}
	c, ok := f.call(m.fields[fieldName], p.out)
	return []Call{c}, ok
}

// pythonic builds the calls of a list as Python writes it: [name(key="text"), other()]; or of a list of JSON.
func pythonic(f *functions, m *machine) (calls []Call, ok bool) {
	data := []byte(m.fields[fieldObject])
	if calls, ok := f.objects(data); ok {
		return calls, true
	}
	p := literals{text: data, at: 1}
	for {
		p.more()
		n := bytes.IndexByte(p.text[p.at:], '(')
		if n < 0 {
			return nil, false
		}
		name := string(p.text[p.at : p.at+n])
		p.at, p.out = p.at+n, nil
		if !p.arguments() {
			return nil, false
		}
		c, ok := f.call(name, p.out)
		if !ok {
			return nil, false
		}
		calls = append(calls, c)
		if p.eat(']') {
			return calls, !p.more()
		}
		if !p.eat(',') {
			return nil, false
		}
	}
}
