package front_test

import (
	"errors"
	"testing"

	"grove"
	"grove/internal/model/synthetic"
)

// TestPrefixRequest expects a prompt whose tokens see each other to have an answer of its own, the same each time, and the requests that it does
// not go with to be refused.
func TestPrefixRequest(t *testing.T) {
	m, _ := randomModel(t, synthetic.Spec{}, grove.Options{}, nil)
	seed := uint64(3)
	answer := func(prefix bool) string {
		got, _ := generate(t, m, grove.Request{Prompt: "a prompt of some bytes", Prefix: prefix, MaxTokens: 20, Seed: &seed})
		return got.text()
	}
	first, causal := answer(true), answer(false)
	if first == causal || answer(true) != first {
		t.Errorf("answers %q with a prefix, %q without", first, causal)
	}
	small, _ := randomModel(t, synthetic.Spec{}, grove.Options{Chunk: 4}, nil)
	if _, err := small.Generate(t.Context(), grove.Request{Prompt: "a prompt of some bytes", Prefix: true}); !errors.Is(err, grove.ErrPrefix) {
		t.Errorf("more tokens than a step has rows: %v", err)
	}
	option := new(grove.OptionError)
	for _, r := range []grove.Request{{Prompt: "a", Prefix: true, Heal: true}, {Prompt: "a", Prefix: true, Session: "s"}} {
		if _, err := m.Generate(t.Context(), r); !errors.As(err, &option) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
