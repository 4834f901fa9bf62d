package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The bounds of all bodies, beside those of their fields (see [Bounds]).
const (
	MaxDepth   = 64      // objects and lists inside each other
	MaxMembers = 10_000  // fields of one object
	MaxValues  = 100_000 // names and values of those fields together that hold any JSON, such as the schemas of tools
	MaxDigits  = 1000    // characters of a number
)

// Decoder reads the bodies of requests. Of the fields that a route does not read it leaves out those that cannot change an answer (see
// [Tolerated]) and unknown ones, and refuses those that would change it, unless they ask for nothing, and those that look like another field, misspelt.
type Decoder struct {
	Strict  bool                           // refuse whatever the route does not read
	Skipped func(field string, known bool) // is called for each field that is left out; known: it is one of a table; nil: nobody is told
}

// Decode reads a body with the usual [Decoder].
func Decode(body []byte, into any) error { return Decoder{}.Decode(body, into) }

// Decode reads the body of a request into a struct, or a list of structs, by the tags of its fields: json has the name, the others the bounds (see [Bounds]). A
// field that is null counts as absent, and a whole number may be written as 16.0 or 1e2. Decoding ends at the first value that is beyond a bound, so that a
// body makes no more memory than its bounds allow. Fields of type [json.RawMessage] keep parts of the body, which must not change after. The
// error is an [*Error] that names all fields that were refused until then.
func (d Decoder) Decode(body []byte, into any) error {
	if err := checkPlain(body); err != nil {
		return err
	}
	r := &Reader{rules: d, body: body, tokens: jsontext.NewDecoder(bytes.NewBuffer(body)), counts: map[*field]int{}}
	v, begin, form := reflect.ValueOf(into).Elem(), jsontext.KindBeginObject, "object"
	if v.Kind() == reflect.Slice {
		begin, form = jsontext.KindBeginArray, "array"
	}
	if kind := r.tokens.PeekKind(); kind != begin && kind != jsontext.KindInvalid {
		return Refuse("", "the body is not a JSON %s", form)
	}
	if err := r.value(v, new(field)); err != nil {
		return All(append(r.refused, err)...)
	}
	if _, err := r.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return Refuse("", "the body goes on behind the JSON object")
	}
	return All(r.refused...)
}

// malformed returns the answer to a body that is not JSON, or has a field twice.
func malformed(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Refuse("", "the body is not a JSON object: it ends too early")
	case !errors.As(err, &syntax):
		return Refuse("", "the body is not a JSON object")
	case errors.Is(err, jsontext.ErrDuplicateName):
		name := Clip(pathOf(syntax.JSONPointer))
		return Refuse(name, "%s: the field is there twice", name)
	}
	switch text := syntax.Err.Error(); {
	case strings.Contains(text, "UTF-8"):
		return Refuse("", "the body is not UTF-8, at byte %d", syntax.ByteOffset)
	case strings.Contains(text, "surrogate"):
		return Refuse("", "the body has half a character (an escape of half a surrogate pair), at byte %d", syntax.ByteOffset)
	default:
		return Refuse("", "the body is not a JSON object: %s, at byte %d", Clip(text), syntax.ByteOffset)
	}
}

// pathOf returns a JSON pointer as errors write the place of a value: messages[3].content.
func pathOf(p jsontext.Pointer) string {
	var at []step
	for name := range p.Tokens() {
		if i, err := strconv.Atoi(name); err == nil && len(at) > 0 {
			at = append(at, step{index: i})
		} else {
			at = append(at, step{name: name, index: -1})
		}
	}
	return join(at)
}

// A step leads to a value: a field's name, or the index in a list.
type step struct {
	name  string
	index int // -1: name
}

func join(at []step) string {
	var b strings.Builder
	for i, s := range at {
		switch {
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case i > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
	}
	return b.String()
}

// Clip cuts a client's text to a length that fits an error message.
func Clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
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
