package schema_test

import (
	"testing"

	"grove/constrain/earley"
	"grove/constrain/schema"
	"grove/constrain/vocab"
	"grove/internal/text/token"
)

// reads reports whether a text is one of a schema's, to the recognizer.
func reads(t *testing.T, v *vocab.Vocabulary, of string, o schema.Options, text string) bool {
	t.Helper()
	src, err := schema.Compile([]byte(of), o)
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
	s, n, err := e.Push(s, []byte(text))
	return err == nil && n == len(text) && e.Ends(s)
}

// octets is a vocabulary of single bytes.
func octets(t *testing.T) *vocab.Vocabulary {
	t.Helper()
	var all []vocab.Token
	for b := range 256 {
		all = append(all, vocab.Token{ID: token.ID(b), Bytes: []byte{byte(b)}, Kind: vocab.Ordinary})
	}
	v, err := vocab.New(all, 256)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSomeName: any name may be the one whose value an object owes, and any other may not be.
func TestSomeName(t *testing.T) {
	v := octets(t)
	for text, want := range map[string]bool{
		`{"x":1}`: true, `{"x":null,"y":1}`: true, `{"x":1,"y":null}`: true, `{"x":1,"y":1}`: true, `{}`: false, `{"x":null}`: false, `{"x":null,"y":null}`: false,
	} {
		if got := reads(t, v, `{"type":"object","not":{"additionalProperties":{"type":"null"}}}`, schema.Options{}, text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestPlainIntegers: integers are digits alone where the options say so, and other numbers are as they were.
func TestPlainIntegers(t *testing.T) {
	v := octets(t)
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
			want := c.exact
			if plain {
				want = c.plain
			}
			if got := reads(t, v, c.schema, schema.Options{PlainIntegers: plain}, c.text); got != want {
				t.Errorf("%s: %s: %v with plain integers %v", c.schema, c.text, got, plain)
			}
		}
	}
}
