package wire

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// form is JSON as package encoding/json writes it, without the escapes for HTML.
var form = json.JoinOptions(v1.DefaultOptionsV1(), jsontext.EscapeForHTML(false))

// Marshal returns a value as JSON.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, form) }

// Write writes a value as JSON in parts of some KiB, so that a large answer is never in memory as a whole. A [Sequence] is made while it is written.
func Write(w io.Writer, v any) error { return json.MarshalWrite(w, v, form) }

// Sequence is a list whose elements are made one by one while it is written.
type Sequence struct {
	n  int
	at func(i int) (any, error)
}

// Each returns a list of n elements. at makes the element of an index, each time that the list is written.
func Each(n int, at func(i int) (any, error)) *Sequence { return &Sequence{n, at} }

// MarshalJSONTo implements [json.MarshalerTo].
func (s *Sequence) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for i := range s.n {
		v, err := s.at(i)
		if err == nil {
			err = json.MarshalEncode(e, v)
		}
		if err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndArray)
}
