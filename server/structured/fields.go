// Package structured reads the fields by which requests constrain their answers: those of OpenAI, Anthropic, ollama, llama.cpp, vLLM
// and SGLang. Whatever the field is called, it becomes one [Form].
package structured

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"grove/internal/text/calls"
	"grove/internal/text/token"
	"grove/server/wire"
)

// Kind says what a [Form] is written in.
type Kind uint8

// The kinds of forms.
const (
	Schema Kind = iota // a JSON Schema
	Regex              // a regular expression
	Choice             // one of some texts
	Lark               // a grammar in Lark's notation
	GBNF               // a grammar in llama.cpp's notation
	Tree               // a grammar of calls or of structural tags
)

// Form is the form that a request asks of its answers.
type Form struct {
	Field      string // that asks for it, for errors
	Kind       Kind
	Text       string          // of Regex, Lark and GBNF
	Schema     json.RawMessage // of Schema
	Choices    []string
	Tree       calls.Grammar
	Whitespace Whitespace
	Triggers   []string   // the form holds from the first of these texts on; nil: from the beginning
	Tokens     []token.ID // the same, of tokens
	Thoughts   bool       // thoughts may come before it where the model marks them; those of a Tree are in it
}

// Whitespace says what may stand between the parts of JSON.
type Whitespace uint8

// The ways of white space.
const (
	Bounded  Whitespace = iota // nothing, a blank, or line ends and an indent
	Compact                    // nothing
	Spaced                     // a blank behind each comma and colon
	AnySpace                   // whatever JSON allows
)

// anyObject is the schema of all objects.
const anyObject = `{"type":"object"}`

// Fields are the fields of llama.cpp, vLLM and SGLang, which all routes that generate have.
type Fields struct {
	Grammar   string      `json:"grammar" bytes:"1048576"`
	Lazy      bool        `json:"grammar_lazy"`
	Triggers  []trigger   `json:"grammar_triggers" most:"64"`
	Preserved []preserved `json:"preserved_tokens" most:"1024" bytes:"1024"` // llama.cpp shows them as text; markers of calls are read either way

	JSONSchema document `json:"json_schema"`

	GuidedJSON    document `json:"guided_json"`
	GuidedRegex   string   `json:"guided_regex" bytes:"65536"`
	GuidedChoice  []string `json:"guided_choice" most:"16384" bytes:"65536"`
	GuidedGrammar string   `json:"guided_grammar" bytes:"1048576"`
	GuidedObject  bool     `json:"guided_json_object"`
	GuidedSpace   *string  `json:"guided_whitespace_pattern" bytes:"256"`
	Outputs       *outputs `json:"structured_outputs"`

	Regex string   `json:"regex" bytes:"65536"`
	EBNF  string   `json:"ebnf" bytes:"1048576"`
	Tag   document `json:"structural_tag"`
}

// outputs are vLLM's structured_outputs.
type outputs struct {
	JSON    document `json:"json"`
	Regex   string   `json:"regex" bytes:"65536"`
	Choice  []string `json:"choice" most:"16384" bytes:"65536"`
	Grammar string   `json:"grammar" bytes:"1048576"`
	Object  bool     `json:"json_object"`
	Tag     document `json:"structural_tag"`
	Space   *string  `json:"whitespace_pattern" bytes:"256"`

	NoSpace  bool `json:"disable_any_whitespace"`
	NoOthers bool `json:"disable_additional_properties"`
	NoOther  bool `json:"disable_fallback"` // there is none
}

// trigger begins a lazy grammar of llama.cpp.
type trigger struct {
	Kind  kindName `json:"type"`
	Value string   `json:"value" bytes:"4096"`
	Token *int64   `json:"token"`
}

// kindName is the type of a trigger, a number or a word.
type kindName string

// ReadJSON implements [wire.Own].
func (k *kindName) ReadJSON(r *wire.Reader) error {
	raw, err := r.Raw()
	*k = kindName(strings.Trim(string(raw), `"`))
	return err
}

// preserved is a token or its text.
type preserved struct{}

// ReadJSON implements [wire.Own].
func (*preserved) ReadJSON(r *wire.Reader) error {
	switch r.Kind() {
	case jsontext.KindString:
		_, err := r.Text()
		return err
	case jsontext.KindNumber:
		_, err := r.Number()
		return err
	}
	return r.Refuse("it must be a token's id or its text")
}

// document is JSON, which may be written as a text; nil: there is none. {} and "" are none, too.
type document json.RawMessage

// ReadJSON implements [wire.Own].
func (d *document) ReadJSON(r *wire.Reader) error {
	if r.Kind() != jsontext.KindString {
		raw, err := r.Raw()
		*d = document(raw)
		return err
	}
	text, err := r.Text()
	if err != nil || strings.TrimSpace(text) == "" {
		return err
	}
	if !jsontext.Value(text).IsValid() {
		return r.Refuse("the text is not JSON")
	}
	*d = document(text)
	return nil
}

// given reports whether there is a document that is more than {}.
func (d document) given() bool {
	return len(d) > 0 && strings.Join(strings.Fields(string(d)), "") != "{}"
}

