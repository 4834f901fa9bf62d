package calls

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Call is a call that has been made.
type Call struct {
	Name      string
	Arguments json.RawMessage // an object
}

// Piece is a part of calls as a family writes them.
type Piece struct {
	Text string
	Mark bool // the text may be special tokens; else it is none
	Call int  // the number of the call that it is of
}

// IsFamily reports whether the style is that of a family, and not the one of models that are asked for calls in the prompt.
func (s *Style) IsFamily() bool { return s != hermes }

// Write returns calls as the family writes them. Errors: calls that its form cannot have.
func (s *Style) Write(all []Call) (pieces []Piece, err error) {
	w := writer{pieces: []Piece{{Mark: true}}}
	w.write(s.open)
	for i, c := range all {
		if i > 0 {
			w.write(s.between)
		}
		if len(bytes.TrimSpace(c.Arguments)) == 0 || bytes.TrimSpace(c.Arguments)[0] != '{' {
			return nil, fmt.Errorf("calls: function %q: its arguments are no object", clip(c.Name))
		}
		w.number = i
		g, err := s.call(&function{Function: Function{Name: c.Name}, style: s, given: c.Arguments})
		if err != nil {
			return nil, fmt.Errorf("calls: function %q: %w", clip(c.Name), err)
		}
		w.write(g)
	}
	w.write(s.close)
	return w.pieces, nil
}

// writer writes the one text of a grammar; of alternatives the first, of repetitions the least.
type writer struct {
	pieces []Piece
	number int // of the call, for its id
}

func (w *writer) write(g Grammar) {
	switch g.Kind {
	case Literal, Marker:
		if last := &w.pieces[len(w.pieces)-1]; last.Mark == (g.Kind == Marker) && (last.Mark || last.Call == w.number) {
			last.Text += g.Text
		} else if g.Text != "" {
			w.pieces = append(w.pieces, Piece{g.Text, g.Kind == Marker, w.number})
		}
	case Chars: // an id
		id := fmt.Sprintf("%0*d", g.Min, w.number)
		w.write(Text(id))
	case Seq:
		for _, p := range g.Of {
			w.write(p)
		}
	case Alt:
		w.write(g.Of[0])
	case Repeat:
		for range g.Min {
			w.write(g.Of[0])
		}
	}
}

// errEnd refuses a text that would end the value that it is.
var errEnd = errors.New("an argument has the mark that ends it")

// spaced returns a JSON value as Python writes it: with a space behind commas and colons.
func spaced(value json.RawMessage) string {
	v := jsontext.Value(bytes.Clone(value))
	if v.Format(jsontext.SpaceAfterComma(true), jsontext.SpaceAfterColon(true), jsontext.EscapeForHTML(false)) != nil {
		return string(value)
	}
	return string(v)
}

// written returns the properties of arguments that are known.
func (f *function) written() (list []property, err error) {
	all, err := members(f.given)
	for _, m := range all {
		list = append(list, property{name: m.name, given: m.value, required: true})
	}
	return list, err
}

// raw returns the grammar of a known value: of a text without quotes, of others JSON.
func (p *property) raw(ends []string) (g Grammar, isText bool, err error) {
	text := ""
	if isText = json.Unmarshal(p.given, &text) == nil && string(p.given) != "null"; !isText {
		text = spaced(p.given)
	}
	for _, end := range ends {
		if strings.Contains(text, end) {
			return g, isText, errEnd
		}
	}
	return Text(text), isText, nil
}

// pythonic returns a JSON value as Python writes it.
func pythonic(value json.RawMessage) string {
	value = bytes.TrimSpace(value)
	word := map[string]string{"true": "True", "false": "False", "null": "None"}[string(value)]
	var list []string
	switch {
	case word != "":
		return word
	case len(value) > 0 && value[0] == '[':
		var items []json.RawMessage
		_ = json.Unmarshal(value, &items) // read before
		for _, v := range items {
			list = append(list, pythonic(v))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case len(value) > 0 && value[0] == '{':
		all, _ := members(json.RawMessage(value)) // read before
		for _, m := range all {
			list = append(list, quote(m.name)+": "+pythonic(m.value))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	return spaced(json.RawMessage(value))
}
