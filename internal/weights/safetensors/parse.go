package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"grove/internal/fileio"
	"grove/internal/weights/tensor"
)

const (
	lengthBytes = 8
	maxHeader   = 100 << 20 // as the reference reader has it
	maxDims     = 16        // ours
	metadataKey = "__metadata__"
)

// Parse reads a file that is in memory. Its tensors are views of data, in the order of their place.
// Errors are [*FormatError] values.
func Parse(data []byte) ([]Tensor, error) {
	tensors, _, err := parse(data)
	return tensors, err
}

// parse returns the tensors of a file and its free text by name.
func parse(data []byte) (tensors []Tensor, text map[string]string, err error) {
	header, err := headerOf(data)
	if err != nil {
		return nil, nil, err
	}
	r := newReader(header, lengthBytes)
	text = map[string]string{}
	var places []place
	seen := map[string]bool{}
	r.object(func(name string) {
		switch {
		case seen[name]:
			r.fail("%s: two tensors have this name", tensor.Label(name))
		case name == metadataKey:
			r.metadata(text)
		case name == "":
			r.fail("a tensor has an empty name")
		default:
			places = append(places, r.tensor(name))
		}
		seen[name] = true
	})
	r.end()
	if r.err != nil {
		return nil, nil, r.err
	}
	tensors, err = lay(places, data, lengthBytes+len(header))
	return tensors, text, err
}

// headerOf returns the JSON text that begins a file.
func headerOf(data []byte) ([]byte, error) {
	if len(data) < lengthBytes {
		return nil, &FormatError{Msg: fmt.Sprintf("%d bytes are too few for the header's length; the file is cut off: download it again", len(data))}
	}
	n := binary.LittleEndian.Uint64(data)
	left := uint64(len(data) - lengthBytes)
	switch {
	case n > maxHeader:
		return nil, &FormatError{Msg: fmt.Sprintf("header of %d bytes is longer than %d%s", n, maxHeader, fileio.InsteadOf(data))}
	case n > left:
		return nil, &FormatError{Msg: fmt.Sprintf("the file is cut off: its header takes %d bytes, %d are left; download it again", n, left)}
	}
	header := data[lengthBytes : lengthBytes+n]
	if !utf8.Valid(header) {
		return nil, &FormatError{Offset: lengthBytes, Msg: "header is not UTF-8"}
	}
	return header, nil
}

// place is a tensor's entry in the header.
type place struct {
	tensor     Tensor
	begin, end int
	at         int64 // of the entry in the file
}

// whole returns the size of the data of tensors in the order of their place. ok is false unless they follow each other without holes:
// then their places cannot be trusted.
func whole(places []place) (end int, ok bool) {
	for _, p := range places {
		if size, ok := p.tensor.bytes(); p.begin != end || !ok || size != p.end-p.begin {
			return 0, false
		}
		end = p.end
	}
	return end, true
}

// lay gives the tensors their bytes, which must follow each other without holes from start to the end of
// the file.
func lay(places []place, file []byte, start int) ([]Tensor, error) {
	data := file[start:]
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	tensors := make([]Tensor, len(places))
	if end, ok := whole(places); ok && end > len(data) {
		return nil, &FormatError{Offset: -1, Msg: fmt.Sprintf("the file is cut off at %d of %d bytes; download it again", len(file), start+end)}
	}
	next := 0
	for i, p := range places {
		fail := func(format string, args ...any) ([]Tensor, error) {
			return nil, &FormatError{Offset: p.at, Msg: tensor.Label(p.tensor.Name) + ": " + fmt.Sprintf(format, args...)}
		}
		size := p.end - p.begin
		switch want, ok := p.tensor.bytes(); {
		case !ok:
			return fail("shape %v overflows the size", p.tensor.Shape)
		case size != want:
			return fail("bytes %d to %d are %d, shape %v of %s takes %d", p.begin, p.end, size, p.tensor.Shape, p.tensor.Type, want)
		case p.end > len(data):
			return fail("bytes %d to %d reach past the end of the data, %d bytes", p.begin, p.end, len(data))
		case p.begin < next:
			return fail("data overlaps that of %s", tensor.Label(tensors[i-1].Name))
		case p.begin > next:
			return fail("data begins at %d, which leaves a hole from %d", p.begin, next)
		}
		p.tensor.Data = data[p.begin:p.end:p.end]
		tensors[i], next = p.tensor, p.end
	}
	if next != len(data) {
		return nil, &FormatError{Offset: int64(start + next), Msg: fmt.Sprintf("%d bytes at the end belong to no tensor", len(data)-next)}
	}
	return tensors, nil
}

