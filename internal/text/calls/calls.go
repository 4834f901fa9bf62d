// Package calls says how families of models write calls of tools: as grammars that hold a model to calls that exist, with arguments
// that keep to their schemas. What a grammar allows, package answer reads back as the same calls.
//
// A [Style] is the way of one family; styles are one table, in styles.go. A [Grammar] is a tree that says nothing of tokens or
// automata: the engine of constraints compiles it.
package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Kind says what a [Grammar] stands for.
type Kind uint8

// The kinds of grammars.
const (
	Literal    Kind = iota // the text
	Marker                 // the text, whose special tokens may be written as tokens or as text
	Space                  // white space, as much as Max bytes of it, or none
	Free                   // any text, the empty one among them, without those of Without
	Raw                    // a string of the schema, as it is without quotes and escapes; it does not begin and end with a line break
	Chars                  // from Min to Max of the characters of the text
	JSON                   // a value that keeps to the schema
	Seq                    // the parts, one after the other
	Alt                    // one of the parts
	Repeat                 // the part, from Min to Max times
	Held                   // a text that keeps to Text, a grammar or an expression
	HeldString             // the same as a JSON string
)

// Grammar is a set of texts. The zero value has the empty text alone. It does not change.
type Grammar struct {
	Kind     Kind
	Text     string
	Syntax   string          // of Held and HeldString: lark or regex
	Schema   json.RawMessage // of JSON and Raw
	Without  []string        // of Free, Raw and Held: texts that do not occur; of JSON: texts that no string of the value has
	Of       []Grammar       // of Seq, Alt and Repeat
	Min, Max int             // Max < 0: no bound
	// NotFirst are the characters that do not begin a Free text, behind white space, and NotLast those that do not end it.
	NotFirst, NotLast string
	// Name is the function whose call it is, or "": for errors of schemas.
	Name string
}

// Text returns the grammar of a text.
func Text(text string) Grammar { return Grammar{Kind: Literal, Text: text} }

// Mark returns the grammar of a text that may be written with special tokens.
func Mark(text string) Grammar { return Grammar{Kind: Marker, Text: text} }

// The functions below are not inlined: copies of a Grammar in each place that calls them would make the program 80 KB larger.

// Value returns the grammar of the JSON values that keep to a schema.
//
//go:noinline
func Value(schema json.RawMessage) Grammar { return Grammar{Kind: JSON, Schema: schema} }

// Any returns the grammar of all texts that have none of the given texts in them.
//
//go:noinline
func Any(without ...string) Grammar { return Grammar{Kind: Free, Without: without} }

// All returns the grammar of its parts, one after the other.
//
//go:noinline
func All(of ...Grammar) Grammar { return Grammar{Kind: Seq, Of: of} }

// One returns the grammar of one of its parts.
//
//go:noinline
func One(of ...Grammar) Grammar { return Grammar{Kind: Alt, Of: of} }

// Maybe returns the grammar of a part that may be left out.
//
//go:noinline
func Maybe(g Grammar) Grammar { return Times(g, 0, 1) }

// Times returns the grammar of a part from least to most times; most < 0: as often as the model likes.
//
//go:noinline
func Times(g Grammar, least, most int) Grammar {
	return Grammar{Kind: Repeat, Of: []Grammar{g}, Min: least, Max: most}
}

// blanks returns the grammar of a little white space.
//
//go:noinline
func blanks() Grammar { return Grammar{Kind: Space, Max: 4} }

// Function is a tool that may be called.
type Function struct {
	Name       string
	Parameters json.RawMessage // the schema of its arguments; nil: it has none
	// Loose leaves to the tool what the family's form cannot be held to. Else that is an error.
	Loose bool
	Input *Input // what its one argument, the text input, is held to; nil: nothing
}

// Input is the form of the text that a tool takes.
type Input struct {
	Syntax     string `json:"syntax"` // lark or regex
	Definition string `json:"definition"`
}

// maxName is the longest name of a function or of an argument that answers are read with, in bytes.
const maxName = 256

// Functions returns the functions of tools in the form of OpenAI's API, of chat or of responses.
func Functions(tools []json.RawMessage) (all []Function, err error) {
	type function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
		Format     *Input          `json:"format"`
	}
	for i, data := range tools {
		var tool struct {
			function
			Function function `json:"function"`
		}
		if err := json.Unmarshal(data, &tool); err != nil {
			return nil, fmt.Errorf("calls: tools[%d]: %w", i, err)
		}
		if tool.Function.Name == "" {
			tool.Function = tool.function
		}
		if n := len(tool.Function.Name); n == 0 || n > maxName {
			return nil, fmt.Errorf("calls: tools[%d]: a name of %d bytes; it must have from 1 to %d", i, n, maxName)
		}
		all = append(all, Function{Name: tool.Function.Name, Parameters: tool.Function.Parameters, Input: tool.Function.Format})
	}
	return all, nil
}

// quote returns a text as a JSON string.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string has no error
	return strings.TrimRight(b.String(), "\n")
}
