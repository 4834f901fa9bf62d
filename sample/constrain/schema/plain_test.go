package schema_test

import (
	"testing"

	"grove/sample/constrain/earley"
	"grove/sample/constrain/schema"
	"grove/sample/constrain/vocab"
	"grove/text/token"
)

// TestPlainIntegers: integers are digits alone where the options say so, and other numbers are as they were.
func TestPlainIntegers(t *testing.T) {
	var all []vocab.Token
	for b := range 256 {
		all = append(all, vocab.Token{ID: token.ID(b), Bytes: []byte{byte(b)}, Kind: vocab.Ordinary})
	}
	v, err := vocab.New(all, 256)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schema, text string
		exact, plain bool
	}{
		{`{"type":"integer"}`, "1000", true, true},
		{`{"type":"integer"}`, "-7", true, true},
		{`{"type":"integer"}`, "0", true, true},
		{`{"type":"integer"}`, "1e3", true, false},
		{`{"type":"integer"}`, "1000.0", true, false},
		{`{"type":"integer","minimum":1000,"maximum":9999}`, "1e3", true, false},
		{`{"type":"integer","minimum":1000,"maximum":9999}`, "1000", true, true},
		{`{"type":"integer","multipleOf":5}`, "10.0", true, false},
		{`{"enum":[1,20]}`, "2e1", true, false},
		{`{"enum":[1,20]}`, "20", true, true},
		{`{"const":1.5}`, "1.50", true, true},
		{`{"type":"number"}`, "1e3", true, true},
		{`{"type":"number"}`, "1.0", true, true},
		{`{"type":"number","minimum":0}`, "1e3", true, true},
		{`{"type":["integer","string"]}`, "1.0", true, false},
		{`{"not":{"type":"integer"}}`, "1.0", false, false},
		{`{"not":{"type":"integer"}}`, "1.5", true, true},
		{`{"type":"array","items":{"type":"integer"},"uniqueItems":true}`, "[1,2]", true, true},
		{`{"type":"array","items":{"type":"integer"},"uniqueItems":true}`, "[1,2.0]", true, false},
		{`{"type":"array","items":{"type":"integer"},"uniqueItems":true}`, "[2,2]", false, false},
	} {
		for _, plain := range []bool{false, true} {
			src, err := schema.Compile([]byte(c.schema), schema.Options{PlainIntegers: plain})
			if err != nil {
				t.Fatal(err)
			}
			e, err := earley.New(src, v, earley.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := e.Start()
			if err != nil {
				t.Fatal(err)
			}
			s, n, err := e.Push(s, []byte(c.text))
			want := c.exact
			if plain {
				want = c.plain
			}
			if got := err == nil && n == len(c.text) && e.Ends(s); got != want {
				t.Errorf("%s: %s: %v with plain integers %v", c.schema, c.text, got, plain)
			}
		}
	}
}
