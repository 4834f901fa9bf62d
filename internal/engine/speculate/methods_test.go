package speculate

import (
	"testing"

	"grove/internal/verify"
	"grove/method"
)

// TestCheckRule: a rule is refused where the drafts of a method do not bring what it needs.
func TestCheckRule(t *testing.T) {
	needs := map[string]verify.Properties{
		"anything":    {},
		"draws":       {Distributions: true},
		"independent": {Distributions: true, WithReplacement: true},
		"a chain":     {Distributions: true, Chain: true},
	}
	for _, c := range []struct {
		brings verify.Properties
		fits   []string
	}{
		{verify.Properties{}, []string{"anything"}},
		{verify.Properties{Distributions: true}, []string{"anything", "draws"}},
		{verify.Properties{Distributions: true, Chain: true}, []string{"anything", "draws", "a chain"}},
		{verify.Properties{Distributions: true, WithReplacement: true}, []string{"anything", "independent"}},
		{verify.Properties{Distributions: true, WithReplacement: true, Chain: true}, []string{"anything", "draws", "independent", "a chain"}},
	} {
		d := &Methods{Infos: []method.Info{{Name: "tested", Provides: c.brings}}}
		fits := map[string]bool{}
		for _, name := range c.fits {
			fits[name] = true
		}
		for name, n := range needs {
			if err := d.CheckRule(verify.Rule{Name: name, Needs: n}); (err == nil) != fits[name] {
				t.Errorf("drafts that bring %+v, and a rule that needs %s: %v", c.brings, name, err)
			}
		}
	}
}
