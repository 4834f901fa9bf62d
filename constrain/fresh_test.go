package constrain

import (
	"fmt"
	"testing"

	"grove/constrain/grammar"
	"grove/constrain/schema"
	"grove/internal/sample"
	"grove/internal/text/tokenizer"
)

// TestFresh: a constraint serves any number of texts, though each costs its parser memory that is not given back.
func TestFresh(t *testing.T) {
	v := words(t, false)
	compiled := 0
	c, err := Compile(Spec{Source: func() (grammar.Source, error) {
		compiled++
		return schema.Compile([]byte(`{"type": "object"}`), schema.Options{Limits: schema.Limits{Nodes: 20000}})
	}}, v, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(stages []sample.Stage, text string) error {
		stage := stages[0].(*Stage)
		ids, err := v.text.Encode(nil, text, tokenizer.Options{Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		at := stage.Start(nil)
		for _, id := range ids {
			if err := stage.Err(at); err != nil {
				return err
			}
			at = stage.Next(at, id)
		}
		return stage.Err(at)
	}
	text := func(i int) string { return fmt.Sprintf(`{"a%d": 1, "b%d": [true], "c%d": "x"}`, i, i*7, i*31) }
	old := c.Stages(nil)
	for i := range 300 {
		if err := read(c.Stages(nil), text(i)); err != nil {
			t.Fatalf("text %d: %v", i, err)
		}
	}
	if compiled < 2 || compiled > 100 {
		t.Errorf("compiled %d times for 300 texts", compiled)
	}
	if err := read(old, text(0)); err != nil { // began with the first parser, and goes on with it
		t.Errorf("the first text: %v", err)
	}
	var last error
	for i := range 300 {
		if last = read([]sample.Stage{&Stage{c: c}}, text(1000+i)); last != nil {
			break
		}
	}
	if last == nil {
		t.Error("one parser serves all texts: the test does not test")
	}
}
