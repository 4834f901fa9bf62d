package calls

import (
	"cmp"
	"fmt"
	"strings"
)

// isWord refuses a name that families cannot tell from the marks around it.
func (f *function) isWord() error {
	if strings.ContainsAny(f.Name, " \t\r\n<>\"`[({|=\\") {
		return fmt.Errorf("the name has white space or one of <>\"`[({|=\\, which calls in the form of %s cannot have", f.style.Family)
	}
	return nil
}

// digits are the characters of numbers.
const digits = "0123456789"

// numbered spells calls of Kimi, which have a number.
func numbered(f *function) (Grammar, error) {
	if err := f.isWord(); err != nil {
		return Grammar{}, err
	}
	arguments, err := f.arguments()
	return All(Mark("<|tool_call_begin|>"), Text("functions."+f.Name+":"), Grammar{Kind: Chars, Text: digits, Min: 1, Max: 3},
		Mark("<|tool_call_argument_begin|>"), arguments, Mark("<|tool_call_end|>")), err
}

// withID spells calls of Command R7B.
func withID(f *function) (Grammar, error) {
	arguments, err := f.arguments()
	return All(Text(`{"tool_call_id": "`), Grammar{Kind: Chars, Text: digits, Min: 1, Max: 3}, Text(`", "tool_name": `+quote(f.Name)+`, "parameters": `),
		arguments, Text("}")), err
}

// withWord spells calls of Solar, whose ids are words.
func withWord(f *function) (Grammar, error) {
	if err := f.isWord(); err != nil {
		return Grammar{}, err
	}
	arguments, err := f.arguments()
	id := Grammar{Kind: Chars, Text: digits + "abcdefghijklmnopqrstuvwxyz", Min: 1, Max: 16}
	return All(Mark("<|tool_call:begin|>"), id, Mark("<|tool_call:name|>"), Text(f.Name), Mark("<|tool_call:args|>"), arguments, Mark("<|tool_call:end|>")), err
}

// withCallID spells calls of Mistral with an id between the name and the arguments.
func withCallID(f *function) (Grammar, error) {
	if err := f.isWord(); err != nil {
		return Grammar{}, err
	}
	arguments, err := f.arguments()
	return All(Mark("[TOOL_CALLS]"), Text(f.Name), Maybe(All(Mark("[CALL_ID]"), nineLetters)), Mark("[ARGS]"), arguments), err
}

