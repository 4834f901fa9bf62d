package ppd

import (
	"errors"
	"strings"
	"testing"

	"grove/forest"
	"grove/method"
	"grove/method/module"
)

// TestNeeds: the method needs a module of its family that has rows.
func TestNeeds(t *testing.T) {
	info, err := method.Find("ppd")
	if err != nil {
		t.Fatal(err)
	}
	of := func(family string, rows ...forest.Row) method.Env {
		return method.Env{Vocabulary: 40, Modules: []*method.Module{{Module: forest.Module{Family: family, Rows: rows}}}}
	}
	for _, e := range []method.Env{{}, of("medusa")} {
		if err := info.CheckNeeds(e); !errors.Is(err, method.ErrNeeds) {
			t.Errorf("heads %v: %v", e.Modules, err)
		}
	}
	if _, err := info.Open(of(family)); !errors.Is(err, method.ErrNeeds) || !strings.Contains(err.Error(), "no vectors") {
		t.Errorf("heads without rows: %v", err)
	}
	m, err := info.Open(of(family, forest.Row{}))
	if err != nil {
		t.Fatal(err)
	}
	d, err := m.NewDrafter(nil)
	if _, standing := d.(*module.Standing); err != nil || !standing {
		t.Errorf("%T, %v", d, err)
	}
}
