package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// writer writes lists and dicts as text: repr of Python, or JSON.
type writer struct {
	s            *state
	out          Text
	comma, colon Text
	indent       Text
	lines        bool             // each element on a line of its own
	scalar       func(Value) Text // text of a value that is neither list nor dict
	json         bool             // tuples are lists, keys are strings
	// text appends a text; nil: scalar makes it. A long one is not copied twice.
	text func(out, t Text) Text
}

func (w *writer) add(t Text) { w.out = w.s.extend(w.out, t) }

func (w *writer) value(v Value, depth int) {
	w.s.enter()
	defer w.s.leave()
	switch v := v.(type) {
	case *List:
		if v.once {
			w.s.fail("a generator has no text and no JSON; the filter list makes a list of it")
		}
		open, end := "[", "]"
		if v.Tuple && !w.json {
			open, end = "(", ")"
			if len(v.Items) == 1 {
				end = ",)"
			}
		}
		w.elements(open, end, len(v.Items), depth, func(i int) { w.value(v.Items[i], depth+1) })
	case *Map:
		w.elements("{", "}", v.Len(), depth, func(i int) {
			k := w.scalar(v.keys[i])
			if w.json && !isA[Text](v.keys[i]) { // JSON has strings as keys only
				k = slices.Concat(Text{'"'}, k, Text{'"'})
			}
			w.add(k)
			w.add(w.colon)
			w.value(v.values[i], depth+1)
		})
	case Text:
		if w.text == nil {
			w.add(w.scalar(v))
			return
		}
		before := len(w.out)
		w.out = w.text(w.out, v)
		w.s.copied(len(w.out) - before)
	default:
		w.add(w.scalar(v))
	}
}

func (w *writer) elements(open, end string, n, depth int, element func(i int)) {
	line := func(depth int) {
		if w.lines && n > 0 {
			w.add(slices.Concat(Text{'\n'}, w.s.repeat(w.indent, int64(depth))))
		}
	}
	w.add(Text(open))
	for i := range n {
		if i > 0 {
			w.add(w.comma)
		}
		line(depth + 1)
		element(i)
	}
	line(depth)
	w.add(Text(end))
}

// toJSON is the filter tojson: json.dumps of Python, without escapes for characters beyond ASCII.
func toJSON(s *state, v Value, a []Value) Value {
	w := &writer{s: s, comma: Text(", "), colon: Text(": "), json: true}
	w.scalar = func(v Value) Text { return s.jsonScalar(v, a[1].(bool)) }
	w.text = func(out, t Text) Text { return s.appendJSON(out, t, a[1].(bool)) }
	if a[0] != nil {
		w.lines, w.comma = true, Text(",")
		w.indent = s.repeat(Text(" "), s.argument("tojson", "indent", a[0], int64(0)).(int64))
	}
	if a[2] != nil {
		l, ok := a[2].(*List)
		if !ok || len(l.Items) != 2 || !isA[Text](l.Items[0]) || !isA[Text](l.Items[1]) {
			s.fail("tojson: separators: %s; it needs two strings", typeName(a[2]))
		}
		w.comma, w.colon = l.Items[0].(Text), l.Items[1].(Text)
	}
	w.value(v, 0)
	return w.out
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`,
}

// appendJSON appends a text as JSON.
func (s *state) appendJSON(out, t Text, ascii bool) Text {
	s.copied(2 * len(t))
	return t.appendEscaped(out, '"', func(c rune) string {
		short, ok := jsonEscapes[c]
		switch {
		case ok:
			return short
		case c < ' ' || ascii && c > '~' && c < 0x10000:
			return fmt.Sprintf(`\u%04x`, c)
		case ascii && c >= 0x10000:
			return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+(c-0x10000)>>10, 0xdc00+(c-0x10000)&0x3ff)
		}
		return ""
	})
}

func (s *state) jsonScalar(v Value, ascii bool) Text {
	switch v := v.(type) {
	case nil:
		return Text("null")
	case bool:
		return Text(strconv.FormatBool(v))
	case Text:
		return s.appendJSON(nil, v, ascii)
	case int64, float64:
		return s.repr(v)
	}
	s.fail("tojson: %s: it has no JSON; give None, bool, int, float, str, list or dict", typeName(v))
	return nil
}

// maxJSONDepth bounds the nesting of JSON from outside.
const maxJSONDepth = 200

// FromJSON reads one JSON value. Its strings and keys are [From] a source, [Input] if it is -1; dicts keep the order of their keys.
// Errors: JSON that is not valid or nests more than 200 values, ints beyond 64 bits, floats out of range.
func FromJSON(source int, data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := readJSON(d, source, 0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("JSON: data follow the value; give one value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, source, depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("more than %d values nested", maxJSONDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case string:
		return From(source, t), nil
	case json.Number:
		if strings.ContainsAny(t.String(), ".eE") {
			f, err := t.Float64()
			return f, err
		}
		i, err := t.Int64()
		return i, err
	case json.Delim:
		list, dict := &List{}, &Map{}
		for d.More() {
			var key json.Token
			if t == '{' {
				if key, err = d.Token(); err != nil {
					return nil, err
				}
			}
			v, err := readJSON(d, source, depth+1)
			if err != nil {
				return nil, err
			}
			if t == '{' {
				dict.Set(From(source, key.(string)), v)
			} else {
				list.Items = append(list.Items, v)
			}
		}
		_, err := d.Token()
		if t == '{' {
			return dict, err
		}
		return list, err
	}
	return t, nil // nil or bool
}