// nineLetters are the ids of Mistral.
var nineLetters = Grammar{Kind: Chars, Text: digits + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", Min: 9, Max: 9}

// withNine spells calls of the earlier models of Mistral, as objects with an id at their end, which may be left out.
func withNine(f *function) (Grammar, error) {
	arguments, err := f.arguments()
	return All(Text(`{"name": `+quote(f.Name)+nameAndArguments), arguments, Maybe(All(Text(`, "id": "`), nineLetters, Text(`"`))), Text("}")), err
}

// inChannel spells calls of gpt-oss, which name the function before the channel or behind it.
func inChannel(f *function) (Grammar, error) {
	if strings.Trim(f.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/") != "" {
		return Grammar{}, fmt.Errorf("the name has characters that calls in the form of %s cannot have", f.style.Family)
	}
	arguments, err := f.arguments()
	arguments.Without = bodyEnds
	to := " to=functions." + f.Name
	return All(One(All(Mark(channel+"commentary"), Text(to), Text(" ")), All(Text(to), Mark(channel+"commentary "))),
		Maybe(Mark("<|constrain|>")), Text("json"), Mark(message), arguments), err
}

// tags spell a call as XML does: the texts around its name, and around the name and the value of each argument.
type tags struct {
	call1, call2 string // around the name of the function
	key1, text   string // before the name of an argument, and before its value that is a text
	json, value2 string // before other values; behind a value
	behind, end  string // behind each argument; behind the last
}

// call is the spelling of a [Style].
func (t tags) call(f *function) (Grammar, error) {
	if err := f.isWord(); err != nil {
		return Grammar{}, err
	}
	all, err := f.properties()
	if err != nil {
		return Grammar{}, err
	}
	ends := []string{strings.TrimLeft(t.value2, "\n")}
	if t.key1 == "<parameter=" { // answers are read with values that have no end of their own
		ends = append(ends, t.key1, "</tool_call>", "</seed:tool_call>")
	}
	of := []Grammar{Mark(t.call1), Text(f.Name), Mark(t.call2)}
	for _, p := range all {
		if strings.ContainsAny(p.name, "<>\"\n") || p.name != strings.TrimSpace(p.name) {
			if p.loose && !p.required {
				continue
			}
			return Grammar{}, fmt.Errorf("#/properties: the name %q has white space around it or one of <>\", which calls in the form of %s cannot have", clip(p.name), f.style.Family)
		}
		value, isText, err := p.text(ends...)
		if err != nil {
			return Grammar{}, err
		}
		if p.isType("boolean") {
			value = One(Text("true"), Text("false"), Text("True"), Text("False")) // the latter are those of templates
		}
		before := t.text
		if !isText {
			before = t.json
		}
		one := All(Mark(t.key1), Text(p.name), Mark(before), value, Mark(t.value2), Text(t.behind))
		if !p.required {
			one = Maybe(one)
		}
		of = append(of, one)
	}
	return All(append(of, Mark(t.end))...), nil
}

// kimi spells calls of Kimi K3, whose tags are of special tokens, and whose arguments say their types.
func kimi(f *function) (Grammar, error) {
	if err := f.isWord(); err != nil {
		return Grammar{}, err
	}
	all, err := f.properties()
	if err != nil {
		return Grammar{}, err
	}
	attribute := strings.NewReplacer("&", "&amp;", `"`, "&quot;")
	number := Grammar{Kind: Chars, Text: digits, Min: 1, Max: 3}
	of := []Grammar{Mark(`<|open|>call tool="`), Text(attribute.Replace(f.Name) + `" index="`), number, Mark(`"<|sep|>`)}
	for _, p := range all {
		const end = "<|close|>argument<|sep|>"
		value, isText, err := p.text(end)
		if err != nil {
			return Grammar{}, err
		}
		kind := "string"
		if !isText {
			kind = p.kind()
		}
		one := All(Mark(`<|open|>argument key="`), Text(attribute.Replace(p.name)+`" type="`+kind), Mark(`"<|sep|>`), value, Mark(end))
		if !p.required {
			one = Maybe(one)
		}
		of = append(of, one)
	}
	return All(append(of, Mark("<|close|>call<|sep|>"))...), nil
}

// kind returns the type of a value that is no text, as Kimi K3 names it.
func (p *property) kind() string {
	known := map[byte]string{'{': "object", '[': "array", 't': "boolean", 'f': "boolean", 'n': "null"}
	switch name := strings.Trim(string(p.keyword("type")), `"`); {
	case len(p.given) > 0:
		return cmp.Or(known[p.given[0]], "number")
	case name == "integer" || name == "number":
		return "number"
	case name == "boolean" || name == "null" || name == "array":
		return name
	}
	return "object"
}

// dsml are the tags of DeepSeek from V3.2 on.
var dsml = tags{`<｜DSML｜invoke name="`, "\">\n", `<｜DSML｜parameter name="`, `" string="true">`, `" string="false">`, "</｜DSML｜parameter>", "\n", "</｜DSML｜invoke>\n"}

// isName reports whether a name of an argument can be written as it is.
func isName(name string) bool {
	for i := range len(name) {
		c := name[i] | 0x20
		if name[i] != '_' && (c < 'a' || c > 'z') && (i == 0 || name[i] < '0' || name[i] > '9') {
			return false
		}
	}
	return name != ""
}

// python spells calls as Python does: name(key="text", other=[1, 2]).
func python(f *function) (Grammar, error) {
	if err := f.isWord(); err != nil {
		return Grammar{}, err
	}
	if strings.ContainsAny(f.Name, ",)]:}") {
		return Grammar{}, fmt.Errorf("the name has one of ,)]:}, which calls in the form of %s cannot have", f.style.Family)
	}
	all, err := f.properties()
	var items []item
	for _, p := range all {
		items = append(items, item{All(Text(p.key()+"="), p.literal()), p.required})
	}
	return All(Text(f.Name+"("), listed(items, ", "), Text(")")), err
}

// key returns the name of an argument as it is, or quoted.
func (p *property) key() string {
	if isName(p.name) {
		return p.name
	}
	return quote(p.name)
}

// literal returns the grammar of a value as Python writes it, which is as JSON does but for true and false alone.
func (p *property) literal() Grammar {
	if p.given != nil {
		return Text(pythonic(p.given))
	}
	if p.input != nil {
		return p.input.grammar(HeldString)
	}
	switch {
	case p.isType("boolean"):
		return One(Text("True"), Text("False"))
	case p.isType("string"): // single quotes are those of templates
		return One(Value(p.schema), All(Text("'"), Any("'", `\`, "\n", "\r"), Text("'")))
	}
	return Value(p.schema)
}

// The marks of Gemma.
const (
	gemmaQuote = `<|"|>`
	gemmaEnd   = "<tool_call|>"
)

// gemma spells calls of Gemma 4: call:name{key:<|"|>text<|"|>,other:[1,2]}.
func gemma(f *function) (Grammar, error) {
	if err := f.isWord(); err != nil {
		return Grammar{}, err
	}
	all, err := f.properties()
	if err != nil {
		return Grammar{}, err
	}
	var items []item
	for _, p := range all {
		value, isText, err := p.text(gemmaQuote)
		switch {
		case err != nil:
			return Grammar{}, err
		case isText:
			for i := range value.Of {
				if strings.Contains(value.Of[i].Text, gemmaEnd) {
					return Grammar{}, fmt.Errorf("#/properties/%s/enum: a text has %s, which calls in the form of Gemma 4 cannot have", clip(p.name), gemmaEnd)
				}
			}
			if value.Kind == Free || value.Kind == Raw || value.Kind == Held {
				value.Without = append(value.Without, gemmaEnd)
			}
			value = All(Mark(gemmaQuote), value, Mark(gemmaQuote))
		default:
			value.Without = []string{gemmaEnd}
		}
		items = append(items, item{All(Text(p.key()+":"), value), p.required})
	}
	return All(Mark("<|tool_call>"), Text("call:"+f.Name+"{"), listed(items, ","), Text("}"), Mark(gemmaEnd)), nil
}

// item is an element of a list, which may be left out where it is not required.
type item struct {
	Grammar
	required bool
}

// listed returns the grammar of a list of items in their order, with a text between those that are there.
func listed(items []item, between string) Grammar {
	behind := func(rest []item) Grammar { // of what follows an item
		var of []Grammar
		for _, i := range rest {
			one := All(Text(between), i.Grammar)
			if !i.required {
				one = Maybe(one)
			}
			of = append(of, one)
		}
		return All(of...)
	}
	var first []Grammar // which item is the first that is there
	for i, it := range items {
		first = append(first, All(it.Grammar, behind(items[i+1:])))
		if it.required {
			return One(first...)
		}
	}
	return One(append(first, All())...)
}
