package self

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
)

const mask = growtest.Mask

// blocks is the model that drafts.
func blocks(shift bool, rows int) *growtest.Model { return growtest.Canvas(shift, 4, 12, rows) }

func TestDraft(t *testing.T) {
	for _, c := range []struct {
		name, option string
		shift        bool
		rows, depth  int
		text         []token.ID
		ran, want    []token.ID
	}{
		{"a block behind the text", "", false, 16, 8, []token.ID{3, 5, 7}, []token.ID{7, mask, mask, mask, mask}, []token.ID{8, 9, 10, 11}},
		{"a shifted head", "", true, 16, 8, []token.ID{3, 5, 7}, []token.ID{7, mask, mask, mask}, []token.ID{8, 9, 10, 11}},
		{"two tokens", ":tokens=2", false, 16, 8, []token.ID{3, 5, 7}, []token.ID{7, mask, mask}, []token.ID{8, 9}},
		{"a short round", "", true, 16, 1, []token.ID{3, 5, 7}, []token.ID{7}, []token.ID{8}},
		{"small steps", "", false, 3, 8, []token.ID{3, 5, 7}, []token.ID{7, mask, mask}, []token.ID{8, 9}},
		{"steps of one row", "", false, 1, 8, []token.ID{3, 5, 7}, nil, nil},
		{"the context's end", "", false, 16, 8, []token.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []token.ID{10, mask, mask}, []token.ID{11, 12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := blocks(c.shift, c.rows)
			d, err := growtest.Open(t, "masks"+c.option, method.Env{Vocabulary: 100, Target: m}).NewDrafter(m.Sequence(c.text[:len(c.text)-1]...))
			if err != nil {
				t.Fatal(err)
			}
			x := &growtest.Text{Drafter: d}
			x.Begin(t, c.text...)
			if diff := cmp.Diff(c.want, growtest.Best(x.Draft(t, c.depth))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.ran, m.Ran); diff != "" {
				t.Errorf("rows: %s", diff)
			}
		})
	}
}

func TestMasksNeeds(t *testing.T) {
	info, err := method.Find("masks")
	if err != nil {
		t.Fatal(err)
	}
	whole, plain := blocks(false, 16), blocks(false, 16)
	whole.Dims.Canvas.Block, plain.Dims.Canvas = 0, nil
	for _, m := range []*growtest.Model{whole, plain} {
		if err := info.CheckNeeds(method.Env{Vocabulary: 100, Target: m}); !errors.Is(err, method.ErrNeeds) {
			t.Errorf("error %v", err)
		}
	}
	m := blocks(true, 16)
	if err := info.CheckNeeds(method.Env{Vocabulary: 100, Target: m}); err != nil {
		t.Error(err)
	}
	open, err := info.Open(method.Env{Vocabulary: 100, Target: m})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.NewDrafter(nil); !errors.Is(err, method.ErrNeeds) {
		t.Errorf("an answer on record: error %v", err)
	}
	for _, option := range []string{"tokens=0", "tokens=33", "depth=2", ""} {
		if _, err := method.Find("masks:" + option); err == nil || !strings.Contains(err.Error(), "use tokens=N, the tokens that a pass drafts, from 1 to 32") {
			t.Errorf("%s: error %v", option, err)
		}
	}
}
