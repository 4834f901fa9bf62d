package module

import (
	"errors"
	"testing"

	"grove/internal/forest"
	"grove/method"
)

// TestFamily: a method with modules says what it needs, and what the open ones lack.
func TestFamily(t *testing.T) {
	of := func(m forest.Module) method.Env { return method.Env{Modules: []*method.Module{{Module: m}}} }
	f := Family{Name: "medusa", Has: func(m *method.Module) bool { return m.Heads > 1 }, Lacks: "have one head"}
	info := f.Info(method.Info{Name: "test"})
	if info.Needs != "heads of the family medusa (--heads)" || info.Grade != method.Exact || info.Kind != method.KindHeads {
		t.Errorf("%+v", info)
	}
	for name, c := range map[string]struct {
		env  method.Env
		want string
	}{
		"nothing":        {method.Env{}, "none is given"},
		"another family": {of(forest.Module{Family: "eagle"}), "none is given; the heads that are open are of the family eagle"},
		"too few":        {of(forest.Module{Family: "medusa", Heads: 1}), "none is given; the heads that are open have one head"},
		"all":            {of(forest.Module{Family: "medusa", Heads: 2}), ""},
	} {
		err := info.CheckNeeds(c.env)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, method.ErrNeeds) || err.Error() != c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
