package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"grove/internal/near"
)

// Like is for types that read themselves and take the form of other types.
type Like interface {
	// Like returns a pointer to a value of the type that a JSON value is read into; nil: no object is in it whose fields must be known.
	Like(raw []byte) any
}

var (
	readsItself = reflect.TypeFor[json.Unmarshaler]()
	isLike      = reflect.TypeFor[Like]()
)

// clean returns a value as package json reads it into a type: whole numbers in digits, and objects without the fields that a route
// leaves out. It refuses unknown fields, fields that are there twice, and lists with null in them.
func (d Decoder) clean(name string, raw json.RawMessage, t reflect.Type) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	switch pointer := reflect.PointerTo(t); {
	case string(raw) == "null":
		return raw, nil
	case pointer.Implements(isLike):
		if like := reflect.New(t).Interface().(Like).Like(raw); like != nil {
			return d.clean(name, raw, reflect.TypeOf(like).Elem())
		}
		return raw, nil
	case pointer.Implements(readsItself):
		return raw, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.clean(name, raw, t.Elem())
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return whole(raw), nil
	case reflect.Struct:
		if len(raw) > 0 && raw[0] == '{' {
			return d.cleanObject(name, raw, t)
		}
	case reflect.Slice:
		if len(raw) > 0 && raw[0] == '[' {
			return d.cleanList(name, raw, t.Elem())
		}
	}
	return raw, nil
}

// shape is what the objects of a struct's type may have.
type shape struct {
	fields map[string]reflect.Type
	rules  rules // of fields that the type has not
}

// shapes has the shape of each type that was asked for: a body may have very many objects of a few types.
var shapes sync.Map

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	values := map[string]reflect.Value{}
	fieldsOf(reflect.New(t).Elem(), values)
	s := &shape{map[string]reflect.Type{}, rulesOf(t, func(string) (Toleration, bool) { return Toleration{}, false })}
	for name, v := range values {
		s.fields[name] = v.Type()
	}
	shapes.Store(t, s)
	return s
}

// cleanObject cleans the fields of an object.
func (d Decoder) cleanObject(name string, raw json.RawMessage, t reflect.Type) (json.RawMessage, error) {
	values, err := object(raw)
	if err != nil {
		return nil, err
	}
	s := shapeOf(t)
	b := []byte{'{'}
	for _, v := range values {
		field, known := s.fields[v.name]
		if !known {
			if err := d.leaveOut(name, v, s.rules, func() []string { return slices.Sorted(maps.Keys(s.fields)) }); err != nil {
				return nil, err
			}
			continue
		}
		if v.raw, err = d.clean(name+"."+v.name, v.raw, field); err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, v.name), ':')
		b = append(b, v.raw...)
	}
	return append(b, '}'), nil
}

// cleanList cleans the elements of a list.
func (d Decoder) cleanList(name string, raw json.RawMessage, element reflect.Type) (json.RawMessage, error) {
	if kind := element.Kind(); kind == reflect.Slice || kind == reflect.Pointer || kind == reflect.Interface {
		return raw, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return raw, nil // the decoder says what is wrong
	}
	b := []byte{'['}
	for i, item := range items {
		if string(item) == "null" {
			return nil, Refuse(name, "%s: element %d is null", name, i)
		}
		item, err := d.clean(name, item, element)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']'), nil
}

// leaveOut returns nil for a field that the object's type has not and that may be left out, and otherwise an error that says why not.
// The name of the object is "" for the body; known are the names of the fields that there are.
func (d Decoder) leaveOut(object string, v value, rule rules, known func() []string) error {
	name, raw := v.name, v.raw
	r, isKnown := rule(name)
	if object != "" {
		name = object + "." + name
	}
	switch isNull := string(bytes.TrimSpace(raw)) == "null"; {
	case d.Mode == Strict && isKnown:
		return Unsupported(name, "the route does not read it, and the server takes no other fields (--strict)")
	case d.Mode != Strict && isNull:
		return nil
	case isKnown && r.takes(raw):
		return nil
	case isKnown:
		return Unsupported(Clip(name), r.Reason)
	case d.Mode == Lenient:
		if d.Skipped != nil {
			d.Skipped(Clip(name))
		}
		return nil
	}
	e := unknown(name)
	e.Message += near.Hint(v.name, known())
	return e
}

// whole returns a whole number that is written with a point or an exponent, such as 16.0 or 1e2, in digits. All else stays as it is:
// the decoder refuses it.
func whole(raw []byte) []byte {
	const most = 20 // digits of a number of 64 bits
	number, negative := bytes.CutPrefix(raw, []byte("-"))
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(number)), "e")
	before, behind, point := strings.Cut(mantissa, ".")
	if isNumber := len(number) > 0 && number[0] >= '0' && number[0] <= '9'; isNumber && strings.Trim(before+behind, "0") == "" {
		return []byte("0")
	}
	shift, err := strconv.Atoi(exponent)
	if !point && exponent == "" || exponent != "" && err != nil || shift > most || shift < -len(raw) {
		return raw
	}
	digits := strings.TrimLeft(before+behind, "0")
	places := len(behind) - shift // digits behind the point
	for ; places > 0 && strings.HasSuffix(digits, "0"); places-- {
		digits = strings.TrimSuffix(digits, "0")
	}
	if strings.Trim(digits, "0123456789") != "" || places > 0 || len(digits)-min(places, 0) > most {
		return raw
	}
	digits += strings.Repeat("0", -min(places, 0))
	if negative {
		digits = "-" + digits
	}
	return []byte(digits)
}
