package text

import (
	"errors"
	"slices"
	"testing"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

func TestRestDraft(t *testing.T) {
	s := growtest.Store(t, nil, []token.ID{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 5, 6}, []token.ID{20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33}, []token.ID{7, 20, 21, 99})
	x := growtest.NewText(t, rest{s})
	for _, c := range []struct {
		name       string
		text, want []token.ID
		depth      int
	}{
		{"empty", nil, nil, 64},
		{"one token", []token.ID{1}, nil, 64},
		{"nothing matches", []token.ID{2, 1}, nil, 64},
		{"counts", []token.ID{9, 2, 3}, []token.ID{4, 5}, 1},
		{"the longest end", []token.ID{7, 20, 21}, []token.ID{99}, 64},
		{"ten tokens", []token.ID{20, 21, 22}, []token.ID{23, 24, 25, 26, 27, 28, 29, 30, 31, 32}, 64},
		{"the end of a text", []token.ID{32, 33}, nil, 64},
	} {
		x.Begin(t, c.text...)
		if got := growtest.IDs(x.Draft(t, c.depth)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	x.Begin(t, 9, 2, 3)
	tree := x.Draft(t, 64)
	if n := tree.Nodes(); len(n) < 5 || n[0].ID != 4 || n[0].Score <= n[1].Score || tree.Len() > restMost {
		t.Errorf("drafts %v", growtest.IDs(tree))
	}
	if got := growtest.PerDepth(tree); got[0] != 2 || len(got) != deepest {
		t.Errorf("drafts by depth: %v", got)
	}
}

func TestNeeds(t *testing.T) {
	i, err := method.Find("rest")
	if err != nil {
		t.Fatal(err)
	}
	if err := i.CheckNeeds(method.Env{}); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("without a datastore: %v", err)
	}
	if err := i.CheckNeeds(method.Env{Datastore: growtest.Store(t, nil)}); err != nil {
		t.Error(err)
	}
}

func TestRestClasses(t *testing.T) {
	for match := range 40 {
		for _, share := range []float32{0, 0.07, 0.4, 1} {
			if class, belief := restClassOf(match, share); class < 0 || class >= method.Classes || belief > share {
				t.Errorf("class %d, belief %v", class, belief)
			}
		}
	}
}