// Form returns the form that the fields and a format ask for; nil: none. Errors: two fields that ask for one each, and what is said in
// the wrong way.
func (f *Fields) Form(format *Form) (*Form, error) {
	all := f.forms()
	if format != nil {
		all = append([]Form{*format}, all...)
	}
	if len(all) > 1 {
		return nil, wire.Refuse(all[1].Field, "%s: %s constrains the answer, too; leave one of them out", all[1].Field, all[0].Field)
	}
	if len(all) == 0 {
		if f.Lazy {
			return nil, wire.Refuse("grammar_lazy", "grammar_lazy: there is no grammar")
		}
		return nil, nil
	}
	form := &all[0]
	if err := f.space(form); err != nil {
		return nil, err
	}
	if form.Kind == Tree && format == nil {
		var err error
		if form.Tree, err = tagged(form.Field, form.Schema); err != nil {
			return nil, err
		}
	}
	return form, f.lazy(form)
}

// forms returns a form of each field that is given.
func (f *Fields) forms() (all []Form) {
	add := func(given bool, form Form) {
		if given {
			all = append(all, form)
		}
	}
	schema := func(field string, d document) {
		add(d.given(), Form{Field: field, Kind: Schema, Schema: json.RawMessage(d)})
	}
	regex := func(field, text string) { add(text != "", Form{Field: field, Kind: Regex, Text: text}) }
	grammar := func(field, text string) {
		add(strings.TrimSpace(text) != "", Form{Field: field, Kind: notation(text), Text: text})
	}
	choice := func(field string, texts []string) {
		add(texts != nil, Form{Field: field, Kind: Choice, Choices: texts})
	}
	object := func(field string, on bool) {
		add(on, Form{Field: field, Kind: Schema, Schema: []byte(anyObject)})
	}
	tag := func(field string, d document) {
		add(d.given(), Form{Field: field, Kind: Tree, Schema: json.RawMessage(d)})
	}
	grammar("grammar", f.Grammar)
	schema("json_schema", f.JSONSchema)
	schema("guided_json", f.GuidedJSON)
	regex("guided_regex", f.GuidedRegex)
	choice("guided_choice", f.GuidedChoice)
	grammar("guided_grammar", f.GuidedGrammar)
	object("guided_json_object", f.GuidedObject)
	regex("regex", f.Regex)
	grammar("ebnf", f.EBNF)
	tag("structural_tag", f.Tag)
	if o := f.Outputs; o != nil {
		schema("structured_outputs.json", o.JSON)
		regex("structured_outputs.regex", o.Regex)
		choice("structured_outputs.choice", o.Choice)
		grammar("structured_outputs.grammar", o.Grammar)
		object("structured_outputs.json_object", o.Object)
		tag("structured_outputs.structural_tag", o.Tag)
	}
	return all
}

// notation returns the notation of a grammar: rules of Lark's have a colon, those of llama.cpp's ::=.
func notation(text string) Kind {
	if strings.HasPrefix(strings.TrimSpace(text), "%llguidance") || !strings.Contains(text, "::=") {
		return Lark
	}
	return GBNF
}

// spaces are the patterns of white space that are known, as vLLM's clients write them.
var spaces = map[string]Whitespace{
	"": Compact, `[ \t\r\n]*`: AnySpace, `[ \n\r\t]*`: AnySpace, `[\n\t ]*`: AnySpace, `[ \n\t]*`: AnySpace, `\s*`: AnySpace,
}

// space sets the white space of a form.
func (f *Fields) space(form *Form) error {
	field, pattern := "guided_whitespace_pattern", f.GuidedSpace
	if o := f.Outputs; o != nil {
		switch {
		case o.NoOthers:
			return wire.Unsupported("structured_outputs.disable_additional_properties", "write additionalProperties: false into the schema")
		case o.NoSpace:
			form.Whitespace = Spaced
		case o.Space != nil:
			field, pattern = "structured_outputs.whitespace_pattern", o.Space
		}
	}
	if pattern == nil {
		return nil
	}
	way, known := spaces[*pattern]
	if !known {
		return wire.Unsupported(field, fmt.Sprintf("%q is not known; it must be empty (no white space) or [ \\t\\r\\n]* (any)", wire.Clip(*pattern)))
	}
	form.Whitespace = way
	return nil
}

// lazy sets the triggers of a form.
func (f *Fields) lazy(form *Form) error {
	switch {
	case !f.Lazy && len(f.Triggers) == 0:
		return nil
	case !f.Lazy:
		return wire.Refuse("grammar_triggers", "grammar_triggers: grammar_lazy is not true")
	case form.Field != "grammar":
		return wire.Refuse("grammar_lazy", "grammar_lazy: it belongs to grammar, and the answer is constrained by %s", form.Field)
	case len(f.Triggers) == 0:
		return wire.Refuse("grammar_triggers", "grammar_triggers: a lazy grammar has one or more")
	}
	for i, t := range f.Triggers {
		field := fmt.Sprintf("grammar_triggers[%d]", i)
		switch {
		case (t.Kind == "0" || t.Kind == "token") && t.Token != nil:
			form.Tokens = append(form.Tokens, token.ID(*t.Token))
		case (t.Kind == "0" || t.Kind == "token" || t.Kind == "1" || t.Kind == "word") && t.Value != "":
			form.Triggers = append(form.Triggers, t.Value)
		case t.Kind == "2" || t.Kind == "3" || strings.HasPrefix(string(t.Kind), "pattern"):
			return wire.Unsupported(field, "patterns are not supported; give words (type 1) or tokens (type 0)")
		default:
			return wire.Refuse(field, "%s: a trigger has a type, 0 (token) or 1 (word), and a value", field)
		}
	}
	return nil
}
