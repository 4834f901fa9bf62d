package engine_test

import (
	"strings"
	"testing"

	"grove/engine"
	"grove/method"
)

// TestRules expects a method to be refused whose rule is not known, or needs what no draft brings.
func TestRules(t *testing.T) {
	e := newEngine(t, engine.Config{})
	for rule, want := range map[method.Rule]string{
		"none": `engine: method test: verify: rule "none" is not known; use one of: `,
		"kseq": "engine: method test: rule kseq needs drafts that are drawn with replacement; ",
	} {
		_, err := e.OpenDrafting(t.Context(), []method.Info{{Name: "test", Rule: rule}}, method.Env{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want an error that begins with %q", rule, err, want)
		}
	}
}
