package engine_test

import (
	"strings"
	"testing"

	"grove/internal/engine"
	"grove/internal/verify"
	"grove/method"
)

// TestRules expects a rule to be refused whose needs the drafts of a method do not bring, whether the method has it
// or the request asks for it, and methods of different rules beside each other.
func TestRules(t *testing.T) {
	e := newEngine(t, engine.Config{})
	open := func(env method.Env) (method.Method, error) { return each(oracles), nil }
	for _, c := range []struct {
		infos []method.Info
		want  string
	}{
		{[]method.Info{{Name: "test", Rule: verify.Reject, Open: open}}, "engine: rule reject needs the distributions that drafts were drawn from; method test does not bring them"},
		{[]method.Info{{Name: "test", Rule: verify.KSEQ, Provides: verify.Properties{Distributions: true}, Open: open}}, "engine: rule kseq needs the draws that drafts stand for; method test does not bring them"},
		{[]method.Info{{Name: "test", Rule: verify.Reject, Provides: verify.KSEQ.Needs, Open: open}}, "engine: rule reject needs draws without replacement; method test does not bring them"},
		{[]method.Info{{Name: "test", Rule: verify.TraversalIID, Provides: verify.Traversal.Needs, Open: open}}, "engine: rule traversal-iid needs the draws that drafts stand for; method test does not bring them"},
		{[]method.Info{{Name: "a", Open: open}, {Name: "b", Rule: verify.Block, Open: open}}, "engine: method b verifies its drafts by the rule block: it cannot work beside methods with other rules"},
		{[]method.Info{{Name: "test", Needs: "luck", CheckNeeds: func(method.Env) error { return method.ErrNeeds }, Open: open}}, "engine: method test needs luck: none is given"},
	} {
		_, err := e.OpenDrafting(t.Context(), c.infos, method.Env{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want an error that begins with %q", err, c.want)
		}
	}
	s := sequence(t, e)
	if err := s.SetDrafting(openDrafters(t, e, false, oracles), nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range verify.Rules() {
		if err := s.SetRule(r); (err == nil) != (r.Needs == verify.Properties{}) {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
}
