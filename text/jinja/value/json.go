package value

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

// JSON is the filter tojson: json.dumps of Python, without escapes for what is not ASCII.
func (s *Steps) JSON(v Value, a Args) Text {
	b := a.Bind(s, "tojson", "indent", "ensure_ascii", "separators", "sort_keys")
	w := jsonWriter{s: s, comma: Text(", "), colon: Text(": "), ascii: Truth(Given(b[1], false)), sorted: Truth(Given(b[3], false))}
	switch indent := Given(b[0], nil).(type) {
	case nil:
	case Text:
		w.indent = indent
		w.lines = true
	default:
		w.indent, w.lines = s.RepeatText(Text(" "), s.IntArg("tojson", indent, 0)), true
	}
	if w.lines {
		w.comma = Text(",")
	}
	if l, ok := Given(b[2], nil).(*List); ok && len(l.Items) == 2 {
		w.comma, w.colon = s.TextArg("tojson", l.Items[0], ""), s.TextArg("tojson", l.Items[1], "")
	}
	w.value(v, 0)
	return w.out
}

type jsonWriter struct {
	s            *Steps
	out          Text
	comma, colon Text
	indent       Text
	lines        bool // each element on a line of its own
	ascii        bool
	sorted       bool
}

func (w *jsonWriter) add(t Text) { w.out = w.s.Extend(w.out, t) }

func (w *jsonWriter) value(v Value, depth int) {
	w.s.Enter()
	defer w.s.Leave()
	switch v := v.(type) {
	case nil:
		w.add(Text("null"))
	case bool:
		w.add(Text(strconv.FormatBool(v)))
	case int64:
		w.add(Text(strconv.FormatInt(v, 10)))
	case float64:
		w.add(Text(formatFloat(v, "NaN", "Infinity")))
	case Text:
		w.str(v)
	case *List:
		w.elements('[', ']', len(v.Items), depth, func(i int) { w.value(v.Items[i], depth+1) })
	case *Map:
		at := make([]int, v.Len())
		for i := range at {
			at[i] = i
		}
		if w.sorted {
			slices.SortStableFunc(at, func(i, j int) int { return w.s.Compare(v.keys[i], v.keys[j]) })
		}
		w.elements('{', '}', v.Len(), depth, func(i int) {
			w.key(v.keys[at[i]])
			w.add(w.colon)
			w.value(v.values[at[i]], depth+1)
		})
	default:
		w.s.Fail("tojson of %s", TypeName(v))
	}
}

func (w *jsonWriter) elements(open, end rune, n, depth int, element func(i int)) {
	w.out = append(w.out, open)
	for i := range n {
		if i > 0 {
			w.add(w.comma)
		}
		w.newLine(depth + 1)
		element(i)
	}
	if n > 0 {
		w.newLine(depth)
	}
	w.out = append(w.out, end)
}

func (w *jsonWriter) newLine(depth int) {
	if w.lines {
		w.out = append(w.out, '\n')
		w.add(w.s.RepeatText(w.indent, int64(depth)))
	}
}

// key writes a key, which JSON has as strings only.
func (w *jsonWriter) key(k Value) {
	switch k := k.(type) {
	case Text:
		w.str(k)
	default:
		w.out = append(w.out, '"')
		w.value(k, 0)
		w.out = append(w.out, '"')
	}
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`,
}

func (w *jsonWriter) str(t Text) {
	w.s.Copied(2 * len(t))
	w.out = append(w.out, '"')
	for _, r := range t {
		c := r &^ marked
		escaped, ok := jsonEscapes[c]
		switch {
		case !ok && (c < ' ' || w.ascii && c > '~' && c < 0x10000):
			escaped, ok = fmt.Sprintf(`\u%04x`, c), true
		case !ok && w.ascii && c >= 0x10000:
			escaped, ok = fmt.Sprintf(`\u%04x\u%04x`, 0xd800+(c-0x10000)>>10, 0xdc00+(c-0x10000)&0x3ff), true
		}
		if !ok {
			w.out = append(w.out, r)
		}
		for _, e := range escaped {
			w.out = append(w.out, e|r&marked)
		}
	}
	w.out = append(w.out, '"')
}

// maxJSONDepth bounds what JSON from outside may nest.
const maxJSONDepth = 200

// FromJSON reads one JSON value. Its strings, keys among them, count as input; dictionaries keep the order
// of their keys.
func FromJSON(data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("jinja: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("jinja: JSON goes on behind its value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, errors.New("JSON is nested too deeply")
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case string:
		return Input(t), nil
	case json.Number:
		return readNumber(t.String())
	case json.Delim:
		if t == '[' {
			return readArray(d, depth)
		}
		return readObject(d, depth)
	}
	return t, nil // nil or bool
}

func readNumber(text string) (Value, error) {
	if !strings.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
		return nil, fmt.Errorf("the number %.40s does not fit 64 bits", text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %.40s is out of range", text)
	}
	return f, nil
}

func readArray(d *json.Decoder, depth int) (Value, error) {
	l := &List{}
	for d.More() {
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.Token()
	return l, err
}

func readObject(d *json.Decoder, depth int) (Value, error) {
	m := &Map{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		m.Set(Input(key.(string)), v)
	}
	_, err := d.Token()
	return m, err
}
