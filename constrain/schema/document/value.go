package document

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is a JSON value of the schema's text. Members keep their order.
type Value struct {
	Kind   jsontext.Kind
	Text   string // of a string: decoded; of a number: as written
	Names  []string
	Items  []*Value // elements, or the members' values beside names
	index  map[string]int
	parent *Value
	at     int       // the place in parent.items
	res    *resource // of a schema: the resource it belongs to
}

// Get returns the member of that name, or nil.
func (v *Value) Get(name string) *Value {
	if v.Kind != '{' {
		return nil
	}
	if v.index == nil && len(v.Names) > 8 {
		v.index = make(map[string]int, len(v.Names))
		for i, n := range v.Names {
			v.index[n] = i
		}
	}
	if v.index != nil {
		if i, ok := v.index[name]; ok {
			return v.Items[i]
		}
		return nil
	}
	for i, n := range v.Names {
		if n == name {
			return v.Items[i]
		}
	}
	return nil
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// Path returns the JSON pointer of the value, behind #.
func (v *Value) Path() string {
	if v == nil {
		return "#"
	}
	var parts []string
	for ; v.parent != nil; v = v.parent {
		if v.parent.Kind == '{' {
			parts = append(parts, escapePointer.Replace(v.parent.Names[v.at]))
		} else {
			parts = append(parts, strconv.Itoa(v.at))
		}
	}
	var b strings.Builder
	b.WriteString("#")
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString("/")
		b.WriteString(Clip(parts[i]))
	}
	return b.String()
}

// Clip shortens a text for an error.
func Clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// Parse reads a JSON text of at most maxBytes bytes and maxDepth levels. Names that stand twice in an object are an error, as is what follows the value.
func Parse(text []byte, maxBytes, maxDepth int) (*Value, error) {
	if len(text) > maxBytes {
		return nil, &Error{Path: "#", Reason: "the schema has " + strconv.Itoa(len(text)) + " bytes, more than " + strconv.Itoa(maxBytes), kind: ErrBudget}
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	v, err := parseValue(d, maxDepth)
	if err == nil {
		var after jsontext.Token
		switch after, err = d.ReadToken(); {
		case errors.Is(err, io.EOF):
			return v, nil
		case err == nil:
			err = errors.New("a second value follows: " + after.Kind().String())
		}
	}
	var own *Error
	if errors.As(err, &own) {
		return nil, own
	}
	return nil, &Error{Path: "#", Reason: "no JSON: " + Clip(err.Error()), kind: ErrInvalid}
}

// parseValue reads the next value, of at most depth levels.
func parseValue(d *jsontext.Decoder, depth int) (*Value, error) {
	if depth == 0 {
		return nil, &Error{Path: "#" + string(d.StackPointer()), Reason: "nested too deeply", kind: ErrBudget}
	}
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	v := &Value{Kind: t.Kind()}
	switch v.Kind {
	case '"', '0':
		v.Text = t.String()
	case '{', '[':
		for d.PeekKind() != v.Kind+2 { // the brackets of ASCII: } is { + 2, ] is [ + 2
			if v.Kind == '{' {
				name, err := d.ReadToken()
				if err != nil {
					return nil, err
				}
				v.Names = append(v.Names, name.String())
			}
			item, err := parseValue(d, depth-1)
			if err != nil {
				return nil, err
			}
			item.parent, item.at = v, len(v.Items)
			v.Items = append(v.Items, item)
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
	}
	return v, nil
}
