package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"grove/internal/options"
)

// Own is for types that read themselves.
type Own interface {
	// ReadJSON reads the next value, which is not null, by the methods of r.
	ReadJSON(r *Reader) error
}

// Like is for types that read themselves and take lists of objects, whose fields have bounds.
type Like interface {
	// Like returns a list of such objects.
	Like() any
}

var (
	isOwn = reflect.TypeFor[Own]()
	isRaw = reflect.TypeFor[json.RawMessage]()
)

// Reader reads the values of one body in their order; types that read themselves get it. It is for one goroutine. An error of one
// of its methods is the answer to the request: nothing is read after.
type Reader struct {
	rules  Decoder
	body   []byte // what tokens reads
	tokens *jsontext.Decoder
	at     []step         // the place of the value that is read
	bound  *field         // of that value
	counts map[*field]int // elements of all lists of a field
	values int            // those of fields that hold any JSON, and their names

	refused []error          // fields that are refused; the others are read, so that a client learns of all
	lax     bool             // unknown fields are of no interest
	unknown map[unknown]bool // names that no table has, and whether they are probably another's
}

// Path returns the place of the value that is read, such as messages[3].content.
func (r *Reader) Path() string { return Clip(join(r.at)) }

// Refuse returns an error that blames the value that is read.
func (r *Reader) Refuse(format string, args ...any) *Error {
	e := Refuse(r.Path(), format, args...)
	if e.Param != "" {
		e.Message = e.Param + ": " + e.Message
	}
	return e
}

// beyond refuses a value beyond a bound, with the code that OpenAI's API has for it.
func (r *Reader) beyond(code, format string, args ...any) error {
	e := r.Refuse(format, args...)
	e.Code = code
	return e
}

// Kind returns the kind of the next value.
func (r *Reader) Kind() jsontext.Kind { return r.tokens.PeekKind() }

// wrong refuses the next value, whose kind is not one of the field's.
func (r *Reader) wrong() error {
	kind := r.Kind()
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	return r.wrongValue(kind, raw)
}

func (r *Reader) wrongValue(kind jsontext.Kind, raw []byte) error {
	name := map[jsontext.Kind]string{'"': "string", '{': "object", '[': "array", 't': "bool", 'f': "bool", 'n': "null", '0': "number " + Clip(string(raw))}[kind]
	e := r.Refuse("a %s is not a value of this field", name)
	e.field = true
	return e
}

// open reads the beginning of an object or a list.
func (r *Reader) open(kind jsontext.Kind) error {
	if r.Kind() != kind {
		return r.wrong()
	}
	return r.skip()
}

// skip reads a token.
func (r *Reader) skip() error {
	_, err := r.token()
	return err
}

// token reads a token, within the bound of the depth.
func (r *Reader) token() (jsontext.Token, error) {
	t, err := r.tokens.ReadToken()
	switch {
	case err != nil:
		return t, malformed(err)
	case r.tokens.StackDepth() > MaxDepth:
		return t, r.beyond("nesting_above_max_depth", "objects and lists are nested deeper than %d", MaxDepth)
	}
	return t, nil
}

// Raw reads the next value and returns its text, which is a part of the body.
func (r *Reader) Raw() (json.RawMessage, error) {
	const between = " \t\r\n,:"
	if bound := r.bound; bound != nil && bound.holds && r.Kind() == jsontext.KindString {
		raw, err := r.tokens.ReadValue()
		if err != nil {
			return nil, malformed(err)
		}
		raw = bytes.Clone(raw)
		return json.RawMessage(raw), r.count(unquote(raw))
	}
	begin, depth := r.tokens.InputOffset(), r.tokens.StackDepth()
	for {
		from := r.tokens.InputOffset()
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		to := r.tokens.InputOffset()
		if t.Kind() == jsontext.KindNumber && to-from > MaxDigits && len(bytes.TrimLeft(r.body[from:to], between)) > MaxDigits {
			return nil, r.beyond("string_above_max_length", "a number has more than %d characters", MaxDigits)
		}
		if r.tokens.StackDepth() == depth {
			return bytes.TrimLeft(r.body[begin:to:to], between), nil
		}
		if k := t.Kind(); k != jsontext.KindEndObject && k != jsontext.KindEndArray {
			r.values++
		}
		if r.values > MaxValues {
			return nil, r.tooMany()
		}
	}
}

// tooMany refuses more than [MaxValues].
func (r *Reader) tooMany() error {
	return r.beyond("object_above_max_properties", "the request has more than %d values of JSON here and in other fields", MaxValues)
}

// count counts the values of JSON that a text holds. What is no JSON is left to who reads it.
func (r *Reader) count(text string) error {
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return nil
		}
		if k := t.Kind(); k != jsontext.KindEndObject && k != jsontext.KindEndArray {
			r.values++
		}
		if r.values > MaxValues {
			return r.tooMany()
		}
	}
}

