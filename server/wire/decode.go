package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Mode says what becomes of fields that a route does not read.
type Mode int

// The modes. In all of them a field that would change the answer is refused, unless it asks for nothing.
const (
	Usual   Mode = iota // fields that cannot change an answer (see [Tolerated]) are taken; unknown ones are refused, unless they are null
	Strict              // a body may only have fields that the route reads
	Lenient             // unknown fields are taken too, and reported
)

// Decoder reads the bodies of requests. The zero value is the usual one.
type Decoder struct {
	Mode    Mode
	Skipped func(field string) // is called for each unknown field that a lenient decoder takes; nil: nobody is told
}

// Decode reads a body with the usual [Decoder].
func Decode(body []byte, into any) error { return Decoder{}.Decode(body, into) }

// Decode reads the body of a request into a struct by the json tags of its fields. A field that is null counts as absent, and a whole
// number may be written as 16.0 or 1e2. The error is an [*Error] that names the field.
func (d Decoder) Decode(body []byte, into any) error {
	if !utf8.Valid(body) {
		return Refuse("", "the body is not UTF-8")
	}
	if err := checkSurrogates(body); err != nil {
		return err
	}
	values, err := object(body)
	if err != nil {
		return err
	}
	target := reflect.ValueOf(into).Elem()
	fields := map[string]reflect.Value{}
	fieldsOf(target, fields)
	rules := rulesOf(target.Type(), ruleOf)
	for _, v := range values {
		field, ok := fields[v.name]
		if !ok {
			if err := d.leaveOut("", v, rules, func() []string { return append(slices.Sorted(maps.Keys(fields)), toleratedNames()...) }); err != nil {
				return err
			}
			continue
		}
		raw, err := d.clean(v.name, v.raw, field.Type())
		if err != nil {
			return err
		}
		if err := decodeField(v.name, raw, field.Addr().Interface()); err != nil {
			return err
		}
	}
	return nil
}

// DecodeField reads the value of one field as [Decode] does, for types that read themselves.
func DecodeField(name string, raw json.RawMessage, into any) error {
	raw, err := Decoder{}.clean(name, raw, reflect.TypeOf(into).Elem())
	if err != nil {
		return err
	}
	return decodeField(name, raw, into)
}

// decodeField reads the value of one field, whose objects have known fields alone.
func decodeField(name string, raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var (
		api  *Error
		kind *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api):
		if api.Param == "" {
			api.Param = name
		}
		return api
	case errors.As(err, &kind):
		if kind.Field != "" {
			name += "." + kind.Field
		}
		return Refuse(name, "%s: a %s is not a value of this field", name, Clip(kind.Value))
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if inner, err := strconv.Unquote(field); err == nil {
			name += "." + inner
		}
		return unknown(name)
	}
	return Refuse(name, "%s: %s", name, Clip(strings.TrimPrefix(err.Error(), "json: ")))
}

// unknown refuses a field that no route reads, or not this one.
func unknown(name string) *Error {
	e := Refuse(Clip(name), "%s: the field is not known", Clip(name))
	e.Code = "unknown_parameter"
	return e
}

// Clip cuts a client's text to a length that fits an error message.
func Clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// A value is a field of an object.
type value struct {
	name string
	raw  json.RawMessage
}

// object returns the fields of a body, which is one JSON object, in order. It refuses a field that is there twice.
func object(body []byte) ([]value, error) {
	malformed := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Refuse("", "the body is not a JSON object: it ends too early")
		}
		return Refuse("", "the body is not a JSON object: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	d := json.NewDecoder(bytes.NewReader(body))
	t, err := d.Token()
	if err != nil {
		return nil, malformed(err)
	}
	if t != json.Delim('{') {
		return nil, Refuse("", "the body is not a JSON object")
	}
	var values []value
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, malformed(err)
		}
		name := t.(string) // the decoder takes no other key
		if seen[name] {
			return nil, Refuse(Clip(name), "%s: the field is there twice", Clip(name))
		}
		seen[name] = true
		v := value{name: name}
		if err := d.Decode(&v.raw); err != nil {
			return nil, malformed(err)
		}
		values = append(values, v)
	}
	if _, err := d.Token(); err != nil {
		return nil, malformed(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, Refuse("", "the body goes on behind the JSON object")
	}
	return values, nil
}

// fieldsOf lists the fields of a struct by their names in JSON, those of embedded structs among them.
func fieldsOf(v reflect.Value, fields map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			fieldsOf(v.Field(i), fields)
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = v.Field(i)
		}
	}
}

// checkSurrogates refuses escapes of half a surrogate pair, which package json would replace in silence.
func checkSurrogates(body []byte) error {
	unit := func(i int) (rune, bool) {
		if i+6 > len(body) || body[i] != '\\' || body[i+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(body[i+2:i+6]), 16, 16)
		return rune(n), err == nil
	}
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		r, ok := unit(i)
		switch {
		case !ok:
			i++ // another escape, or a bad one that package json refuses
		case r < 0xD800 || r > 0xDFFF:
			i += 5
		default:
			low, ok := unit(i + 6)
			if r > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
				return Refuse("", "the body has %s, half a character, at byte %d", body[i:i+6], i)
			}
			i += 11
		}
	}
	return nil
}