// bytes returns the bytes that the shape takes, and false where an int cannot hold them.
func (t *Tensor) bytes() (int, bool) {
	n := sizes[t.Type]
	for _, d := range t.Shape {
		if d > 0 && n > math.MaxInt/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// reader reads JSON of a known form token by token, which finds duplicates and keeps nesting shallow.
// The first fault is kept in err and ends all loops.
type reader struct {
	dec  *json.Decoder
	base int64 // offset of the text in its file
	err  *FormatError
}

func newReader(text []byte, base int64) *reader {
	r := &reader{dec: json.NewDecoder(bytes.NewReader(text)), base: base}
	r.dec.UseNumber()
	return r
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &FormatError{Offset: r.base + r.dec.InputOffset(), Msg: fmt.Sprintf(format, args...)}
	}
}

// next returns the next token, nil after a fault.
func (r *reader) next() json.Token {
	if r.err != nil {
		return nil
	}
	t, err := r.dec.Token()
	r.broken(err)
	return t
}

// broken keeps an error of the decoder.
func (r *reader) broken(err error) {
	switch {
	case err == nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.fail("the JSON text ends too early; the file is cut off or broken: download it again")
	default:
		r.fail("JSON: %v", err)
	}
}

// object reads an object; value reads the value of each key.
func (r *reader) object(value func(key string)) {
	if t := r.next(); t != json.Delim('{') {
		r.fail("want an object, found %s", show(t))
	}
	for r.err == nil && r.dec.More() {
		if key, ok := r.next().(string); ok {
			value(key)
		}
	}
	r.next()
}

// end expects nothing but white space after the value.
func (r *reader) end() {
	if r.err != nil {
		return
	}
	if r.dec.More() {
		r.fail("there is more behind the object")
	}
}

func (r *reader) string(what string) string {
	t := r.next()
	s, ok := t.(string)
	if !ok {
		r.fail("%s: want a string, found %s", what, show(t))
	}
	return s
}

// metadata reads the free text that a file may carry; of two values of a name the last counts.
func (r *reader) metadata(text map[string]string) {
	r.object(func(key string) { text[key] = r.string(metadataKey) })
}

// tensor reads the entry of a tensor.
func (r *reader) tensor(name string) place {
	p := place{at: r.base + r.dec.InputOffset(), tensor: Tensor{Name: name}}
	var offsets []int
	seen := map[string]bool{}
	r.object(func(key string) {
		if seen[key] {
			r.fail("%s: %s is there twice", tensor.Label(name), key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			p.tensor.Type = DType(r.string(tensor.Label(name) + ": dtype"))
			if sizes[p.tensor.Type] == 0 {
				r.fail("%s: dtype %.40q is not known", tensor.Label(name), p.tensor.Type)
			}
		case "shape":
			p.tensor.Shape = r.numbers(name, key, maxDims)
		case "data_offsets":
			offsets = r.numbers(name, key, 2)
		default:
			r.fail("%s: unknown key %.40q", tensor.Label(name), key)
		}
	})
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if !seen[key] {
			r.fail("%s: %s is missing", tensor.Label(name), key)
		}
	}
	if r.err != nil {
		return p
	}
	if len(offsets) != 2 {
		r.fail("%s: data_offsets holds %d of 2 numbers", tensor.Label(name), len(offsets))
		return p
	}
	if p.begin, p.end = offsets[0], offsets[1]; p.begin > p.end {
		r.fail("%s: data_offsets are %d and %d; the first must not be the larger one", tensor.Label(name), p.begin, p.end)
	}
	return p
}

// numbers reads an array of at most limit integers that are not negative.
func (r *reader) numbers(name, key string, limit int) []int {
	if t := r.next(); t != json.Delim('[') {
		r.fail("%s: %s: want an array, found %s", tensor.Label(name), key, show(t))
	}
	out := []int{}
	for r.err == nil && r.dec.More() {
		t := r.next()
		text, ok := t.(json.Number)
		n, err := strconv.ParseInt(string(text), 10, 64)
		switch {
		case r.err != nil:
		case !ok || err != nil || n < 0 || int64(int(n)) != n:
			r.fail("%s: %s: %s is not a count", tensor.Label(name), key, show(t))
		case len(out) == limit:
			r.fail("%s: %s has more than %d numbers", tensor.Label(name), key, limit)
		default:
			out = append(out, int(n))
		}
	}
	r.next()
	return out
}

// show names a token in a message.
func show(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		return strconv.Quote(t.String())
	case json.Number:
		return fmt.Sprintf("%.40s", string(t))
	default:
		return fmt.Sprintf("%.40q", fmt.Sprint(t))
	}
}