// Text reads a text.
func (r *Reader) Text() (string, error) {
	if r.Kind() != jsontext.KindString {
		return "", r.wrong()
	}
	bound := r.bound
	raw, err := r.tokens.ReadValue()
	if err != nil {
		return "", malformed(err)
	}
	text := unquote(raw)
	if bound.bytes > 0 && len(text) > bound.bytes {
		return "", r.beyond("string_above_max_length", "a text of %d bytes; at most %d", len(text), bound.bytes)
	}
	if bound.holds {
		return text, r.count(text)
	}
	return text, nil
}

// unquote returns the text of a string that has been checked.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	text, _ := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw) // no error: it has been checked
	return string(text)
}

// Number reads a number and returns it as it is written, but a whole number in digits alone.
func (r *Reader) Number() ([]byte, error) {
	if r.Kind() != jsontext.KindNumber {
		return nil, r.wrong()
	}
	raw, err := r.Raw()
	if err != nil {
		return nil, err
	}
	return whole(raw), nil
}

// List reads a list by each, which reads the element of an index. The elements of all lists of the field are at most as many as its bound.
func (r *Reader) List(each func(i int) error) error {
	bound := r.bound
	return r.list(func(i int) error {
		if n := r.counts[bound]; bound.most > 0 && n >= bound.most {
			r.at = r.at[:len(r.at)-1]
			return r.beyond("array_above_max_length", "more than %d elements in the request", bound.most)
		}
		r.counts[bound]++
		r.bound = bound
		return each(i)
	})
}

func (r *Reader) list(each func(i int) error) error {
	if err := r.open(jsontext.KindBeginArray); err != nil {
		return err
	}
	for i := 0; r.Kind() != jsontext.KindEndArray; i++ {
		r.at = append(r.at, step{index: i})
		if err := each(i); err != nil {
			return err
		}
		r.at = r.at[:len(r.at)-1]
	}
	return r.skip()
}

// Object reads an object by each, which reads the value of a name. It has at most as many fields as the bound of the field.
func (r *Reader) Object(each func(name string) error) error {
	most := r.bound.most
	if most == 0 {
		most = MaxMembers
	}
	return r.members(most, each)
}

func (r *Reader) members(most int, each func(name string) error) error {
	if err := r.open(jsontext.KindBeginObject); err != nil {
		return err
	}
	for n := 0; r.Kind() != jsontext.KindEndObject; n++ {
		raw, err := r.tokens.ReadValue()
		switch {
		case err != nil:
			return malformed(err)
		case n == most:
			return r.beyond("object_above_max_properties", "more than %d fields in an object", most)
		}
		name := unquote(raw)
		r.at = append(r.at, step{name, -1})
		if err := each(name); err != nil {
			return err
		}
		r.at = r.at[:len(r.at)-1]
	}
	return r.skip()
}

// Within reads a value that [Reader.Raw] returned, at the place that is read, into what v points to.
func (r *Reader) Within(raw json.RawMessage, v any) error {
	body, tokens := r.body, r.tokens
	r.body, r.tokens = raw, jsontext.NewDecoder(bytes.NewBuffer(raw))
	err := r.Into(v)
	r.body, r.tokens = body, tokens
	return err
}

// Into reads the next value into what v points to, within the bounds of the field that is read.
func (r *Reader) Into(v any) error { return r.value(reflect.ValueOf(v).Elem(), r.bound) }

// value reads the next value of a field.
func (r *Reader) value(v reflect.Value, f *field) error {
	t, kind := v.Type(), r.Kind()
	r.bound = f
	switch {
	case t == isRaw:
		raw, err := r.Raw()
		v.SetBytes(raw)
		return err
	case kind == jsontext.KindNull:
		return r.skip()
	case t.Kind() == reflect.Pointer:
		p := reflect.New(t.Elem())
		v.Set(p)
		return r.value(p.Elem(), f)
	case reflect.PointerTo(t).Implements(isOwn):
		return v.Addr().Interface().(Own).ReadJSON(r)
	}
	switch t.Kind() {
	case reflect.String:
		text, err := r.Text()
		v.SetString(text)
		return err
	case reflect.Bool:
		if kind != jsontext.KindTrue && kind != jsontext.KindFalse {
			return r.wrong()
		}
		token, err := r.token()
		v.SetBool(err == nil && token.Bool())
		return err
	case reflect.Struct:
		return r.object(v)
	case reflect.Slice:
		return r.slice(v)
	case reflect.Map:
		return r.table(v)
	}
	return r.number(v, f)
}

