package models

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/forest"
	"grove/internal/suite/growtest"
	"grove/internal/text/token"
	"grove/method"
	"grove/method/grow"
)

const mask = growtest.Mask

// canvas is the model that drafts.
func canvas(shift bool, rows int) *growtest.Model { return growtest.Canvas(shift, 0, 64, rows) }

func TestDraft(t *testing.T) {
	for _, c := range []struct {
		name, option string
		shift        bool
		rows, depth  int
		ran, want    []token.ID
	}{
		{"masks behind the text", ":masks=3+window=9", false, 16, 8, []token.ID{3, 5, 7, mask, mask, mask}, []token.ID{8, 9, 10}},
		{"a shifted head", ":masks=3+window=9", true, 16, 8, []token.ID{3, 5, 7, mask, mask, mask}, []token.ID{8, 9, 10}},
		{"the last tokens alone", ":masks=2+window=2", false, 16, 8, []token.ID{5, 7, mask, mask}, []token.ID{8, 9}},
		{"a short round", ":masks=4+window=9", true, 16, 1, []token.ID{3, 5, 7, mask}, []token.ID{8}},
		{"small steps", ":masks=4+window=9", false, 5, 8, []token.ID{7, mask, mask, mask, mask}, []token.ID{8, 9, 10, 11}},
		{"steps of one row", ":masks=4+window=9", false, 1, 8, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := canvas(c.shift, c.rows)
			x := &growtest.Text{Drafter: growtest.Drafter(t, "deer"+c.option, method.Env{Vocabulary: 100, Draft: m})}
			x.Begin(t, 3, 5, 7)
			if diff := cmp.Diff(c.want, growtest.Best(x.Draft(t, c.depth))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.ran, m.Ran); diff != "" {
				t.Errorf("rows: %s", diff)
			}
		})
	}
}

// TestBlocks: the rows of a model of blocks have the blocks of the text, whatever the window is.
func TestBlocks(t *testing.T) {
	m := canvas(false, 16)
	m.Dims.Canvas.Block = 4
	next, blocks := m.Next, []int{}
	m.Next = func(path []token.ID, r forest.Row) []float32 {
		blocks = append(blocks, r.Block)
		return next(path, r)
	}
	x := &growtest.Text{Drafter: growtest.Drafter(t, "deer:masks=3+window=4", method.Env{Vocabulary: 100, Draft: m})}
	x.Begin(t, 1, 2, 3, 4, 5, 6)
	x.Draft(t, 8)
	if diff := cmp.Diff([]int{2, 2, 3}, blocks); diff != "" { // of masks at the places 6, 7 and 8
		t.Error(diff)
	}
}

func TestDeerNeeds(t *testing.T) {
	info, err := method.Find("deer")
	if err != nil {
		t.Fatal(err)
	}
	plain := canvas(false, 16)
	plain.Dims.Canvas = nil
	for want, env := range map[string]method.Env{
		"none is given":                     {Vocabulary: 100},
		"model is none of masked diffusion": {Vocabulary: 100, Draft: plain},
	} {
		if err := info.CheckNeeds(env); !errors.Is(err, method.ErrNeeds) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if err := info.CheckNeeds(method.Env{Vocabulary: 100, Draft: canvas(true, 16)}); err != nil {
		t.Error(err)
	}
	if err := grow.MeetsDraft(method.Env{Draft: canvas(false, 16)}, false); err == nil || !strings.Contains(err.Error(), "this one is of masked diffusion, with which deer drafts") {
		t.Errorf("the methods of draft models: error %v", err)
	}
	for _, option := range []string{"masks=0", "masks=65", "window=x", "masks=2+masks=3", "depth=2", ""} {
		if _, err := method.Find("deer:" + option); err == nil || !strings.Contains(err.Error(), "use masks=N, the tokens that a pass drafts, from 1 to 64") {
			t.Errorf("%s: error %v", option, err)
		}
	}
}
