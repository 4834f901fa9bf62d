package heads

import (
	"errors"
	"strings"
	"testing"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/method"
	"grove/method/module"
)

// TestStandingNeeds: a method needs a module of its family that has rows.
func TestStandingNeeds(t *testing.T) {
	for name, c := range map[string]struct{ family, lacks string }{"ppd": {"ppd", "no vectors"}, "hidden-transfer": {"transfer", "no matrices"}} {
		t.Run(name, func(t *testing.T) {
			info, err := method.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			of := func(rows ...forest.Row) method.Env {
				return method.Env{Vocabulary: 40, Modules: []*method.Module{{Module: forest.Module{Family: c.family, Rows: rows}}}}
			}
			if err := info.CheckNeeds(of()); !errors.Is(err, method.ErrNeeds) || !strings.Contains(err.Error(), c.lacks) {
				t.Errorf("heads without rows: %v", err)
			}
			if err := info.CheckNeeds(of(forest.Row{})); err != nil {
				t.Error(err)
			}
			if d := growtest.Drafter(t, name, of(forest.Row{})); d == nil {
				t.Error("no drafter")
			} else if _, ok := d.(*module.Standing); !ok {
				t.Errorf("%T", d)
			}
		})
	}
}