// number reads a number within the range of its field.
func (r *Reader) number(v reflect.Value, f *field) error {
	raw, err := r.Number()
	if err != nil {
		return err
	}
	class, n, low, high := "integer", 0.0, f.low, f.high
	switch t := v.Type(); t.Kind() {
	case reflect.Float32, reflect.Float64:
		class = "decimal"
		n, err = strconv.ParseFloat(string(raw), t.Bits())
		v.SetFloat(n)
		if t.Bits() == 32 {
			low, high = float64(float32(low)), float64(float32(high))
		}
	default:
		var i int64
		i, err = strconv.ParseInt(string(raw), 10, t.Bits())
		v.SetInt(i)
		n = float64(i)
	}
	switch {
	case err != nil:
		return r.wrongValue(jsontext.KindNumber, raw)
	case !f.ranged || n >= low && n <= high:
		return nil
	case n < low:
		class += "_below_min_value"
	default:
		class += "_above_max_value"
	}
	e := Refuse(r.Path(), "%s is %s; it must be %s", r.Path(), Clip(string(raw)), f.span())
	e.Code, e.field = class, true
	return e
}

// object reads an object into a struct. It refuses unknown fields, except those that may be left out.
func (r *Reader) object(v reflect.Value) error {
	s := shapeOf(v.Type())
	top := len(r.at) == 0
	return r.members(MaxMembers, func(name string) error {
		depth, at := r.tokens.StackDepth(), len(r.at)
		f, known := s.fields[name]
		var err error
		if known {
			err = r.value(v.FieldByIndex(f.index), f)
		} else {
			err = r.leaveOut(name, s, top)
		}
		var e *Error
		if errors.As(err, &e) && e.field && r.tokens.StackDepth() == depth && len(r.refused) < maxRefused { // the value has been read
			r.refused, r.at = append(r.refused, e), r.at[:at]
			return nil
		}
		return err
	})
}

// maxRefused is how many fields of a body may be refused before reading ends.
const maxRefused = 64

// slice reads a list. null is no element of a list of values that have no such thing.
func (r *Reader) slice(v reflect.Value) error {
	element := v.Type().Elem()
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	return r.List(func(i int) error {
		if r.Kind() == jsontext.KindNull && element != isRaw && element.Kind() != reflect.Pointer {
			return r.Refuse("an element is null")
		}
		if v.Len() == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		return r.value(v.Index(i), r.bound)
	})
}

// table reads an object into a map.
func (r *Reader) table(v reflect.Value) error {
	bound := r.bound
	v.Set(reflect.MakeMap(v.Type()))
	return r.Object(func(name string) error {
		if bound.bytes > 0 && len(name) > bound.bytes {
			return r.beyond("string_above_max_length", "a name of %d bytes; at most %d", len(name), bound.bytes)
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if err := r.value(e, bound); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name), e)
		return nil
	})
}

// maxUnknown is how many names of unknown fields a body may have: each is compared with those of known ones.
const maxUnknown = 1000

// unknown is the name of a field that the objects of a type have not.
type unknown struct {
	name string
	in   *shape
}

// misspelt says whether an unknown field is probably another, misspelt. Lists have the same field in each element.
func (r *Reader) misspelt(name string, s *shape, top bool) bool {
	key := unknown{name, s}
	is, asked := r.unknown[key]
	if !asked {
		if r.unknown == nil {
			r.unknown = map[unknown]bool{}
		}
		is = options.Misspelt(name, s.names(top))
		r.unknown[key] = is
	}
	return is
}

// names returns the names of the fields that an object may have.
func (s *shape) names(top bool) []string {
	names := slices.Concat(slices.Sorted(maps.Keys(s.fields)), slices.Sorted(maps.Keys(s.tolerated)))
	if top {
		names = append(names, toleratedNames()...)
	}
	return names
}

// leaveOut skips a field that the object's type has not and that may be left out, and otherwise returns an error that says why not.
func (r *Reader) leaveOut(name string, s *shape, top bool) error {
	raw, err := r.Raw()
	if err != nil || r.lax {
		return err
	}
	rule, known := s.tolerated[name]
	if !known && top {
		rule, known = byName[name]
	}
	null := string(raw) == "null"
	var e *Error
	switch {
	case r.rules.Strict && known:
		e = Unsupported(r.Path(), "the route does not read it, and the server takes no other fields (--strict)")
	case known && !null && !rule.takes(raw):
		e = Unsupported(r.Path(), rule.Reason)
	case known, null && !r.rules.Strict:
	case len(r.unknown) >= maxUnknown:
		return r.beyond("object_above_max_properties", "the request has more than %d unknown fields", maxUnknown)
	case r.misspelt(name, s, top) || r.rules.Strict:
		e = r.Refuse("the field is not known%s", options.NearHint(name, s.names(top)))
		e.Code = "unknown_parameter"
	}
	if e != nil {
		e.field = true
		return e
	}
	if r.rules.Skipped != nil && !null {
		r.rules.Skipped(r.Path(), known)
	}
	return nil
}
